package benchmark

import (
	"context"
	"sync"
	"time"
)

// level is the state of one load level while it runs.
type level struct {
	feed   Feed
	opts   Options
	each   func(Request)
	ledger *ledger

	clients   sync.WaitGroup
	exhausted chan struct{} // closed when a client found nothing left to send

	// Only the level's own loop touches these, and the report once the clients are gone.
	windows []Window
	cpu     []cpuReading // at the start and after each whole window
	pruned  bool
	stood   time.Duration // the client stood still so long, which ended the level; host time

	mu      sync.Mutex
	over    bool // nothing more is sent
	drained bool // exhausted is closed
	sent    int
	records []record
	volley  time.Time // when as many requests had ended as there are clients, zero before
	gaps    []gap
	cut     int
	failing int // failures since the last success
	dead    bool
}

// record is a finished request with the range of its gaps in level.gaps.
type record struct {
	Request
	gapsFrom, gapsTo int
}

func newLevel(feed Feed, opts Options, each func(Request)) *level {
	if each == nil {
		each = func(Request) {}
	}
	return &level{
		feed:      feed,
		opts:      opts,
		each:      each,
		ledger:    newLedger(opts.Clock.Now(), opts.Window),
		exhausted: make(chan struct{}),
		cpu:       []cpuReading{readCPU()},
	}
}

func (lv *level) startClients(ctx context.Context, senders []*sender) {
	for _, s := range senders {
		s.timeout = time.Duration(float64(lv.opts.Timeout) / lv.opts.Clock.Scale())
		s.keepGaps = lv.opts.Clock.Scale() <= 1
		s.tokens = lv.arrived
		lv.clients.Go(func() { lv.client(ctx, s) })
	}
}

// client is one user of the closed loop. The next request is due the moment the previous one ended:
// what passes until it is sent, building its prompt too, is the client's own lag.
func (lv *level) client(ctx context.Context, s *sender) {
	due := lv.ledger.start
	failures := 0
	for lv.take() {
		p := lv.feed.Next()
		lv.ledger.enter(lv.opts.Clock.Now())
		a := s.send(ctx, p, due)
		due = due.Add(a.E2E)
		lv.ledger.leave(due)
		lv.finished(a)
		if a.cut {
			return
		}
		if failures = nextFailures(failures, a); failures > 0 {
			if lv.pause(ctx, failures) != nil {
				return
			}
			due = lv.opts.Clock.Now()
		}
	}
}

// nextFailures counts failures in a row that cost the server nothing; a client must not hammer on them.
func nextFailures(n int, a answer) int {
	switch a.Failed {
	case failedRefused, failedReset, failedStatus, failedCut, failedStream:
		return n + 1
	}
	return 0
}

// A client that fails pauses before its next request, in real time: 20 ms, doubled for each further
// failure in a row, at most a second.
const (
	firstPause = 20 * time.Millisecond
	mostPause  = time.Second
)

func (lv *level) pause(ctx context.Context, failures int) error {
	d := min(firstPause<<min(failures-1, 10), mostPause)
	return lv.opts.Clock.Sleep(ctx, time.Duration(float64(d)*lv.opts.Clock.Scale()))
}

// take reserves one request to send. The first client that gets none ends the measured part: from
// then on fewer than all clients are busy.
func (lv *level) take() bool {
	lv.mu.Lock()
	defer lv.mu.Unlock()
	if !lv.over && (lv.opts.Requests == 0 || lv.sent < lv.opts.Requests) {
		lv.sent++
		return true
	}
	lv.exhaust()
	return false
}

// exhaust ends the measured part from a client's side. lv.mu is held.
func (lv *level) exhaust() {
	lv.over = true
	if !lv.drained {
		lv.drained = true
		lv.ledger.close(lv.opts.Clock.Now())
		close(lv.exhausted)
	}
}

// stop ends sending from the level's side.
func (lv *level) stop() {
	lv.mu.Lock()
	defer lv.mu.Unlock()
	lv.over, lv.drained = true, true
}

// arrived books tokens as they come.
func (lv *level) arrived(at time.Time, output, prompt int) {
	total := lv.ledger.tokens(at, output, prompt)
	if prompt > 0 && lv.opts.PromptTokens > 0 && total >= lv.opts.PromptTokens {
		lv.mu.Lock()
		defer lv.mu.Unlock()
		lv.exhaust()
	}
}

// finished keeps what a request showed.
func (lv *level) finished(a answer) {
	lv.mu.Lock()
	defer lv.mu.Unlock()
	if a.cut {
		lv.cut++
		return
	}
	from := len(lv.gaps)
	if a.Failed == "" {
		lv.gaps = append(lv.gaps, a.gaps...)
		lv.failing = 0
	} else if lv.failing++; lv.isDead() {
		lv.dead = true
		lv.exhaust()
	}
	lv.records = append(lv.records, record{a.Request, from, len(lv.gaps)})
	if len(lv.records) == lv.opts.Concurrency {
		lv.volley = lv.opts.Clock.Now()
	}
	lv.each(a.Request)
}

// isDead reports whether the endpoint is gone: nothing but failures, twice as many as there are
// clients. A level that was asked for a number of requests sends them all the same.
func (lv *level) isDead() bool {
	return lv.opts.Requests == 0 && lv.failing >= max(20, 2*lv.opts.Concurrency)
}

// warmupWindows is how many windows belong to the warm-up: those that Options.Warmup touches, and those up
// to the end of the opening volley. A closed loop starts with all clients at once, and until as many requests
// have ended as there are clients, the server sees that volley and not the load. This is the same stretch
// of work in every trial, which a rule that looks at the figures alone is not. A level that was asked for a
// number of requests measures all of them.
func (lv *level) warmupWindows() int {
	if lv.opts.Requests > 0 || lv.opts.PromptTokens > 0 {
		return lv.opts.warmupWindows()
	}
	lv.mu.Lock()
	volley := lv.volley
	lv.mu.Unlock()
	n := len(lv.windows)
	if !volley.IsZero() {
		n = int(volley.Sub(lv.ledger.start)/lv.opts.Window) + 1
	}
	return max(lv.opts.warmupWindows(), n)
}

// measured are the windows' output tok/s behind the warm-up.
func (lv *level) measured() []float64 {
	return outputs(lv.windows[min(lv.warmupWindows(), len(lv.windows)):])
}

// outputs are the windows' output tok/s.
func outputs(windows []Window) []float64 {
	var out []float64
	for _, w := range windows {
		out = append(out, w.Output)
	}
	return out
}
