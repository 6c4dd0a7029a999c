package benchmark

import (
	"sync"
	"time"
)

// Window is one fixed slice of a load level.
type Window struct {
	Start    time.Time `json:"start"`
	Seconds  float64   `json:"seconds"`
	Output   float64   `json:"output_tok_s"`
	Prompt   float64   `json:"prompt_tok_s"` // prompts count when their first token comes
	InFlight float64   `json:"in_flight"`    // time average
	Steady   bool      `json:"steady"`
}

// ledger books tokens and requests in flight into windows of host time. Everything is booked by its
// own time stamp, so a late tick of the level's loop shifts nothing. Safe for concurrent use.
type ledger struct {
	start time.Time
	width time.Duration

	mu       sync.Mutex
	slots    []slot
	prompt   int64         // all prompt tokens so far
	inFlight int           // now
	peak     int           // most at once
	booked   time.Duration // in-flight time is booked up to here
	end      time.Duration // nothing counts after it, 0 = open
}

// slot is what fell into one window.
type slot struct {
	output, prompt int64
	busy           time.Duration // sum over requests of the time they were in flight
}

func newLedger(start time.Time, width time.Duration) *ledger {
	return &ledger{start: start, width: width}
}

// enter books the start of a request.
func (l *ledger) enter(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advance(at.Sub(l.start))
	l.inFlight++
	l.peak = max(l.peak, l.inFlight)
}

// leave books the end of a request.
func (l *ledger) leave(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advance(at.Sub(l.start))
	l.inFlight--
}

// tokens books completion tokens, and prompt tokens at a first token. It returns all prompt tokens
// so far.
func (l *ledger) tokens(at time.Time, output, prompt int) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.prompt += int64(prompt)
	if d := at.Sub(l.start); l.end == 0 || d < l.end {
		s := l.slot(max(0, int(d/l.width)))
		s.output += int64(output)
		s.prompt += int64(prompt)
	}
	return l.prompt
}

// close ends the booked time; the first call counts. It returns the end.
func (l *ledger) close(at time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end == 0 {
		end := max(at.Sub(l.start), 1)
		l.advance(end)
		l.end = end
	}
	return l.end
}

// ended is when the booked time ended; only after close.
func (l *ledger) ended() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.start.Add(l.end)
}

// advance books in-flight time up to d.
func (l *ledger) advance(d time.Duration) {
	if l.end > 0 {
		d = min(d, l.end)
	}
	for l.booked < d {
		k := int(l.booked / l.width)
		next := min(d, time.Duration(k+1)*l.width)
		l.slot(k).busy += time.Duration(l.inFlight) * (next - l.booked)
		l.booked = next
	}
}

func (l *ledger) slot(k int) *slot {
	for len(l.slots) <= k {
		l.slots = append(l.slots, slot{})
	}
	return &l.slots[k]
}

// window is the k-th window, cut at the end of the booked time.
func (l *ledger) window(k int) Window {
	l.mu.Lock()
	defer l.mu.Unlock()
	from, to := time.Duration(k)*l.width, time.Duration(k+1)*l.width
	if l.end > 0 {
		to = min(to, l.end)
	}
	l.advance(to)
	s, seconds := *l.slot(k), (to - from).Seconds()
	return Window{
		Start:    l.start.Add(from),
		Seconds:  seconds,
		Output:   float64(s.output) / seconds,
		Prompt:   float64(s.prompt) / seconds,
		InFlight: s.busy.Seconds() / seconds,
	}
}

// most is the largest number of requests that were in flight at once.
func (l *ledger) most() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.peak
}
