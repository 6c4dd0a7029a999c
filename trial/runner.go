package trial

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sgtune/benchmark"
	"sgtune/host"
	"sgtune/sglang"
)

// ErrDirtyHost is returned by Run when the host could not be proven clean: the study must stop.
var ErrDirtyHost = errors.New("the host is dirty")

// Causes that end a trial's work through its context; the first one wins and picks the state.
var (
	ErrStopped  = errors.New("stopped by a person")       // -> cancelled
	ErrPruned   = errors.New("pruned: hopeless")          // -> pruned
	ErrDeadline = errors.New("the study's time is over")  // -> failed, aborted, requeue
	ErrVoid     = errors.New("the trial is contaminated") // -> failed, aborted, with a void mark
)

// Runner runs trials on one host. Its fields are set once.
type Runner struct {
	Host          host.Host
	Replayer      Replayer // nil = this process puts the load on the server
	Store         Saver
	Clock         benchmark.Clock
	Server        sglang.Server
	Instruments   []string // instrument flags as argv words, same for every trial
	InstrumentEnv map[string]string
	Load          Load
	Files         string            // folder of the study's evidence; a trial's lies in Files/NUMBER
	ReadyTimeout  time.Duration     // host time from launch to ready
	Grace         time.Duration     // host time a ready server gets after SIGTERM
	Guard         *host.GuardLimits // within which a host that can do so guards the server, nil = none
	Hurry         <-chan struct{}   // closed by the second Ctrl-C: grace becomes 0
	Port          int               // fixed port, 0 = choose
	Version       sglang.Version    // of the installed server where it is known; else the log's wording tells
	Who           string            // this sgtune, as an adopted trial names it
	Secrets       []string          // exact values masked in all evidence (those of the study's secret variables)
	Scratch       string            // where the running server's raw log lies, owner only; "" = the system's temporary folder, where Recover looks
	// Score gives a trial's value from its levels: the objective at the best level that meets the SLO.
	Score func([]Level) (value float64, concurrency int, ok bool)
	// Prune is asked after each window of a level with that level's windows (output tok/s).
	Prune func(t *Trial, windows []float64) bool
	// Hopeless is asked after a level was stopped early whether the levels left are hopeless too, which ends
	// the trial; nil = they are. It is not asked once a level was measured in full.
	Hopeless func(t *Trial) bool
	// More is asked when the plan's levels are measured for a further one; nil = there is none.
	More     func(t *Trial) (concurrency int, ok bool)
	Progress func(Progress)          // may be nil; must not block
	Asleep   func() time.Duration    // how long this machine has slept, by which Clock is behind; nil = it never does
	Notice   func(kind, text string) // facts worth an event (canary shrunk, monitor disagreed); may be nil; called from several goroutines
}

// Run runs t from admit to its finished row. A failed trial is a result and no error; an error
// means that the study must stop: the host is dirty (ErrDirtyHost), its GPUs are broken or split (ErrUnfitHost), or a
// row could not be stored.
//
// The order of these lines is what keeps hosts clean: whatever work does, also when it
// panics, reclaim and the last save come after it, on a context that nobody can cancel.
func (r *Runner) Run(ctx context.Context, t *Trial) error {
	a := r.begin(t)
	a.settle(ctx)
	return a.run(ctx)
}

// run is Run of a trial that has begun.
func (a *attempt) run(ctx context.Context) error {
	err := a.work(ctx)
	a.reclaim(context.WithoutCancel(ctx))
	if a.released.left != nil {
		return leftBehind(a.t, a.released.left) // the row stays running, so that the next sgtune recovers it
	}
	a.finish(err)
	return a.close(context.WithoutCancel(ctx))
}

// work takes the steps in order until one fails, the server dies or the context ends; the first of
// those causes is its error. The row is stored before each step.
func (a *attempt) work(ctx context.Context) error {
	ctx, a.abort = context.WithCancelCause(ctx)
	defer a.abort(nil)
	for _, s := range a.steps() {
		if err := a.step(ctx, s.step, s.do); err != nil {
			return err
		}
	}
	return nil
}

// todo is one step of a trial's work.
type todo struct {
	step Step
	do   func(context.Context) error
}

// steps are all of a trial's work; an adopted server is past its start.
func (a *attempt) steps() []todo {
	load := []todo{{StepCanary, a.canary}, {StepWarmup, a.warmup}, {StepMeasure, a.measure}}
	if a.process != nil {
		load[0].do = a.resume
		return load
	}
	return append([]todo{{StepAdmit, a.admit}, {StepLaunch, a.launch}, {StepWait, a.wait}}, load...)
}

// step stores the row and then takes one step. It returns the first cause of a failure: a store
// error, else what ended the context, else the step's own error.
func (a *attempt) step(ctx context.Context, s Step, do func(context.Context) error) error {
	err := guard(func() error {
		if err := a.enter(ctx, s); err != nil {
			return err
		}
		return do(ctx)
	})
	var unsaved *storeError
	if err == nil || errors.As(err, &unsaved) {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// enter books the time of the step before, stores the row with the new step and shows it.
func (a *attempt) enter(ctx context.Context, s Step) error {
	a.leave()
	a.t.Step, a.since = s, a.Clock.Now()
	if err := a.save(ctx); err != nil {
		return err
	}
	a.report(stepText[s])
	return context.Cause(ctx)
}

// save stores the row as it is now. The first failure is remembered: it stops the study.
func (a *attempt) save(ctx context.Context) error {
	a.absorb()
	err := a.store(ctx)
	if err == nil {
		return nil
	}
	failed := &storeError{a.t.Number, a.t.Step, err}
	if a.unsaved == nil {
		a.unsaved = failed
	}
	return failed
}

// store is one call of the Saver that the end of the trial's work never cuts short.
func (a *attempt) store(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeLimit)
	defer cancel()
	return a.Store.SaveTrial(ctx, a.t)
}

// finish turns everything known into the finished row. Nothing below it touches the host.
func (a *attempt) finish(err error) {
	if problem := guard(func() error { a.judge(err); return nil }); problem != nil {
		a.t.State = Failed
		a.t.Verdict = Verdict{Outcome: Unknown, Phase: sglang.PhaseLaunch, Cause: "unknown", Blames: BlameNo, Text: problem.Error()}
	}
	a.leave()
	a.t.Step, a.t.EndedAt = a.final, a.Clock.Now()
}

// close stores the finished row, trying again for a while (a full disk, a locked file), and says
// whether the study may go on.
func (a *attempt) close(ctx context.Context) error {
	var err error
	for _, pause := range append([]time.Duration{0}, storeRetries...) {
		if pause > 0 {
			a.report("the row could not be stored, trying again: " + err.Error())
			a.pause(ctx, a.floor(pause, pause/50))
		}
		if err = guard(func() error { return a.store(ctx) }); err == nil {
			break
		}
	}
	if err != nil {
		err = fmt.Errorf("trial %d ended %s and this could not be stored; its evidence is in %s: %w", a.t.Number, a.t.State, a.dir(), err)
		a.unsaved = nil // the same trouble, said once
	}
	var early *storeError
	if err == nil && errors.As(a.unsaved, &early) && early.step == StepSave {
		a.unsaved = nil // the finished row got through after all
	}
	if a.t.Release == ReleaseDirty {
		err = errors.Join(fmt.Errorf("trial %d: %w: %s", a.t.Number, ErrDirtyHost, a.released.Text), err)
	}
	return errors.Join(a.unsaved, err, a.unfit())
}
