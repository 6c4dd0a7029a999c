package trial_test

import (
	"net/http"
	"regexp"
	"testing"
	"time"

	"sgtune/trial"
)

// A hung server under load goes on printing a line for each /health that is asked for: that is no sign of life,
// and the trial does not wait for the cap of the level. /health of 0.4.x answers 200 all the while.
func TestHangIsSeenBeforeTheCap(t *testing.T) {
	t.Parallel()
	all := together{t: t}
	defer all.Wait()
	for name, s := range map[string]script{
		"a new server":                    {log: startLog, hangAfter: 60},
		"0.4.x":                           {log: oldLog, old: true, hangAfter: 60},
		"/health proves nothing, no more": {log: oldLog, hangAfter: 60, lies: true},
	} {
		all.run(name, func(t *testing.T) {
			h, store := newFakeHost(t, s), &fakeStore{}
			r, tr := newRunner(t, h, store), newTrial(2)
			r.Load.Canary, r.Load.Cap = 0, 2*time.Hour
			if err := r.Run(t.Context(), tr); err != nil {
				t.Fatal(err)
			}
			if tr.Verdict.Outcome != trial.Stuck || tr.Step != trial.StepMeasure || tr.Steps[trial.StepMeasure] > time.Hour {
				t.Errorf("%s in %s after %s: %s", tr.Verdict.Outcome, tr.Step, tr.Steps[trial.StepMeasure], tr.Verdict.Text)
			}
		})
	}
}

// A server that is silent for long in one forward pass, and whose /health fails meanwhile, is busy, not dead: it
// goes on, and both sides are quoted.
func TestBusyIsNotDead(t *testing.T) {
	t.Parallel()
	h, store := newFakeHost(t, script{log: startLog, pauses: 1100 * time.Millisecond}), &fakeStore{}
	r, tr := newRunner(t, h, store), newTrial(2)
	r.Load.Canary, r.Load.Cap = 0, 8*time.Minute
	if err := r.Run(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	if tr.Verdict.Outcome == trial.Stuck || tr.Verdict.Outcome == trial.Crashed {
		t.Errorf("%s: %s", tr.Verdict.Outcome, tr.Verdict.Text)
	}
	want := regexp.MustCompile(`^health_busy_timeout: /health failed while the server was busy, not dead \(log line \d+ "Decode batch, .*" at 22:02:00, while /health did not answer in time `)
	for _, f := range tr.Verdict.Findings {
		if f.Name == "monitor_wrong" && want.MatchString(f.Text) {
			return
		}
	}
	t.Errorf("findings %v", tr.Verdict.Findings)
}

// A /health that never says 200 kills no server that gives tokens, also when requests of a load failed.
func TestTokensOutweighHealth(t *testing.T) {
	t.Parallel()
	h, store := newFakeHost(t, script{log: startLog, health: http.StatusServiceUnavailable, failing: 7}), &fakeStore{}
	r, tr := newRunner(t, h, store), newTrial(2)
	r.Load.Canary = 0
	if err := r.Run(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	if tr.Verdict.Outcome == trial.Stuck || len(tr.Levels) != 1 {
		t.Errorf("%s with %d levels: %s", tr.Verdict.Outcome, len(tr.Levels), tr.Verdict.Text)
	}
}
