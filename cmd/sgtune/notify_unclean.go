package main

import (
	"context"
	"errors"
	"os"

	"sgtune/trial"
	"sgtune/tuner"
)

// tellUnclean tells people of a host that could not be cleaned before there was a study that could tell them. Its error
// is that of the telling.
func (n *night) tellUnclean(ctx context.Context, why error) error {
	if !errors.Is(why, trial.ErrDirtyHost) {
		return nil
	}
	m := tuner.Message{
		Kind: tuner.MessageDirty, Study: n.study.Name, State: tuner.StudyStopped, Reason: why.Error(), Simulated: n.study.Simulated,
		Text: "study " + n.study.Name + " was not begun anew: " + why.Error(),
	}
	if m.Simulated {
		m.Text = "SIMULATED; " + m.Text
	}
	to := newNotifier(secrets(n.study, os.Environ()))
	var failed error
	for _, one := range n.study.Finish.Notify {
		failed = errors.Join(failed, to.send(context.WithoutCancel(ctx), one, m))
	}
	return failed
}
