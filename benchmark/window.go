package benchmark

import (
	"math"
	"sync"
	"sync/atomic"
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

// ledger books tokens and requests in flight into windows and into seconds of host time. Everything is booked
// by its own time stamp, so a late tick of the level's loop or a client that waits for the CPU shifts nothing.
// Windows end with the measured part, seconds go on. Safe for concurrent use.
type ledger struct {
	start  time.Time
	prompt atomic.Int64 // all prompt tokens so far
	end    atomic.Int64 // nanoseconds after start: nothing counts in windows from here on; math.MaxInt64 = open

	mu       sync.Mutex
	meters   []*meter
	windows  tally
	seconds  tally
	signs    int64         // tokens and ended requests so far: a server that lives moves it
	inFlight int           // now
	peak     int           // most at once
	booked   time.Duration // in-flight time is booked up to here
}

// tally is a row of slots of one width.
type tally struct {
	width time.Duration
	slots []slot
}

// slot is what fell into one of them.
type slot struct {
	output, prompt         int64
	busy                   time.Duration // sum over requests of the time they were in flight
	started, ended, failed int32
}

func newLedger(start time.Time, width time.Duration) *ledger {
	l := &ledger{start: start, windows: tally{width: width}, seconds: tally{width: time.Second}}
	l.end.Store(math.MaxInt64)
	return l
}

// at is the slot of a time; what was before the start belongs to the first.
func (t *tally) at(d time.Duration) *slot { return t.slot(max(0, int(d/t.width))) }

func (t *tally) slot(k int) *slot {
	for len(t.slots) <= k {
		t.slots = append(t.slots, slot{})
	}
	return &t.slots[k]
}

// book adds n requests in flight from one time to another.
func (t *tally) book(from, to time.Duration, n int) {
	for from < to {
		k := int(from / t.width)
		next := min(to, time.Duration(k+1)*t.width)
		t.slot(k).busy += time.Duration(n) * (next - from)
		from = next
	}
}

// enter books the start of a request.
func (l *ledger) enter(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := at.Sub(l.start)
	l.change(d, 1)
	l.peak = max(l.peak, l.inFlight)
	l.seconds.at(d).started++
}

// leave books the end of a request.
func (l *ledger) leave(at time.Time, failed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := at.Sub(l.start)
	l.change(d, -1)
	l.signs++
	s := l.seconds.at(d)
	s.ended++
	if failed {
		s.failed++
	}
}

// change books n more requests in flight from d on. Calls come a little out of order, since each client stamps
// its own: what was booked beyond d already is put right.
func (l *ledger) change(d time.Duration, n int) {
	d = max(0, d)
	l.advance(d)
	l.book(d, l.booked, n)
	l.inFlight += n
}

// advance books in-flight time up to d.
func (l *ledger) advance(d time.Duration) {
	if d > l.booked {
		l.book(l.booked, d, l.inFlight)
		l.booked = d
	}
}

func (l *ledger) book(from, to time.Duration, n int) {
	l.seconds.book(from, to, n)
	l.windows.book(from, min(to, time.Duration(l.end.Load())), n)
}

// close ends the measured time; the first call counts. It returns the end.
func (l *ledger) close(at time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end.Load() == math.MaxInt64 {
		end := max(at.Sub(l.start), 1)
		l.advance(end)
		l.end.Store(int64(end))
	}
	return time.Duration(l.end.Load())
}

// window is the k-th window, cut at the end of the measured time.
func (l *ledger) window(k int) Window {
	l.gather()
	l.mu.Lock()
	defer l.mu.Unlock()
	from, to := time.Duration(k)*l.windows.width, time.Duration(k+1)*l.windows.width
	to = min(to, time.Duration(l.end.Load()))
	l.advance(to)
	s, seconds := *l.windows.slot(k), (to - from).Seconds()
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

// running is how many requests are in flight now.
func (l *ledger) running() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.inFlight
}

// life is a number that grows with every token and every ended request.
func (l *ledger) life() int64 {
	l.gather()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.signs
}
