package tuner

import (
	"context"
	"errors"
	"fmt"

	"sgtune/trial"
)

// What the next tune does with the server of a sgtune that died (recover: in the study file).
const (
	RecoverReclaim = "reclaim" // ends it and launches the configuration again
	RecoverAdopt   = "adopt"   // goes on with it where it was past its start and is proven to be ours, else reclaims
)

// Adopter is a TrialRunner that can go on with the trial of a sgtune that died. trial.Runner is one.
type Adopter interface {
	// Adopt takes over the server of a running row; goOn runs the trial to its finished row and must be called. The
	// error says why it cannot be taken over: then the row is as it was, for Host.Recover.
	Adopt(ctx context.Context, t *trial.Trial) (goOn func(context.Context, *trial.Trial) error, err error)
}

// adopt finishes the trial that an earlier run was in the middle of, on the server that it left, where the study asks for
// that and the server is proven to be the trial's. What cannot be adopted is left to handOver, which reclaims it.
func (l *Loop) adopt(ctx context.Context) error {
	adopter, ok := l.Runner.(Adopter)
	if l.Study.Recover != RecoverAdopt || !ok {
		return nil
	}
	h, err := l.history(ctx)
	if err != nil {
		return err
	}
	left := h.where(func(t *trial.Trial) bool { return t.State == trial.Running })
	if len(left) == 0 {
		return nil
	}
	t := left[0]
	var goOn func(context.Context, *trial.Trial) error
	if err = errors.New("not adopted: a host has one server at a time"); len(left) == 1 {
		goOn, err = adopter.Adopt(ctx, t)
	}
	if err != nil {
		return l.event(context.WithoutCancel(ctx), Event{Kind: "host", Trial: &t.Number, Config: t.Config, Text: fmt.Sprintf(
			"the server that an earlier run left in %s is reclaimed, %v", numbers(left), err)})
	}
	adopted := Event{Kind: "host", Trial: &t.Number, Config: t.Config, Text: fmt.Sprintf(
		"adopted the server that an earlier run left in trial %d (pid %d): its load is saved, and %d of %d load levels are measured already",
		t.Number, t.Process.PID, len(t.Levels), len(t.Plan))}
	l.setDeadline(h)
	l.show(h, t)
	l.running.start(ctx, goOn, t, l.sieve(h, t))
	return errors.Join(l.event(context.WithoutCancel(ctx), adopted), l.land(ctx))
}
