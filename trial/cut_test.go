package trial_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"sgtune/host"
	"sgtune/trial"
)

// cutLink is a rule of a gate: from cut on every call waits, as over a cut link, until its context ends or a person
// gives up.
func cutLink(cut, givenUp <-chan struct{}) func(context.Context, string, bool) error {
	return func(ctx context.Context, _ string, after bool) error {
		select {
		case <-cut:
		default:
			return nil
		}
		if after {
			return nil // the answer came before the cut
		}
		select {
		case <-givenUp:
			return host.ErrGivenUp
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// TestLeftOverACutLink: a trial is stopped while the link to its host is cut, and then a person does not want to wait.
// The runner comes back at once and leaves the row running; the next sgtune, to which the host answers, cleans up.
func TestLeftOverACutLink(t *testing.T) {
	t.Parallel()
	for _, at := range []trial.Step{trial.StepWait, trial.StepMeasure} {
		t.Run(string(at), func(t *testing.T) {
			t.Parallel()
			h, store := newFakeHost(t, script{log: startLog}), &fakeStore{}
			cut, givenUp := make(chan struct{}), make(chan struct{})
			g := &gate{host: h, store: store, rule: cutLink(cut, givenUp)}
			r, tr := newRunner(t, h, store), newTrial(2)
			r.Host = g // only the host is at the other end
			hurry := make(chan struct{})
			r.Hurry = hurry
			reached := make(chan struct{}, 1)
			store.at = func(row *trial.Trial) error {
				if row.Step == at && len(reached) == 0 && row.State == trial.Running {
					reached <- struct{}{}
				}
				return nil
			}
			ctx, stop := context.WithCancelCause(t.Context())
			defer stop(nil)
			done := make(chan error, 1)
			go func() { done <- r.Run(ctx, tr) }()
			<-reached
			close(cut)
			time.Sleep(100 * time.Millisecond) // calls are under way
			stop(trial.ErrStopped)
			time.Sleep(100 * time.Millisecond)
			close(hurry)
			close(givenUp)
			var err error
			select {
			case err = <-done:
			case <-time.After(5 * time.Second):
				t.Fatal("the runner still waits for a host that was given up")
			}
			if !errors.Is(err, trial.ErrLeft) || !errors.Is(err, trial.ErrStopped) || !errors.Is(err, host.ErrGivenUp) || errors.Is(err, trial.ErrDirtyHost) {
				t.Errorf("Run returned %v", err)
			}
			last := store.saves[len(store.saves)-1]
			if last.State != trial.Running || store.finished != 0 {
				t.Errorf("the row is %s in step %s, %d finished ones", last.State, last.Step, store.finished)
			}
			if h.alive() == 0 {
				t.Error("nobody could have ended the server")
			}
			if _, err := trial.Recover(t.Context(), g, h.clock, "night", []*trial.Trial{&last}, store); !errors.Is(err, trial.ErrLeft) || last.State != trial.Running {
				t.Errorf("recovery over the same link: %v, %s", err, last.State)
			}
			got, err := trial.Recover(t.Context(), h, h.clock, "night", []*trial.Trial{&last}, store)
			if err != nil || len(got) != 1 || got[0].Release != trial.ReleaseVerified || h.alive() != 0 {
				t.Errorf("recovery: %v, %+v, %d processes", err, got, h.alive())
			}
		})
	}
}
