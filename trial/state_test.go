package trial_test

import (
	"testing"

	"sgtune/trial"
)

func TestStates(t *testing.T) {
	t.Parallel()
	all := []trial.State{trial.Waiting, trial.Running, trial.Complete, trial.Pruned, trial.Failed, trial.Cancelled}
	allowed := map[[2]trial.State]bool{
		{trial.Waiting, trial.Running}: true, {trial.Waiting, trial.Cancelled}: true, {trial.Running, trial.Running}: true,
		{trial.Running, trial.Complete}: true, {trial.Running, trial.Pruned}: true, {trial.Running, trial.Failed}: true, {trial.Running, trial.Cancelled}: true,
	}
	for _, from := range all {
		for _, to := range all {
			if got := from.CanBecome(to); got != allowed[[2]trial.State{from, to}] {
				t.Errorf("%s to %s: %t", from, to, got)
			}
		}
		if finished := from != trial.Waiting && from != trial.Running; from.Finished() != finished {
			t.Errorf("%s finished: %t", from, from.Finished())
		}
	}
}
