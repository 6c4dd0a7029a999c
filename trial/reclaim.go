package trial

import (
	"context"
	"errors"
	"os"
	"time"

	"sgtune/host"
)

const (
	stopTime     = time.Minute // host time for a killed group to be gone: unpinning host memory takes its time
	stopTimeReal = 30 * time.Second
)

// reclaim stops the server and proves the host clean. It always runs, on a context nobody cancels;
// what fails in it is remembered and never keeps the rest from being tried.
func (a *attempt) reclaim(ctx context.Context) {
	a.reached, a.reachedAfter, a.final = a.t.Step, a.sinceLaunch(), StepSave
	a.remember()
	a.fate(ctx)
	a.tidy(ctx, StepStop)
	if err := guard(func() error { return a.stop(ctx) }); err != nil {
		a.find("stop_failed", err.Error())
	}
	a.tidy(ctx, StepReclaim)
	if err := guard(func() error { a.released = a.premises().prove(ctx); return nil }); err != nil {
		a.released = released{Release: ReleaseDirty, Cause: "process_left", Text: "the check itself failed: " + err.Error()}
	}
	if a.process != nil {
		if err := guard(func() error { return a.readGuard(ctx) }); err != nil {
			a.find("guard_unknown", "what the guard of the server saw is not known: "+err.Error())
		}
		if err := guard(func() error { return a.forgetProcess(ctx) }); err != nil {
			a.find("raw_log_left", "the host still keeps the server's unmasked log: "+err.Error())
		}
	}
	a.giveBack(ctx)
	if a.t.Marker != "" {
		if err := os.RemoveAll(scratch(a.Scratch, a.t.Marker)); err != nil {
			a.find("raw_log_left", "the server's unmasked log could not be removed: "+err.Error())
		}
	}
	a.tidy(ctx, StepSave)
}

// forgetProcess has the host drop what it keeps of the server, once all of it that counts was read.
func (a *attempt) forgetProcess(ctx context.Context) error {
	ctx, cancel := a.within(ctx, stopTime, stopTimeReal)
	defer cancel()
	return host.Forget(ctx, a.process)
}

// tidy is enter for the steps that cannot be refused.
func (a *attempt) tidy(ctx context.Context, s Step) {
	if err := guard(func() error { return a.enter(ctx, s) }); err != nil && a.unsaved == nil {
		a.unsaved = err
	}
}

// remember keeps how the server was when work ended, before anybody stops it: what it prints while
// dying by our hand is no evidence.
func (a *attempt) remember() {
	if a.process == nil || a.watch == nil {
		return
	}
	a.exit = Exit{Alive: a.lives()}
	if !a.exit.Alive {
		a.exit.Exit = a.process.Exit()
	}
	a.log, a.first = a.watch.facts()
	a.last, a.silent = a.watch.latest(), a.watch.silence()
}

// stop ends the server as reference sglang.md 6 says. A ready one is asked (abort all, SIGTERM to the
// main process, the grace); one that loads, hangs or died badly is killed with its group at once:
// SIGTERM during a load leaves orphans that go on loading.
func (a *attempt) stop(ctx context.Context) error {
	if a.process == nil {
		return nil
	}
	var err error
	if a.ready && a.exit.Alive && !a.stuck && !a.unguarded.Load() && !a.hurry() && a.Grace > 0 {
		a.abortAll(ctx)
		err = a.end(ctx, a.Grace)
	} else {
		err = a.end(ctx, 0)
	}
	if a.watch != nil {
		a.watch.close(ctx)
		a.watch.recount(ctx)
		if !a.exit.Alive { // it died by itself: its last lines count, its children's too
			a.log, a.first = a.watch.facts()
			a.last = a.watch.latest()
		}
	}
	return err
}

// end calls Stop and, when a person gets into a hurry meanwhile, calls it again without grace.
func (a *attempt) end(ctx context.Context, grace time.Duration) error {
	ctx, cancel := a.within(ctx, grace+stopTime, stopTimeReal)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- guard(func() error { return a.process.Stop(ctx, grace) })
	}()
	select {
	case err := <-done:
		return err
	case <-a.Hurry: // nil without one: never
	}
	harder := a.process.Stop(ctx, 0)
	if first := <-done; harder != nil {
		return errors.Join(first, harder)
	}
	return nil
}

func (a *attempt) hurry() bool {
	select {
	case <-a.Hurry:
		return true
	default:
		return false
	}
}

// premises is what clean means for this trial.
func (a *attempt) premises() premises {
	p := premises{host: a.Host, clock: a.Clock, marker: a.t.Marker, launched: a.started}
	if a.started {
		p.port, p.before = a.t.Port, a.t.GPUBaseline
	}
	return p
}
