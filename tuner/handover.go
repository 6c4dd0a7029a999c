package tuner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sgtune/sglang"
	"sgtune/trial"
)

// finishLimit bounds what runs after the study (real time): a hanging after: must not keep the
// program forever. A server that is launched last gets its ready_timeout and finishSlack at least.
const (
	finishLimit = 30 * time.Minute
	finishSlack = 5 * time.Minute
)

// Host is what the loop needs of the machine beside the trial runner. cmd wires it.
type Host interface {
	// Recover reclaims what a dead sgtune left: it ends every marked process, proves the host
	// clean and stores the given running rows as failed / aborted. trial.ErrDirtyHost when it
	// cannot. running may be empty.
	Recover(ctx context.Context, running []*trial.Trial) error
	// Facts reads who holds the host and what admission needs, now; nothing of ours is running.
	Facts(ctx context.Context) (HostFacts, error)
	// Run runs a before: or after: program on the host to its end.
	Run(ctx context.Context, argv []string) error
	// Launch starts a server that outlives sgtune and carries no trial marker. The text names its
	// pid and flags.
	Launch(ctx context.Context, c sglang.Config) (text string, err error)
}

// handOver takes the host over: what a dead sgtune left is reclaimed first, then before: frees the
// GPUs, and whoever still holds them is named. That after: is owed is stored before before: runs.
func (l *Loop) handOver(ctx context.Context) error {
	h, err := l.history(ctx)
	if err != nil {
		return err
	}
	running := h.where(func(t *trial.Trial) bool { return t.State == trial.Running })
	// Not to be cut short by a person: what is half reclaimed would still be there when after: runs.
	if err := l.Host.Recover(context.WithoutCancel(ctx), running); err != nil {
		return &Stopped{Cause: err, Reason: fmt.Sprintf("the host could not be cleaned of what an earlier run left: %v", err)}
	}
	if len(running) > 0 {
		if err := l.event(ctx, Event{Kind: "host", Text: fmt.Sprintf(
			"an earlier run ended without cleaning up: reclaimed the host from %s; what it was to measure is launched again if the budget allows", numbers(running))}); err != nil {
			return err
		}
	}
	if len(l.Study.Before) > 0 {
		if facts, err := l.Host.Facts(ctx); err == nil { // unreadable ones are read again below
			if err := fit(facts); err != nil {
				return err
			}
			if err := l.sameMachine(ctx, h, facts); err != nil {
				return err
			}
		}
		if err := l.before(ctx); err != nil {
			return err
		}
	}
	facts, err := l.Host.Facts(ctx)
	if err != nil {
		return fmt.Errorf("read the host's facts: %w", err)
	}
	if err := fit(facts); err != nil {
		return err
	}
	if err := l.sameMachine(ctx, h, facts); err != nil {
		return err
	}
	if len(facts.Residents) > 0 {
		return &Stopped{Cause: ErrHeld, Reason: fmt.Sprintf("the host is held by sgtune's own: %s; stop it, or have before: do that, then run the study again",
			strings.Join(facts.Residents, "; "))}
	}
	if held := heldBy(facts); len(held) > 0 {
		return &Stopped{Cause: ErrHeld, Reason: fmt.Sprintf(
			"the host is held by somebody else: %s; stop it, or free it with before:, then run the study again", strings.Join(held, "; "))}
	}
	l.facts = facts
	return l.owe(ctx)
}

// numbers names trials: "trial 3", "trials 3, 4".
func numbers(h History) string {
	var all []string
	for _, t := range h {
		all = append(all, fmt.Sprint(t.Number))
	}
	if len(all) == 1 {
		return "trial " + all[0]
	}
	return "trials " + strings.Join(all, ", ")
}

func (l *Loop) before(ctx context.Context) error {
	if err := l.owe(ctx); err != nil {
		return err
	}
	words := strings.Join(l.Study.Before, " ")
	if err := l.Host.Run(ctx, l.Study.Before); err != nil {
		if ctx.Err() != nil {
			return byPerson(ctx)
		}
		return &Stopped{Cause: errors.Join(ErrHandOver, err), Reason: fmt.Sprintf("before: (%s) failed: %v", words, err)}
	}
	return l.event(ctx, Event{Kind: "host", Text: "before: done: " + words})
}

// unlisted is the share of a GPU's memory in use from which on there must be a holder, listed or not.
const unlisted = 0.05

// heldBy says who holds what the trials need, a line each.
func heldBy(f HostFacts) []string {
	var held []string
	for _, g := range f.GPUs {
		switch {
		case len(g.Holders) > 0:
			held = append(held, fmt.Sprintf("GPU %d by %s", g.Index, strings.Join(g.Holders, ", ")))
		case float64(g.Used) > unlisted*float64(g.Total):
			held = append(held, fmt.Sprintf("GPU %d: %s used with no process listed (the holder is outside this container or VM)", g.Index, FormatSize(float64(g.Used))))
		}
	}
	if len(f.PortHolders) > 0 {
		held = append(held, "the study's port by "+strings.Join(f.PortHolders, ", "))
	}
	return held
}

