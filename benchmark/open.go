package benchmark

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// punctuality is how the requests of a schedule were sent: when the first and the last were due, and when they
// left.
type punctuality struct {
	n, late             int
	due, sent           time.Time // of the first
	lastDue, lastlySent time.Time
}

// tardy is the delay from which on a request was not sent on time: 10 ms real, in host time.
func (lv *level) tardy() time.Duration {
	return time.Duration(mostLagRealMs * lv.opts.Clock.Scale() * float64(time.Millisecond))
}

// add notes a request; they end in any order.
func (p *punctuality) add(a answer, tardy time.Duration) {
	if p.n == 0 || a.Intended.Before(p.due) {
		p.due = a.Intended
	}
	if p.n == 0 || a.Sent.Before(p.sent) {
		p.sent = a.Sent
	}
	if a.Intended.After(p.lastDue) {
		p.lastDue = a.Intended
	}
	if a.Sent.After(p.lastlySent) {
		p.lastlySent = a.Sent
	}
	if a.Sent.Sub(a.Intended) > tardy {
		p.late++
	}
	p.n++
}

// rps is n requests from the first to the last in requests/s, 0 when they came at once.
func rps(n int, first, last time.Time) float64 {
	if d := last.Sub(first); d > 0 {
		return float64(n-1) / d.Seconds()
	}
	return 0
}

// dialAhead is how many connections an open loop dials ahead; it cannot know how many it will need.
const dialAhead = 64

// openLoop starts the scheduler, and workers for the requests that will be in flight at once to begin with.
func (lv *level) openLoop(ctx context.Context, senders []*sender) {
	w := &workers{lv: lv}
	if n := lv.opts.Arrivals.MaxInFlight; n > 0 {
		w.slots = make(chan struct{}, n)
	}
	for _, s := range senders {
		lv.book(s)
		w.idle = append(w.idle, w.start(ctx, s))
	}
	lv.clients.Go(func() {
		defer w.close()
		lv.scheduler(ctx, w)
	})
}

// ahead is how many workers an open loop begins with: those of a second's arrivals, within reason.
func (a Arrivals) ahead() int {
	n := dialAhead
	if a.Process != ArrivalsRecorded {
		n = min(n, int(a.Rate)+1)
	}
	if a.MaxInFlight > 0 {
		n = min(n, a.MaxInFlight)
	}
	return n
}

// scheduler sends each request at its time. The next prompt is built while it waits, so that only the hand-over
// lies between due and sent.
func (lv *level) scheduler(ctx context.Context, w *workers) {
	for times := newSchedule(*lv.opts.Arrivals, lv.feed); lv.more(); {
		next := times.next()
		due := lv.ledger.start.Add(next.due)
		if !lv.until(ctx, due) || !w.slot(ctx) {
			return
		}
		if !lv.take(false) {
			w.free()
			return
		}
		if err := w.give(ctx, job{next.prompt, due}); err != nil {
			return
		}
		runtime.Gosched() // the worker is next on this processor: it sends before another prompt is built
	}
}

// more reports whether the schedule goes on. If nothing at all may be sent any more, sending is over.
func (lv *level) more() bool {
	lv.mu.Lock()
	defer lv.mu.Unlock()
	if !lv.over && lv.allBegun() && (lv.opts.Requests == 0 || lv.sent < lv.opts.Requests) {
		return false
	}
	if lv.over || lv.opts.Requests > 0 && lv.sent >= lv.opts.Requests {
		lv.exhaust()
		return false
	}
	return true
}

// job is one request to send.
type job struct {
	prompt Prompt
	due    time.Time
}

// worker is a client with a connection that waits for jobs.
type worker struct {
	sender *sender
	jobs   chan job
}

// workers are the clients of an open loop. The one that was last at work gets the next job: as few connections
// as possible are kept busy, and none lies idle until the server hangs up on it.
type workers struct {
	lv    *level
	slots chan struct{} // as many as may be in flight, nil = no limit

	mu     sync.Mutex
	idle   []*worker
	closed bool
}

// slot waits until one more request may be in flight.
func (w *workers) slot(ctx context.Context) bool {
	if w.slots == nil {
		return true
	}
	select {
	case w.slots <- struct{}{}:
		return true
	default:
		w.lv.waited.Add(1)
	}
	select {
	case w.slots <- struct{}{}:
		return true
	case <-ctx.Done():
	case <-w.lv.stopping:
	}
	return false
}

// free gives a slot back.
func (w *workers) free() {
	if w.slots != nil {
		<-w.slots
	}
}

// give hands a job to a worker, a new one if all are busy.
func (w *workers) give(ctx context.Context, j job) error {
	w.mu.Lock()
	var k *worker
	if n := len(w.idle); n > 0 {
		k, w.idle = w.idle[n-1], w.idle[:n-1]
	}
	w.mu.Unlock()
	if k == nil {
		s, err := w.lv.sender()
		if err != nil {
			return err
		}
		w.lv.book(s)
		k = w.start(ctx, s)
	}
	k.jobs <- j
	return nil
}

// start starts a worker. It is at work until it is given back.
func (w *workers) start(ctx context.Context, s *sender) *worker {
	k := &worker{sender: s, jobs: make(chan job, 1)}
	w.lv.clients.Go(func() {
		for j := range k.jobs {
			w.work(ctx, k.sender, j)
			if !w.back(k) {
				return
			}
		}
	})
	return k
}

// work sends a request and the later turns of its conversation. The job's slot is taken.
func (w *workers) work(ctx context.Context, s *sender, j job) {
	for scheduled := true; ; scheduled = false {
		a := w.lv.request(ctx, s, j.prompt, j.due, scheduled)
		w.free()
		next, pause, ok := follow(j.prompt, a)
		if !ok {
			return
		}
		j = job{next, j.due.Add(a.E2E + pause)}
		if !w.lv.until(ctx, j.due) || !w.slot(ctx) {
			return
		}
		if !w.lv.take(true) {
			w.free()
			return
		}
	}
}

// back takes a worker back; false when no more jobs come.
func (w *workers) back(k *worker) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.idle = append(w.idle, k)
	}
	return !w.closed
}

// close sends the idle workers home, the others when their job is done.
func (w *workers) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, k := range w.idle {
		close(k.jobs)
	}
	w.idle = nil
}
