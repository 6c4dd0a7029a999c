package tuner_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sgtune/trial"
)

// leavingRunner leaves the host in one trial, as when a person gives up waiting for a cut link.
type leavingRunner struct {
	*fakeRunner
	at int
}

func (r leavingRunner) Run(ctx context.Context, t *trial.Trial) error {
	if t.Number != r.at {
		return r.fakeRunner.Run(ctx, t)
	}
	t.State, t.StartedAt = trial.Running, r.clock.Now()
	if err := r.store.SaveTrial(ctx, t); err != nil {
		return err
	}
	return fmt.Errorf("trial %d: %w", t.Number, trial.ErrLeft)
}

// TestLeftHost: a study that had to leave its host stops with its trial unfinished and owes after:, and the next run
// recovers the trial, launches its configuration again and makes after: good.
func TestLeftHost(t *testing.T) {
	t.Parallel()
	r := newRig(t, smallStudy())
	r.loop.Runner = leavingRunner{r.runner, 2}
	if _, err := r.loop.Run(t.Context()); !errors.Is(err, trial.ErrLeft) || !errors.Is(err, trial.ErrStopped) {
		t.Fatalf("error %v", err)
	}
	rec := r.store.Record()
	if !rec.AfterDue || !strings.Contains(rec.AfterDone, "not run") || slices.Contains(r.host.ran, "start-service") {
		t.Errorf("%+v, ran %v", rec, r.host.ran)
	}
	rows, err := r.store.Trials(t.Context(), "")
	if err != nil || rows[2].State != trial.Running {
		t.Fatalf("the row it left: %+v, %v", rows[2], err)
	}
	left := rows[2].Config
	r.restart(t)
	v, err := r.loop.Run(t.Context())
	if err != nil || v.Answer != "better" || !slices.Contains(r.host.ran, "start-service") {
		t.Errorf("resumed: %+v, %v, ran %v", v, err, r.host.ran)
	}
	if rows, err = r.store.Trials(t.Context(), ""); err != nil || rows[2].Verdict.Outcome != trial.Aborted {
		t.Errorf("recovered: %+v, %v", rows[2], err)
	}
	again := slices.ContainsFunc(rows[3:], func(t *trial.Trial) bool {
		return t.Config.Key() == left.Key() && t.State == trial.Complete
	})
	if !again {
		t.Errorf("%v was not launched again", left)
	}
}