// owe stores that after: or the launch at the end must happen, whatever comes.
func (l *Loop) owe(ctx context.Context) error {
	l.Record.AfterDue, l.Record.AfterDone = len(l.Study.After) > 0 || l.launchesLast(), ""
	return l.save(ctx)
}

// finish ends the study, however it ended: the outcome is stored, what is owed to the host is done
// unless it is dirty, and people are told. It returns the study's own error, or else its own.
func (l *Loop) finish(ctx context.Context, v *Verdict, ended error) error {
	r := l.Record
	r.Verdict, r.State, r.Reason, r.EndedAt = v, StudyComplete, "", l.Clock.Now()
	r.Releases = l.releases(ctx)
	if ended != nil {
		r.State, r.Reason = StudyStopped, ended.Error()
	}
	// Held, and not clean since our last trial: what holds it is most likely what that trial left.
	dirty := errors.Is(ended, trial.ErrDirtyHost) || errors.Is(ended, trial.ErrLeft) || errors.Is(ended, ErrHeld) && l.leftDirty(ctx)
	err := l.save(ctx)
	if r.AfterDue && r.AfterDone == "" {
		limited, cancel := context.WithTimeout(ctx, max(finishLimit, l.Study.ReadyTimeout+finishSlack))
		r.AfterDone = l.after(limited, v, dirty)
		cancel()
		r.AfterDue = dirty // still owed: a later tune that finds the host clean does it
		err = errors.Join(err, l.save(ctx), l.event(ctx, Event{Kind: "host", Text: r.AfterDone}))
	}
	err = errors.Join(err, l.tellEnd(ctx, ended, dirty))
	if ended != nil {
		return ended
	}
	return err
}

// releases says in words whether the host was left clean, by its last trial.
func (l *Loop) releases(ctx context.Context) string {
	h, err := l.history(ctx)
	if err != nil {
		return "" // the store fails; the save that follows says so
	}
	last := ""
	if t := lastRelease(h); t != nil {
		switch t.Release {
		case trial.ReleaseVerified:
			last = "clean: verified after the last trial"
		case trial.ReleaseUnverified:
			last = "no process and no port left; GPU memory not verified (no GPU facts)"
		case trial.ReleaseDirty:
			last = "dirty: " + t.Verdict.Text
		case trial.ReleaseNone:
		}
	}
	return last
}

// leftDirty reports whether the last launch left the host dirty.
func (l *Loop) leftDirty(ctx context.Context) bool {
	h, _ := l.history(ctx) // a store that fails says so with the next save
	t := lastRelease(h)
	return t != nil && t.Release == trial.ReleaseDirty
}

// lastRelease is the launch by which a host is judged, nil without one: the last to end, but a dirty one as long as
// none began after it.
func lastRelease(h History) (last *trial.Trial) {
	for _, t := range byEnd(h) {
		beside := last != nil && last.Release == trial.ReleaseDirty && t.StartedAt.Before(last.EndedAt)
		if t.Release != trial.ReleaseNone && !beside {
			last = t
		}
	}
	return last
}

// after runs what is owed and says in words how it went.
func (l *Loop) after(ctx context.Context, v *Verdict, dirty bool) string {
	words := strings.Join(l.Study.After, " ")
	if len(l.Study.After) > 0 {
		if dirty {
			return fmt.Sprintf("after: not run, because the host is dirty: run it by hand once it is clean: %s", words)
		}
		if err := l.Host.Run(ctx, l.Study.After); err != nil {
			return fmt.Sprintf("after: failed: %v (%s)", err, words)
		}
		return "after: ok: " + words
	}
	what, c := "the baseline", l.Study.Baseline
	if l.Study.Finish.Launch == "best" && v != nil && v.Answer == "better" {
		what, c = fmt.Sprintf("the winner (trial %d)", v.Trial), v.Config
	}
	if dirty {
		return fmt.Sprintf("finish: %s was not launched, because the host is dirty", what)
	}
	text, err := l.Host.Launch(ctx, c)
	if err != nil {
		return fmt.Sprintf("finish: launching %s failed: %v", what, err)
	}
	return fmt.Sprintf("finish: launched %s: %s", what, text)
}

// byPerson is the error of a study whose context ended.
func byPerson(ctx context.Context) error {
	cause := context.Cause(ctx)
	if !errors.Is(cause, trial.ErrStopped) {
		cause = errors.Join(trial.ErrStopped, cause)
	}
	return &Stopped{Cause: cause, Reason: "stopped by a person; nothing finished is lost: run the study again to go on"}
}
