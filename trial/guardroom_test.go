package trial_test

import (
	"strings"
	"testing"

	"sgtune/host"
	"sgtune/trial"
)

// TestNoRoomForTheGuard: a host with less free memory than the guard's line gets no server, which the guard would end at
// once; the configuration is not blamed.
func TestNoRoomForTheGuard(t *testing.T) {
	t.Parallel()
	for _, line := range []int64{1 << 60, -1} {
		h := newFakeHost(t, script{log: startLog})
		r, tr := newRunner(t, h, &fakeStore{}), newTrial(2)
		r.Guard = &host.GuardLimits{MinFree: line}
		if err := r.Run(t.Context(), tr); err != nil {
			t.Fatal(err)
		}
		started := strings.Contains(strings.Join(h.happened(), "\n"), "start ")
		v := tr.Verdict
		if line < 0 != started || !started && (v.Outcome != trial.EnvFault || v.Blames != trial.BlameNo || !strings.Contains(v.Text, "the guard ends what leaves less than")) {
			t.Errorf("line %d: started %v, %s: %s", line, started, v.Outcome, v.Text)
		}
	}
}
