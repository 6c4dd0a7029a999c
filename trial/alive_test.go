package trial_test

import (
	"testing"
	"time"

	"sgtune/trial"
)

// A hung server under load goes on printing a line for each /health that is asked for: that is no sign of life,
// and the trial does not wait for the cap of the level.
func TestHangIsSeenBeforeTheCap(t *testing.T) {
	t.Parallel()
	h, store := newFakeHost(t, script{log: startLog, hangAfter: 60}), &fakeStore{}
	r, tr := newRunner(t, h, store), newTrial(2)
	r.Load.Canary, r.Load.Cap = 0, 2*time.Hour
	if err := r.Run(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	if tr.Verdict.Outcome != trial.Stuck || tr.Step != trial.StepMeasure || tr.Steps[trial.StepMeasure] > time.Hour {
		t.Errorf("%s in %s after %s: %s", tr.Verdict.Outcome, tr.Step, tr.Steps[trial.StepMeasure], tr.Verdict.Text)
	}
}
