package trial

import (
	"time"
)

// speed is one decode line: the server's own figure since its line before.
type speed struct {
	read    time.Time // host time when it was seen in the log
	printed time.Time // the server's own time in its prefix (whole seconds, no zone), zero without one
	toks    float64   // tok/s
}

// serverSpeed is the server's own throughput between two instants of host time: each line's figure
// weighted by how much of its stretch lies between them. 0 when no line does.
//
// Lines are dated by the server's own clock, moved onto the host's by the quickest reading of all:
// several lines are read at once, and late.
func serverSpeed(lines []speed, from, to time.Time) float64 {
	offset, known := time.Duration(0), false
	for _, l := range lines {
		if d := l.read.Sub(l.printed); !l.printed.IsZero() && (!known || d < offset) {
			offset, known = d, true
		}
	}
	var tokens, seconds float64
	var before time.Time
	for _, l := range lines {
		at := l.read
		if !l.printed.IsZero() {
			at = l.printed.Add(offset)
		}
		if !before.IsZero() {
			if d := overlap(before, at, from, to).Seconds(); d > 0 {
				tokens, seconds = tokens+l.toks*d, seconds+d
			}
		}
		before = at
	}
	if seconds == 0 {
		return 0
	}
	return tokens / seconds
}

// overlap is how much of [a, b] lies in [from, to].
func overlap(a, b, from, to time.Time) time.Duration {
	if a.Before(from) {
		a = from
	}
	if b.After(to) {
		b = to
	}
	return b.Sub(a)
}

// speed is serverSpeed of the lines so far.
func (w *watch) speed(from, to time.Time) float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return serverSpeed(w.speeds, from, to)
}
