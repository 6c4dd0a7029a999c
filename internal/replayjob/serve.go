package replayjob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"sgtune/benchmark"
)

const (
	jobWait   = 5 * time.Minute        // for the job, after the hello
	abortWait = 700 * time.Millisecond // for a cut level, when the caller is gone
	lastWords = 200 * time.Millisecond // for the last events then
	flushWait = 30 * time.Second       // for the last events when there is somebody to read them
)

// Serve says hello on out, reads one job from in, does it and tells on out what came of it. It returns nil when
// a result was sent, a *Failure when an error was sent instead, and an error that wraps ErrGone when there was
// nobody to send either to: the load has ended then too.
//
// It does not close in. What it read of it last may still be on its way; nobody else should read from it.
func Serve(ctx context.Context, in io.Reader, out io.Writer, version string) error {
	ctx, gone := context.WithCancelCause(ctx)
	defer gone(nil)
	level, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	box := newOutbox(out, func(err error) { gone(fmt.Errorf("%w: %w", ErrGone, err)) })
	box.put(Event{Hello: &Hello{
		Program: Program, Protocol: Protocol, Version: version,
		Platform: runtime.GOOS + "/" + runtime.GOARCH, PID: os.Getpid(),
	}})
	peer := listen(in, gone, stop)
	peer.expect(jobWait)
	defer peer.silent.Stop()
	done := make(chan Event, 1)
	go func() { done <- work(level, peer, box) }()
	select {
	case e := <-done:
		return farewell(ctx, box, e)
	case <-ctx.Done():
	}
	limit := time.NewTimer(abortWait)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C: // a workload that is being read is left to the end of the program
	}
	box.close(lastWords)
	return context.Cause(ctx)
}

// farewell sends the last event, if there is still somebody to send it to.
func farewell(ctx context.Context, box *outbox, last Event) error {
	wait := flushWait
	if ctx.Err() != nil {
		wait = lastWords
	}
	box.put(last)
	if box.close(wait); !box.delivered() {
		return cmp.Or(context.Cause(ctx), ErrGone)
	}
	if last.Error != nil {
		return last.Error
	}
	return nil
}

// work does the job and returns the last event.
func work(ctx context.Context, peer *caller, box *outbox) Event {
	job, err := peer.job(ctx)
	if err != nil {
		return failed(FailedProtocol, err)
	}
	peer.expect(time.Duration(job.Silence))
	r, failure := prepare(ctx, job)
	if failure != nil {
		return Event{Error: failure}
	}
	if ctx.Err() != nil {
		return failed(FailedStopped, errors.New("stopped before the level began"))
	}
	box.put(Event{Prepared: r.told()})
	opts := job.Load.Options()
	opts.OnWindow = func(w benchmark.Window) { box.put(Event{Window: &w}) }
	opts.Prune = asks(ctx, job, peer, box)
	if r.warmup != nil {
		opts.WarmupFeed = r.warmup
	}
	report, err := benchmark.Run(ctx, r.target, r.feed, opts, func(q benchmark.Request) { box.finished(q, job.Samples) })
	if report == nil {
		return failed(FailedJob, err)
	}
	return Event{Result: &Result{Report: report, Next: int(r.feed.taken.Load()), Stopped: err != nil, Note: r.calibration.Note()}}
}

// The wait for an answer to an Ask: a quarter of a window, within these. Several round trips of a slow link fit
// in, and little is sent after the end of a window that was the last.
const (
	leastAsk = 250 * time.Millisecond
	mostAsk  = 2 * time.Second
)

// asks is Options.Prune: the caller's answer for this very window if it wants to be asked, else what it said so
// far. Waiting holds up nothing but the decision; the level's clients go on, and what a pruned level did
// after the window's end is not counted.
func asks(ctx context.Context, job Job, peer *caller, box *outbox) func([]float64) bool {
	number, limit := 0, mostAsk
	if job.Load.Window > 0 {
		limit = min(max(time.Duration(job.Load.Window)/4, leastAsk), mostAsk)
	}
	return func(windows []float64) bool {
		if !job.Prune {
			return peer.pruned.Load()
		}
		number++
		box.put(Event{Ask: &Ask{Number: number, Windows: windows}})
		return peer.prune(ctx, number, limit)
	}
}

func failed(kind string, err error) Event {
	var known *Failure
	if errors.As(err, &known) {
		return Event{Error: known}
	}
	return Event{Error: &Failure{kind, err.Error()}}
}
