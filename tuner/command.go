package tuner

import (
	"context"
	"fmt"

	"sgtune/trial"
)

// takeCommands does what people asked for, oldest first. Each command is handed out once, also
// when several programs look.
func (l *Loop) takeCommands(ctx context.Context) error {
	for {
		c, err := l.Store.TakeCommand(ctx, l.Study.Name)
		if err != nil {
			return fmt.Errorf("take a command: %w", err)
		}
		if c == nil {
			return nil
		}
		if err := l.obey(ctx, c); err != nil {
			return fmt.Errorf("command %d (%s): %w", c.ID, c.Kind, err)
		}
	}
}

// by names who asked, for the end of a line; "" where it is not known.
func (c *Command) by() string {
	if c.By == "" {
		return ""
	}
	return ", asked for by " + c.By
}

func (l *Loop) obey(ctx context.Context, c *Command) error {
	note := Event{Kind: "command"}
	switch c.Kind {
	case "stop_after_trial":
		l.stop = "stopped after the trial, as a person asked; run the study again to go on"
		note.Text = "stop after this trial" + c.by()
	case "stop_now":
		l.stop = "stopped at once, as a person asked; run the study again to go on"
		note.Text = "stop now" + c.by()
		l.running.abort(trial.ErrStopped)
	case "void":
		return l.void(ctx, c)
	case "enqueue":
		return l.enqueue(ctx, c)
	default:
		note.Text = fmt.Sprintf("command %q is not known and was ignored", c.Kind)
	}
	return l.event(ctx, note)
}

// void marks a trial as contaminated: a finished one through its void mark, one that runs by
// ending it. Its configuration is queued again.
func (l *Loop) void(ctx context.Context, c *Command) error {
	reason := c.Text
	if reason == "" {
		reason = "a person marked it void"
	}
	note := Event{Kind: "command", Trial: &c.Trial, Text: fmt.Sprintf("trial %d is void: %s", c.Trial, reason) + c.by()}
	if one := l.running.of[c.Trial]; one != nil {
		one.void = reason // its work may be over, and then nothing is left to end: land marks it
		one.abort(fmt.Errorf("%w: %s", trial.ErrVoid, reason))
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
	if err := l.Store.VoidTrial(ctx, l.Study.Name, t.Number, reason); err != nil {
		return err
	}
	return l.event(ctx, note)
}

// contaminated marks a trial that was asked to be void after its work was over: there was nothing left to end.
func (l *Loop) contaminated(ctx context.Context, t *trial.Trial, reason string) error {
	if reason == "" || !t.State.Finished() || t.Void != "" {
		return nil
	}
	t.Void = reason
	return l.Store.VoidTrial(context.WithoutCancel(ctx), l.Study.Name, t.Number, reason)
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
		return l.event(ctx, Event{Kind: "reject", Config: c.Config, Text: "asked for by a person, not admitted: " + why + c.by()})
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
	return l.event(ctx, Event{Kind: "command", Trial: &t.Number, Config: config, Text: "enqueued as trial " + fmt.Sprint(t.Number) + c.by()})
}
