package tuner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sgtune/benchmark"
	"sgtune/trial"
)

// TrialRunner runs one trial from its waiting row to its finished one. trial.Runner does on a
// host; tests and the simulator do in virtual time. It is called in a goroutine of its own for each trial, for several at
// once where the study has several run. An error means that the study must stop.
type TrialRunner interface {
	Run(ctx context.Context, t *trial.Trial) error
}

// Loop runs a study. It keeps nothing between turns that is not in the store: each turn reads the
// history, decides what comes next and stores that before doing it, so a study that was killed at
// any instant is continued by running it again.
type Loop struct {
	Study    *Study
	Record   *Record // the study's row as stored; new when the study is
	Store    Store
	Runner   TrialRunner
	Host     Host
	Clock    benchmark.Clock // host time
	Sleep    Sleeper         // of the machine sgtune runs on; nil = it never sleeps
	Sampler  Sampler
	Workload *benchmark.Workload                                   // what samplers may know of the load, may be nil
	Notify   func(ctx context.Context, to Notify, m Message) error // delivers one notification; nil = none
	Observe  func(e Event)                                         // sees every stored event, from several goroutines; must not block; may be nil
	Show     func(s Status)                                        // sees where the study stands at each turn; must not block; may be nil
	Poll     time.Duration                                         // real time between looks for commands, 0 = a second

	end      time.Time // host time at which everything is over, finishTime left out; zero = no limit
	deadline time.Time // host time at which no trial may run any more
	first    int       // number of the first trial of this run of the program
	facts    HostFacts // as taken over
	running  running
	stop     string          // a person asked to stop: the reason
	told     map[string]bool // rejections already stored, by rule and point
	hungTold bool            // people were told of a server that hung

	abortBelow float64 // the sampler's own limit for the trial at hand, 0 = none
	chosen     choice  // of the candidate, as made in this run of the program
}

// Run runs the study to its verdict: hand over, baseline, search, confirm, verdict, finish. The
// caller holds the host's lease. A study that already has its verdict returns it. Without a
// verdict the error is a *Stopped where the reason is the study's; to stop it, end ctx with the
// cause trial.ErrStopped.
func (l *Loop) Run(ctx context.Context) (*Verdict, error) {
	if l.Record == nil {
		l.Record = &Record{}
	}
	h, err := l.history(ctx)
	if err != nil {
		return nil, err
	}
	if l.settled(h) {
		if l.Record.AfterDue && l.Record.AfterDone == "" {
			return l.Record.Verdict, l.finish(context.WithoutCancel(ctx), l.Record.Verdict, nil)
		}
		return l.Record.Verdict, nil
	}
	if err := l.begin(ctx, h); err != nil {
		return nil, err
	}
	verdict, err := l.night(ctx)
	if stopped := (*Stopped)(nil); err != nil && ctx.Err() != nil && !errors.As(err, &stopped) {
		err = byPerson(ctx) // whatever was cut short by it says only that
	}
	return verdict, l.finish(context.WithoutCancel(ctx), verdict, err)
}

// night is the study between its first and its last line: take the host over, then one trial after
// the other until nothing is left to launch, several at once where there is a host for each. All of it is decided
// in this goroutine.
func (l *Loop) night(ctx context.Context) (*Verdict, error) {
	if err := l.adopt(ctx); err != nil {
		return nil, l.landAll(ctx, err)
	}
	if err := l.handOver(ctx); err != nil {
		return nil, err
	}
	for {
		begun, err := l.launchNext(ctx)
		switch {
		case err != nil:
		case begun && len(l.running.of) < l.Study.atOnce():
			continue
		case len(l.running.of) == 0:
			return l.verdict(ctx)
		default:
			err = l.land(ctx)
		}
		if err != nil {
			return nil, l.landAll(ctx, err)
		}
	}
}

// launchNext decides what comes next and launches it; begun is false when there is nothing to be launched now.
func (l *Loop) launchNext(ctx context.Context) (begun bool, err error) {
	h, err := l.turn(ctx)
	if err != nil {
		return false, err
	}
	t, err := l.next(ctx, h)
	if t == nil || err != nil {
		return false, err
	}
	return true, l.launch(ctx, h, t)
}

// turn takes commands, reads the history and says whether the study may go on.
func (l *Loop) turn(ctx context.Context) (History, error) {
	if ctx.Err() != nil {
		return nil, byPerson(ctx)
	}
	if err := l.takeCommands(ctx); err != nil {
		return nil, err
	}
	if l.stop != "" {
		return nil, &Stopped{Cause: trial.ErrStopped, Reason: l.stop}
	}
	return l.mayGoOn(ctx)
}

// next is the trial to launch now, nil when there is none beside those that run: the study is at its end if none
// do. The phases are asked in order; the first that has something to do takes the turn.
func (l *Loop) next(ctx context.Context, h History) (*trial.Trial, error) {
	phases := []func(context.Context, History) (*trial.Trial, error){l.waiting, l.baseline, l.anchor, l.search, l.confirm}
	if len(l.running.of) > 0 {
		if anchor, err := l.anchor(ctx, h); anchor != nil || err != nil || l.running.alone() {
			return nil, err // nothing may run beside it, or beside what runs
		}
		phases = []func(context.Context, History) (*trial.Trial, error){l.waiting, l.search}
	}
	for _, phase := range phases {
		if t, err := phase(ctx, h); t != nil || err != nil {
			return t, err
		}
	}
	return nil, nil
}

// launch stores the trial as waiting and has it run.
func (l *Loop) launch(ctx context.Context, h History, t *trial.Trial) error {
	if h.Numbered(t.Number) == nil {
		if err := l.Store.SaveTrial(ctx, t); err != nil {
			return fmt.Errorf("save trial %d: %w", t.Number, err)
		}
	}
	l.show(append(h[:len(h):len(h)], t), t)
	l.running.start(ctx, l.Runner.Run, t, l.sieve(h, t))
	l.abortBelow = 0
	return nil
}

// verdict stores what the study found.
func (l *Loop) verdict(ctx context.Context) (*Verdict, error) {
	h, err := l.history(ctx)
	if err != nil {
		return nil, err
	}
	v := l.conclude(h)
	return v, l.event(ctx, Event{Kind: "verdict", Trial: &v.Trial, Config: v.Config, Text: v.Text})
}

func (l *Loop) save(ctx context.Context) error {
	if err := l.Store.SaveStudy(ctx, l.Record); err != nil {
		return fmt.Errorf("save study %s: %w", l.Study.Name, err)
	}
	return nil
}

func (l *Loop) event(ctx context.Context, e Event) error {
	e.At = l.Clock.Now()
	if err := l.Store.AddEvent(ctx, l.Study.Name, e); err != nil {
		return fmt.Errorf("save event %q: %w", e.Text, err)
	}
	if l.Observe != nil {
		l.Observe(e)
	}
	return nil
}
