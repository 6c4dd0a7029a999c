package benchmark

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// level is the state of one load level while it runs.
type level struct {
	target Target
	feed   Feed
	opts   Options
	each   func(Request)
	ledger *ledger
	pulse  *pulse

	clients   sync.WaitGroup
	stopping  chan struct{} // closed when nothing more is sent
	exhausted chan struct{} // closed when the measured part ended because nothing was left to send
	gone      chan struct{} // closed when the clients are

	// Only the level's own loop touches these, and the report once the clients are gone.
	windows  []Window
	cpu      []CPUReading // at the start and after each whole window
	pruned   bool
	stood    time.Duration // the client stood still so long, which ended the level; host time
	warmedUp int           // requests sent before the level began

	promptsGot int64 // prompt tokens of the measured requests whose length was asked for; the report's

	waited atomic.Int64 // requests that waited for Arrivals.MaxInFlight

	mu      sync.Mutex
	senders []*sender
	over    bool // nothing more is sent
	sent    int
	begun   int // of those, the first ones of their conversations
	ended   int
	passes  int       // of the rows that were sent: a feed may be read ahead
	last    time.Time // when the last request ended
	settled time.Time // when the opening was over (warmupWindows), zero before
	samples samples
	arrived punctuality // of an open loop
	cut     int
	failing int // failures since the last success
	dead    bool
}

func newLevel(target Target, feed Feed, opts Options, each func(Request)) *level {
	if each == nil {
		each = func(Request) {}
	}
	return &level{
		target: target, feed: feed, opts: opts, each: each,
		stopping: make(chan struct{}), exhausted: make(chan struct{}), gone: make(chan struct{}),
	}
}

// begin starts the level's time.
func (lv *level) begin() {
	start := lv.opts.Clock.Now()
	lv.ledger = newLedger(start, lv.opts.Window)
	lv.samples.start, lv.samples.width = start, lv.opts.Window
	lv.last = start
	lv.pulse = startPulse()
	lv.cpu = []CPUReading{lv.pulse.meter.Read()}
}

// sender returns a new client of the target.
func (lv *level) sender() (*sender, error) {
	s, err := newSender(lv.target, senderConfig{
		clock: lv.opts.Clock, endpoint: lv.opts.Endpoint, model: lv.opts.Model, continuous: lv.opts.ContinuousUsage,
		timeout:  time.Duration(float64(lv.opts.Timeout) / lv.opts.Clock.Scale()),
		keepGaps: lv.opts.Clock.Scale() <= 1,
	})
	if err != nil {
		return nil, err
	}
	lv.mu.Lock()
	defer lv.mu.Unlock()
	lv.senders = append(lv.senders, s)
	return s, nil
}

// book makes the ledger count what a sender receives.
func (lv *level) book(s *sender) {
	m, most := lv.ledger.meter(), lv.opts.PromptTokens
	s.tokens = m.tokens
	if most > 0 {
		s.tokens = func(at time.Time, output, prompt int) {
			m.tokens(at, output, prompt)
			if prompt > 0 && lv.ledger.prompt.Load() >= most {
				lv.mu.Lock()
				defer lv.mu.Unlock()
				lv.exhaust()
			}
		}
	}
}

// take reserves one request to send: a later turn of a conversation, or the begin of a new one. The first client
// that gets none ends sending; but where only no new ones may begin, those that have begun go on.
func (lv *level) take(follows bool) bool {
	lv.mu.Lock()
	defer lv.mu.Unlock()
	switch {
	case lv.over || lv.opts.Requests > 0 && lv.sent >= lv.opts.Requests:
		lv.exhaust()
		return false
	case !follows && lv.allBegun():
		return false
	case !follows:
		lv.begun++
	}
	lv.sent++
	return true
}

// allBegun reports whether no further conversation may begin. lv.mu is held.
func (lv *level) allBegun() bool { return lv.opts.Starts > 0 && lv.begun >= lv.opts.Starts }

// exhaust ends sending from a client's side, and the measured part with it: from now on fewer requests are in
// flight than the load asks for. But where most of the requests are in flight still, as with one for each
// client, this was not the load that they saw: then the measured part lasts until the last answer.
// lv.mu is held.
func (lv *level) exhaust() {
	if lv.over {
		return
	}
	lv.over = true
	close(lv.stopping)
	if lv.opts.Requests > 0 && !lv.dead && 2*lv.ended < lv.sent {
		return
	}
	lv.ledger.close(lv.opts.Clock.Now())
	close(lv.exhausted)
}

// stop ends sending from the level's side.
func (lv *level) stop() {
	lv.mu.Lock()
	defer lv.mu.Unlock()
	if !lv.over {
		lv.over = true
		close(lv.stopping)
	}
}

