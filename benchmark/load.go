package benchmark

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Run puts one load level on the target. In a closed loop Options.Concurrency clients take rows from the feed
// in order, and each sends its next one as soon as it has the last byte of its previous; in an open loop
// (Options.Arrivals) requests are sent at their times. The level ends at the cap, when throughput is known well
// enough, when Prune says so, or when the requests or prompt tokens asked for are done. Then nothing more is
// sent, requests in flight are drained for Options.Drain and the rest are cut.
//
// each gets every finished request, one at a time, those of Options.WarmupRequests not; it may be nil. No
// goroutine of the level is left when Run returns. When ctx ends, so does the level, at once: the report covers
// what was done and the error is the context's cause.
func Run(ctx context.Context, target Target, feed Feed, opts Options, each func(Request)) (*Report, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("load level: %w", err)
	}
	lv := newLevel(target, feed, opts, each)
	defer lv.close()
	senders := make([]*sender, opts.clients())
	for i := range senders {
		if senders[i], err = lv.sender(); err != nil {
			return nil, fmt.Errorf("load level: %w", err)
		}
	}
	connect(ctx, senders)
	lv.warmUp(ctx, senders)
	lv.begin()
	requests, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	if opts.Arrivals != nil {
		lv.openLoop(requests, senders)
	} else {
		lv.closedLoop(requests, senders)
	}
	lv.run(ctx, func() { cut(errCut) })
	return lv.report(), context.Cause(ctx)
}

// close ends the connections.
func (lv *level) close() {
	for _, s := range lv.senders {
		s.close()
	}
}

// warmUp sends the requests that come before the level, as many at once as there are senders, and waits for
// their answers.
func (lv *level) warmUp(ctx context.Context, senders []*sender) {
	feed := lv.opts.WarmupFeed
	if feed == nil {
		feed = lv.feed
	}
	var clients sync.WaitGroup
	var taken, done atomic.Int64
	for _, s := range senders[:min(len(senders), lv.opts.WarmupRequests)] {
		clients.Go(func() {
			for failures := 0; taken.Add(1) <= int64(lv.opts.WarmupRequests) && ctx.Err() == nil; {
				p := feed.Next()
				a := s.send(ctx, p, lv.opts.Clock.Now())
				learn(feed, p, a)
				if !a.cut {
					done.Add(1)
				}
				if failures = nextFailures(failures, a); failures > 0 && !lv.pause(ctx, failures) {
					return
				}
			}
		})
	}
	clients.Wait()
	lv.warmedUp = int(done.Load())
}

// run measures and drains; when it returns, no goroutine of the level is left.
func (lv *level) run(ctx context.Context, cut func()) {
	go func() {
		lv.clients.Wait()
		close(lv.gone)
	}()
	lv.measure(ctx)
	lv.stop()
	lv.drain(ctx, cut)
	lv.pulse.stop()
}

// measure waits out the windows and decides after each whether to go on.
func (lv *level) measure(ctx context.Context) {
	clock := lv.opts.Clock
	for k := 0; ; k++ {
		end := lv.ledger.start.Add(time.Duration(k+1) * lv.opts.Window)
		for wait := end.Sub(clock.Now()); wait > 0; wait = end.Sub(clock.Now()) {
			select {
			case <-ctx.Done():
				lv.ledger.close(clock.Now())
				return
			case <-lv.exhausted: // closed the ledger itself
				return
			case <-lv.gone:
				lv.ledger.close(lv.last)
				return
			case <-clock.After(wait):
			}
		}
		if late := clock.Now().Sub(end); late > lv.stillness() { // before Prune, which would blame the server
			lv.stood = late
			lv.ledger.close(end)
			return
		}
		if lv.windowEnded(k) {
			lv.ledger.close(end)
			return
		}
	}
}

// stillReal is the least real time without one look at the clock that counts as standing still.
const stillReal = 250 * time.Millisecond

// stillness is how late (host time) the end of a window may be noticed. Beyond it this program was stopped or
// its machine suspended, or somebody took all of its CPU: the clients sent nothing meanwhile, and the level
// shows that and not the server.
func (lv *level) stillness() time.Duration {
	return max(lv.opts.Window/2, time.Duration(float64(stillReal)*lv.opts.Clock.Scale()))
}

// windowEnded notes a whole window and reports whether the level is over.
func (lv *level) windowEnded(k int) bool {
	w := lv.ledger.window(k)
	lv.windows = append(lv.windows, w)
	lv.cpu = append(lv.cpu, lv.pulse.meter.Read())
	if lv.opts.OnWindow != nil {
		lv.opts.OnWindow(w)
	}
	sure := outputs(lv.complete())
	if lv.opts.Prune != nil && len(sure) > 0 && lv.opts.Prune(sure) {
		lv.pruned = true
		return true
	}
	return lv.known(outputs(lv.measured())) || lv.capped(k)
}

// lateReads is how many windows back tokens are looked for that were stamped in time and read late.
const lateReads = 2

// complete are the windows whose tokens are all booked: the last few are counted anew, and in scaled time the
// newest is left out, where the moment that a reader waits for the CPU is much of a window. Without that a running
// level would look slower than the finished ones it is compared with.
func (lv *level) complete() []Window {
	n := len(lv.windows)
	for k := max(0, n-1-lateReads); k < n; k++ {
		lv.windows[k] = lv.ledger.window(k)
	}
	if lv.opts.Clock.Scale() > 1 {
		n--
	}
	return lv.windows[:n]
}

// capped reports whether Cap is reached: it bounds the measured part, and the warm-up before it is at most
// as long again.
func (lv *level) capped(k int) bool {
	most := lv.opts.windows()
	if most == 0 {
		return false
	}
	warm := lv.warmupWindows()
	if lv.opts.counted() {
		warm = 0 // a number of requests has no part of its own that is measured
	}
	return k+1 >= most+min(warm, most)
}

// known reports whether throughput is steady and its interval within the target. A number of requests is sent
// to its end.
func (lv *level) known(outputs []float64) bool {
	if lv.opts.Target <= 0 || lv.opts.counted() {
		return false
	}
	from, steady := steadyFrom(outputs)
	if !steady || len(outputs)-from < leastWindows {
		return false
	}
	mean, half, ok := interval(outputs[from:])
	return ok && mean > 0 && half <= lv.opts.Target*mean
}

// drain waits for the requests in flight, at most Options.Drain, cuts the rest and waits for them too. Where a
// number of requests alone ends the level, it waits for as long as anything comes.
func (lv *level) drain(ctx context.Context, cut func()) {
	patient := lv.opts.Requests > 0 && lv.opts.Cap <= 0
	for before := lv.ledger.life(); ; {
		select {
		case <-lv.gone:
			return
		case <-ctx.Done():
		case <-lv.opts.Clock.After(lv.opts.Drain):
			if now := lv.ledger.life(); patient && now > before {
				before = now
				continue
			}
		}
		cut()
		<-lv.gone
		return
	}
}
