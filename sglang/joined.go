package sglang

// joined is the beginning of a line that a container runtime splits over several records, one for
// each of stdout and stderr.
type joined struct {
	text  []byte
	wrap  wrap
	line  int
	start int64
}

// join adds one record to a line in parts, and handles the line when it is whole.
func (r *Reader) join(j *joined, text []byte, w wrap, cut bool) {
	if len(j.text) == 0 {
		j.line, j.start, j.wrap = r.line, r.start, w
	}
	if room := maxSegment - len(j.text); room < len(text) {
		text, cut = text[:room], true
	}
	j.text = append(j.text, text...)
	if !w.partial {
		r.endJoined(j, cut)
	}
}

// endJoined handles a line in parts, at the place where it began.
func (r *Reader) endJoined(j *joined, cut bool) {
	if len(j.text) == 0 {
		return
	}
	line, start := r.line, r.start
	r.line, r.start = j.line, j.start
	if j.wrap.record {
		r.message(j.text, j.wrap, cut)
	} else {
		r.steps(j.text, cut)
	}
	r.line, r.start = line, start
	j.text = j.text[:0]
}
