package trial

import "testing"

// A level that was stopped as hopeless while the load generator fell behind says nothing about the
// configuration: the trial failed innocently, and is launched again.
func TestStateOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		end     Ending
		outcome Outcome
		want    State
	}{
		{"measured", EndDone, OK, Complete},
		{"degraded", EndDone, Degraded, Complete},
		{"measured wrongly", EndDone, BenchInvalid, Failed},
		{"hopeless", EndPruned, OK, Pruned},
		{"hopeless and degraded", EndPruned, Degraded, Pruned},
		{"hopeless by a wrong measurement", EndPruned, BenchInvalid, Failed},
		{"ended by a person", EndPerson, BenchInvalid, Cancelled},
		{"died", EndDied, GPUOOM, Failed},
	} {
		if got := stateOf(tt.end, Verdict{Outcome: tt.outcome}); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
