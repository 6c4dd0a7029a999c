package simulator

import (
	"context"
	"math"
	"time"
)

// pacedClock ties simulated time to the wall clock: simulated now = real time since start x scale.
type pacedClock struct {
	start time.Time
	scale float64
}

// now is the simulated time, seconds since process start.
func (c pacedClock) now() float64 { return time.Since(c.start).Seconds() * c.scale }

// real is the real duration of simulated seconds.
func (c pacedClock) real(s float64) time.Duration {
	return time.Duration(math.Min(s/c.scale, 1e6) * float64(time.Second))
}

// tick is the granularity of sleeping, real time: the loop never spins and catches up in batches.
const tick = time.Millisecond

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// pace drives the engine by the wall clock until it fails or ctx ends: it completes the steps that are due, hands
// tokens to their streams, writes the log, and sleeps until the next step or the next request.
func (s *server) pace(ctx context.Context) *Failure {
	timer := time.NewTimer(tick)
	defer timer.Stop()
	for {
		now := s.clock.now()
		s.mu.Lock()
		if !s.frozen {
			s.eng.Advance(now)
		}
		s.publish(time.Now())
		next, failure, frozen := s.eng.NextEvent(), s.eng.Failed(), s.frozen
		free := s.eng.freeGiB()
		s.mu.Unlock()
		s.log.flush()
		if failure != nil {
			return failure
		}
		s.claims.setGPU(&s.l.p, &s.l.b, free)
		d := max(s.clock.real(next-s.clock.now()), tick)
		if frozen {
			d = time.Second
		}
		timer.Reset(d)
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-s.wake:
		}
	}
}

// publish tells streams what happened since the last turn. What falls within mergeWindow of real time goes out
// as one event; the first token and the end are told at once. Callers hold s.mu.
func (s *server) publish(now time.Time) {
	kept := s.streams[:0]
	for _, st := range s.streams {
		r := st.r
		out := r.Out
		if !r.Done {
			out = s.l.d.streamed(out, s.l.s.StreamInterval)
		}
		fresh := out - st.told
		due := r.Done || st.live && fresh > 0 && (st.told == 0 || now.Sub(st.sent) >= mergeWindow)
		if due {
			if s.book != nil && st.live {
				s.book.event(st, fresh)
			}
			st.told, st.sent = out, now
			st.put(progress{out: out, cached: max(r.Cached, 0), retracted: r.Retracted, done: r.Done, aborted: r.Aborted})
		}
		if !r.Done {
			kept = append(kept, st)
		}
	}
	clear(s.streams[len(kept):])
	s.streams = kept
	for _, r := range s.eng.takeFinished() {
		if s.book != nil {
			s.book.ended(r, s.eng.now)
		}
	}
}

// streamed is how many of the tokens made so far a stream is told: with --stream-interval N the first one and then
// each N more; 0.4.6 keeps the first back until N are there.
func (d *dialect) streamed(out, interval int) int {
	if out == 0 || interval <= 1 {
		return out
	}
	if d.release == r046 {
		return out / interval * interval
	}
	return 1 + (out-1)/interval*interval
}

// mergeWindow is the real time within which tokens of one stream share an event.
const mergeWindow = 5 * time.Millisecond
