package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/benchmark"
	"sgtune/trial"
)

// Where several trials run each has a line of its own, with what that trial said last.
func TestSeveralTrialsRunning(t *testing.T) {
	t.Parallel()
	term, _ := screen(t, true, false, 120)
	term.Saved(launched(winner, trial.StepWait))
	second := launched(failed, trial.StepMeasure)
	term.Saved(second)
	term.Progress(trial.Progress{Number: 1, Step: trial.StepWait, Elapsed: time.Minute, Text: "loading weights"})
	term.Progress(trial.Progress{Number: 2, Step: trial.StepMeasure, Elapsed: 2 * time.Minute, Text: "80 clients", Window: &benchmark.Window{Output: 900}})
	want := []string{"search, trial 1, 1m00s: loading weights", "search, trial 2, 2m00s: 80 clients, now 900 tok/s"}
	if diff := cmp.Diff(want, term.statusLines()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	term.Saved(winner)
	if diff := cmp.Diff(want[1:], term.statusLines()); diff != "" {
		t.Errorf("one has ended (-want +got)\n%s", diff)
	}
	term.Saved(failed)
	if diff := cmp.Diff([]string{"choosing what comes next"}, term.statusLines()); diff != "" {
		t.Errorf("both have ended (-want +got)\n%s", diff)
	}
}
