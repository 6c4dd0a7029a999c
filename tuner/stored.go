package tuner

// StoredProblem is what the models may know of a stored study and its trials, for whoever looks at it
// later: a page, `sgtune show`. ok is false when its study file cannot be understood any more, or has
// no space. events are the study's first: they tell whether the workload fixed a knob, which the file does not.
// Load and host are taken from what trials showed of them.
func StoredProblem(r *Record, h History, events []Event) (p Problem, ok bool) {
	s := StoredStudy(r)
	if s == nil {
		return Problem{}, false
	}
	s.Server.Version = r.Server.Version
	if hostPoolFixed(events) {
		s.fixHostPool()
	}
	if len(s.Space) == 0 || s.Space.Size() == 0 {
		return Problem{}, false
	}
	facts := HostFacts{MemAvailable: -1, CgroupHeadroom: -1}
	if seen := usualRAM(h); seen > 0 {
		facts.MemAvailable = int64(seen)
	}
	return StudyProblem(s, h, facts, nil), true
}

// StoredStudy is what the study file of a stored study says: its space, limits and budgets. nil when it cannot be
// understood any more.
func StoredStudy(r *Record) *Study {
	root, mistake := parseTree([]byte(r.Source))
	if mistake != nil {
		return nil
	}
	// The file was right when it was stored. What it finds wrong now are files that have moved since and
	// secrets that were masked; nothing that is asked for here depends on either.
	d := &decoder{file: r.Name, study: defaults(), knobs: map[string]*node{}, flags: map[string]field{}}
	d.readAll(root)
	d.crossCheck()
	return d.study
}