// request sends a prompt and, where asked, tries again what failed. Latency counts from due, and lag to the
// first try.
func (lv *level) request(ctx context.Context, s *sender, p Prompt, due time.Time, scheduled bool) answer {
	var first time.Time
	for try := 1; ; try++ {
		lv.ledger.enter(lv.opts.Clock.Now())
		a := s.send(ctx, p, due)
		if try == 1 {
			first = a.Sent
		}
		a.Sent, a.Attempts = first, try
		lv.ledger.leave(due.Add(a.E2E), a.Failed != "")
		if try <= lv.opts.Retries && lv.again(a) && lv.pause(ctx, try) {
			continue
		}
		lv.finished(a, p.Pass, scheduled)
		learn(lv.feed, p, a)
		return a
	}
}

// again reports whether a request is worth another try. When the level is over nothing more is sent, but of a
// number of requests each gets its tries.
func (lv *level) again(a answer) bool {
	if a.cut || a.Failed == "" || a.Failed == failedWrongTokens {
		return false
	}
	select {
	case <-lv.stopping:
		return lv.opts.Requests > 0
	default:
		return true
	}
}

// learn tells a feed what the server counted.
func learn(feed Feed, p Prompt, a answer) {
	if l, ok := feed.(Learner); ok && !a.cut {
		l.Learn(p, a.Request)
	}
}

// A client that fails pauses before its next try or request, in real time: 20 ms, doubled for each further
// failure in a row, at most a second.
const (
	firstPause = 20 * time.Millisecond
	mostPause  = time.Second
)

// pause waits after so many failures in a row; false when it was cut short.
func (lv *level) pause(ctx context.Context, failures int) bool {
	d := min(firstPause<<min(failures-1, 10), mostPause)
	return lv.opts.Clock.Sleep(ctx, time.Duration(float64(d)*lv.opts.Clock.Scale())) == nil
}

// until waits for a time, unless sending ends before.
func (lv *level) until(ctx context.Context, due time.Time) bool {
	for wait := due.Sub(lv.opts.Clock.Now()); wait > 0; wait = due.Sub(lv.opts.Clock.Now()) {
		select {
		case <-ctx.Done():
			return false
		case <-lv.stopping:
			return false
		case <-lv.opts.Clock.After(wait):
		}
	}
	return true
}

// finished keeps what a request showed.
func (lv *level) finished(a answer, pass int, scheduled bool) {
	lv.mu.Lock()
	defer lv.mu.Unlock()
	lv.passes = max(lv.passes, pass+1)
	if scheduled {
		lv.arrived.add(a, lv.tardy())
	}
	if a.cut {
		lv.cut++
		return
	}
	lv.ended++
	if end := a.Intended.Add(a.E2E); end.After(lv.last) {
		lv.last = end
	}
	if a.Failed == "" {
		lv.failing = 0
	} else if lv.failing++; lv.isDead() {
		lv.dead = true
		lv.exhaust()
	}
	lv.samples.add(a)
	if lv.settled.IsZero() && lv.openingOver() {
		lv.settled = lv.opts.Clock.Now()
	}
	lv.each(a.Request)
}

// isDead reports whether the endpoint is gone: nothing but failures, twice as many as there are clients, in
// an open loop also for five seconds of arrivals. A level that was asked for a number of requests sends them
// all the same.
func (lv *level) isDead() bool {
	if lv.opts.Requests > 0 {
		return false
	}
	clients := lv.opts.Concurrency
	if a := lv.opts.Arrivals; a != nil {
		clients = max(lv.ledger.most(), int(2.5*a.Rate))
	}
	return lv.failing >= max(20, 2*clients)
}

// openingOver reports whether the server has seen through what a level begins with. A closed loop starts with
// all clients at once: until as many requests have ended as there are clients, the server sees that volley
// and not the load. An open loop starts on an empty server, which fills until requests leave it as they come:
// until as many have ended as are in flight, most were sent to a server emptier than the load makes it. Both
// are the same stretch of work in every trial, which a rule that looks at the figures alone is not (on the
// deletion of what a run begins with: Law, "Simulation modeling and analysis", the chapter on output analysis).
// lv.mu is held.
func (lv *level) openingOver() bool {
	if lv.opts.Arrivals != nil {
		return lv.ended >= lv.ledger.running()
	}
	return lv.ended >= lv.opts.Concurrency
}

// warmupWindows is how many windows belong to the warm-up: those that Options.Warmup or the ramp touches, and
// those up to the end of the opening. A level that was asked for a number of requests measures all of them.
func (lv *level) warmupWindows() int {
	if lv.opts.counted() {
		return lv.opts.warmupWindows()
	}
	lv.mu.Lock()
	settled := lv.settled
	lv.mu.Unlock()
	n := len(lv.windows)
	if !settled.IsZero() {
		n = int(settled.Sub(lv.ledger.start)/lv.opts.Window) + 1
	}
	return max(lv.opts.warmupWindows(), n)
}

// measured are the windows behind the warm-up.
func (lv *level) measured() []Window {
	return lv.windows[min(lv.warmupWindows(), len(lv.windows)):]
}

// outputs are the windows' output tok/s.
func outputs(windows []Window) []float64 {
	var out []float64
	for _, w := range windows {
		out = append(out, w.Output)
	}
	return out
}
