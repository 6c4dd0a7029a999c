package tuner

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sgtune/trial"
)

// pollEvery is how often (real time) commands are looked for while a trial runs.
const pollEvery = time.Second

// live is what the goroutines of a running trial may ask of the loop.
type live struct {
	mu     sync.Mutex
	number int    // running trial, -1 when none
	best   sieve  // what it is compared with while it runs
	stop   string // a person asked to stop: the reason
	void   string // the running trial is contaminated: the reason
}

func (v *live) start(number int, best sieve) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.number, v.best, v.void = number, best, ""
}

func (v *live) sieve(number int) sieve {
	v.mu.Lock()
	defer v.mu.Unlock()
	if number != v.number {
		return sieve{}
	}
	return v.best
}

func (v *live) running() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.number
}

func (v *live) askStop(reason string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.stop = reason
}

func (v *live) askVoid(reason string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.void = reason
}

func (v *live) voidAsked() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.void
}

func (v *live) stopAsked() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.stop
}

// attend watches for commands and for the study's last minute while a trial runs; abort ends the
// trial with its cause. The returned function stops the watch and waits for it.
func (l *Loop) attend(ctx context.Context, abort context.CancelCauseFunc) (done func()) {
	ctx, cancel := context.WithCancel(ctx)
	var over <-chan time.Time
	if !l.deadline.IsZero() {
		over = l.Clock.After(l.deadline.Sub(l.Clock.Now()))
	}
	every := l.Poll
	if every <= 0 {
		every = pollEvery
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-over:
				abort(trial.ErrDeadline)
				return
			case <-tick.C:
				if l.overdue() { // the timer above stood still while the machine slept
					abort(trial.ErrDeadline)
					return
				}
				// A store that fails here fails the trial's own saves too, which stop the study.
				_ = l.takeCommands(context.WithoutCancel(ctx), abort)
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// takeCommands does what people asked for, oldest first. Each command is handed out once, also
// when several programs look. abort is nil between trials.
func (l *Loop) takeCommands(ctx context.Context, abort context.CancelCauseFunc) error {
	for {
		c, err := l.Store.TakeCommand(ctx, l.Study.Name)
		if err != nil {
			return fmt.Errorf("take a command: %w", err)
		}
		if c == nil {
			return nil
		}
		if err := l.obey(ctx, c, abort); err != nil {
			return fmt.Errorf("command %d (%s): %w", c.ID, c.Kind, err)
		}
	}
}

func (l *Loop) obey(ctx context.Context, c *Command, abort context.CancelCauseFunc) error {
	note := Event{Kind: "command"}
	switch c.Kind {
	case "stop_after_trial":
		l.live.askStop("stopped after the trial, as a person asked; run the study again to go on")
		note.Text = "stop after this trial"
	case "stop_now":
		l.live.askStop("stopped at once, as a person asked; run the study again to go on")
		note.Text = "stop now"
		if abort != nil {
			abort(trial.ErrStopped)
		}
	case "void":
		return l.void(ctx, c, abort)
	case "enqueue":
		return l.enqueue(ctx, c)
	default:
		note.Text = fmt.Sprintf("command %q is not known and was ignored", c.Kind)
	}
	return l.event(ctx, note)
}

// void marks a trial as contaminated: a finished one through its void mark, the running one by
// ending it. Its configuration is queued again.
func (l *Loop) void(ctx context.Context, c *Command, abort context.CancelCauseFunc) error {
	reason := c.Text
	if reason == "" {
		reason = "a person marked it void"
	}
	note := Event{Kind: "command", Trial: &c.Trial, Text: fmt.Sprintf("trial %d is void: %s", c.Trial, reason)}
	if abort != nil && l.live.running() == c.Trial {
		l.live.askVoid(reason) // its work may be over, and then nothing is left to end: launch marks it
		abort(fmt.Errorf("%w: %s", trial.ErrVoid, reason))
		return l.event(ctx, note)
	}
	h, err := l.history(ctx)
	if err != nil {
		return err
	}
	t := h.Numbered(c.Trial)
	if t == nil || !t.State.Finished() {
		note.Text = fmt.Sprintf("trial %d cannot be made void: there is no such finished trial", c.Trial)
		return l.event(ctx, note)
	}
	t.Void = reason
	if err := l.Store.SaveTrial(ctx, t); err != nil {
		return fmt.Errorf("mark trial %d void: %w", t.Number, err)
	}
	return l.event(ctx, note)
}

// contaminated marks a trial that was asked to be void after its work was over: there was nothing left to end.
func (l *Loop) contaminated(ctx context.Context, t *trial.Trial) error {
	reason := l.live.voidAsked()
	if reason == "" || !t.State.Finished() || t.Void != "" {
		return nil
	}
	t.Void = reason
	if err := l.Store.SaveTrial(context.WithoutCancel(ctx), t); err != nil {
		return fmt.Errorf("mark trial %d void: %w", t.Number, err)
	}
	return nil
}

// enqueue stores a configuration a person wants to see launched as a waiting trial. Host safety
// and quality are checked like a sampler's proposal; the memory frontier is not: a person may
// know better than what was learnt.
func (l *Loop) enqueue(ctx context.Context, c *Command) error {
	h, err := l.history(ctx)
	if err != nil {
		return err
	}
	refused := func(why string) error {
		return l.event(ctx, Event{Kind: "reject", Config: c.Config, Text: "asked for by a person, not admitted: " + why})
	}
	config := l.problem(h, nil).config(c.Config)
	if l.Record.Candidate != nil {
		return refused("the search is over")
	}
	if p := l.plan(h); p.Limit > 0 && p.Launches >= p.Limit {
		return refused(fmt.Sprintf("the budget of %d trials is used", p.Limit))
	}
	if taken(h)[Key(config)] {
		return refused("this configuration was launched already or waits to be")
	}
	if err := l.rules(h)(config); err != nil {
		return refused(err.Error())
	}
	why := "asked for by a person"
	if c.Text != "" {
		why += ": " + c.Text
	}
	t := l.newTrial(h, trial.RoleSearch, Proposal{Config: config, Why: why, Sampler: "person"})
	if err := l.Store.SaveTrial(ctx, t); err != nil {
		return fmt.Errorf("save trial %d: %w", t.Number, err)
	}
	return l.event(ctx, Event{Kind: "command", Trial: &t.Number, Config: config, Text: "enqueued as trial " + fmt.Sprint(t.Number)})
}
