package trial

import (
	"maps"
	"slices"
	"time"
)

// speed is one decode line: the server's own figure since its line before.
type speed struct {
	read    time.Time // host time when it was seen in the log
	printed time.Time // the server's own time in its prefix (whole seconds, no zone), zero without one
	dp      int       // DP rank that printed it, -1 without DP attention
	toks    float64   // tok/s of that rank
}

// serverSpeed is the server's own throughput between two instants of host time: each line's figure
// weighted by how much of its stretch lies between them. 0 when no line does. The ranks of DP
// attention each print their own share; the shares add up.
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
	ranks := map[int]*share{}
	for _, l := range lines {
		at := l.read
		if !l.printed.IsZero() {
			at = l.printed.Add(offset)
		}
		r := ranks[l.dp]
		if r == nil {
			ranks[l.dp] = &share{before: at}
			continue
		}
		if d := overlap(r.before, at, from, to).Seconds(); d > 0 {
			r.tokens, r.seconds = r.tokens+l.toks*d, r.seconds+d
		}
		r.before = at
	}
	total := 0.0
	for _, dp := range slices.Sorted(maps.Keys(ranks)) {
		if r := ranks[dp]; r.seconds > 0 {
			total += r.tokens / r.seconds
		}
	}
	return total
}

// share is what one DP rank said so far.
type share struct {
	before          time.Time // of its last line
	tokens, seconds float64   // inside the span asked for
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
