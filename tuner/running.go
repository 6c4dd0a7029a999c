package tuner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"sgtune/trial"
)

// pollEvery is how often (real time) commands are looked for while trials run.
const pollEvery = time.Second

// twinName is the sampler of the lossless twin of a lossy baseline.
const twinName = "twin"

// running are the trials that run now, one on most hosts. The loop's goroutine begins and ends them and is the only
// one that changes anything; the runners' goroutines ask what their trial is compared with, and send its end.
type running struct {
	mu   sync.Mutex
	of   map[int]*inFlight // by number
	ends chan ending       // has room for all, so that no runner waits for the loop
}

// inFlight is one running trial.
type inFlight struct {
	trial *trial.Trial // its runner's own until its end
	alone bool         // nothing may be launched beside it
	best  sieve        // what it is compared with
	abort context.CancelCauseFunc
	void  string // a person said that it is contaminated: the reason
}

// ending is what a runner said last of its trial.
type ending struct {
	of       *inFlight
	err      error
	panicked any // goes on in the loop
}

// runsAlone reports whether others are measured against a trial, or wait for what it says: its host must
// not be another than theirs in any way that can be helped.
func runsAlone(t *trial.Trial) bool { return t.Role != trial.RoleSearch || t.Sampler == twinName }

func (r *running) reset() { r.of, r.ends = map[int]*inFlight{}, make(chan ending, mostParallel) }

// start hands a trial to its runner.
func (r *running) start(ctx context.Context, run func(context.Context, *trial.Trial) error, t *trial.Trial, best sieve) {
	ctx, abort := context.WithCancelCause(ctx)
	one := &inFlight{trial: t, alone: runsAlone(t), best: best, abort: abort}
	r.mu.Lock()
	r.of[t.Number] = one
	r.mu.Unlock()
	go func() {
		end := ending{of: one}
		defer func() {
			end.panicked = recover()
			r.ends <- end
		}()
		end.err = run(ctx, t)
	}()
}

// ended takes a trial off.
func (r *running) ended(one *inFlight) {
	one.abort(nil)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, one.trial.Number)
}

// sieve is what a running trial is compared with; asked by its runner.
func (r *running) sieve(number int) sieve {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one := r.of[number]; one != nil {
		return one.best
	}
	return sieve{}
}

// abort ends all trials that run.
func (r *running) abort(cause error) {
	for _, one := range r.of {
		one.abort(cause)
	}
}

// alone reports whether one runs that nothing may run beside.
func (r *running) alone() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(r.of)), func(one *inFlight) bool { return one.alone })
}

// land waits until a trial has ended, and says how it went and what still fits.
func (l *Loop) land(ctx context.Context) error {
	end := l.await(ctx)
	l.running.ended(end.of)
	if end.panicked != nil {
		panic(end.panicked)
	}
	t := end.of.trial
	if err := errors.Join(end.err, l.contaminated(ctx, t, end.of.void)); err != nil {
		return &Stopped{Cause: err, Reason: fmt.Sprintf("stopped: %v", err)}
	}
	if !t.State.Finished() {
		return fmt.Errorf("trial %d came back %s from its runner", t.Number, t.State)
	}
	ctx = context.WithoutCancel(ctx)
	return errors.Join(l.report(ctx, t), l.tellStuck(ctx, t))
}

// landAll waits for all that still run once the study must stop: whatever stops it, they are measured, released and
// stored as if it went on. Its error is the first reason, with what came after it.
func (l *Loop) landAll(ctx context.Context, why error) error {
	for len(l.running.of) > 0 {
		if err := l.land(ctx); err != nil {
			why = &Stopped{Cause: errors.Join(why, err), Reason: fmt.Sprintf("%v; %v", why, err)}
		}
	}
	return why
}

// await waits for the end of a trial, while commands and the study's last minute are watched for.
func (l *Loop) await(ctx context.Context) ending {
	var over <-chan time.Time
	if !l.deadline.IsZero() {
		over = l.Clock.After(l.deadline.Sub(l.Clock.Now()))
	}
	every := l.Poll
	if every <= 0 {
		every = pollEvery
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case end := <-l.running.ends:
			return end
		case <-over:
			l.running.abort(trial.ErrDeadline)
		case <-tick.C:
			if l.overdue() { // the timer above stood still while the machine slept
				l.running.abort(trial.ErrDeadline)
			}
			if ctx.Err() == nil {
				// A store that fails here fails the trials' own saves too, which stop the study.
				_ = l.takeCommands(context.WithoutCancel(ctx))
			}
		}
	}
}

// atOnce is how many search trials may run at the same time: one, but for a cluster that has a host for each.
func (s *Study) atOnce() int {
	if s.Host.Kind == HostSlurm {
		return min(max(1, s.Host.Slurm.Parallel), mostParallel)
	}
	return 1
}
