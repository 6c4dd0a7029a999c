package tuner

import "time"

// ParseDraft reads a study file's text as somebody writes it on a page: by the same code as ReadStudy, but no file is
// looked at, whatever the text names, so that what came over the network learns nothing about this machine. name stands
// in messages. The error is a Problems.
func ParseDraft(name string, source []byte) (*Study, error) {
	study, problems := decode(&decoder{file: name, unseen: true}, source)
	if len(problems) > 0 {
		return nil, problems
	}
	return study, nil
}

// CheckDraft is Check without asking a host: what the file alone tells, and facts that somebody asked for before (else those of
// DraftFacts). history are this study's stored trials, nil before its first run. Large spaces are counted in a sample, because
// somebody waits. Ready and Verdict say nothing of the host as it is now.
func CheckDraft(s *Study, facts HostFacts, history History, now time.Time) *Report {
	return Check(s, CheckInput{Facts: facts, History: history, Now: now, Sampled: true})
}

// DraftFacts is what a study file tells of its host: the memory of a simulated one, of others nothing.
func DraftFacts(s *Study) HostFacts {
	facts := HostFacts{MemTotal: -1, MemAvailable: -1, CgroupHeadroom: -1}
	if s.Host.Kind == HostSimulated {
		facts.MemTotal, facts.MemAvailable = int64(s.Host.RAMBytes), max(0, int64(s.Host.RAMBytes)-simulatedSystem)
	}
	return facts
}

// SeenRAM is the host memory that was available before the launches of a study, as its trials show it, bytes; 0 when fewer than three do.
func SeenRAM(h History) int64 { return int64(usualRAM(h)) }

// simulatedSystem is what a simulated host's own system takes of its memory, bytes, as host.Simulated has it.
const simulatedSystem = 9_000_000_000
