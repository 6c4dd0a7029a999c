package tuner_test

import (
	"testing"

	"sgtune/benchmark"
	"sgtune/trial"
	"sgtune/tuner"
)

// The value is the objective's own figure at the best level that is valid.
func TestScore(t *testing.T) {
	t.Parallel()
	levels := []trial.Level{
		{Concurrency: 40, Report: &benchmark.Report{Valid: true, OutputTokS: 900, RequestsS: 3, GoodputS: 2.8}},
		{Concurrency: 80, Report: &benchmark.Report{Valid: true, OutputTokS: 1100, RequestsS: 3.6, GoodputS: 1.5}},
		{Concurrency: 160, Report: &benchmark.Report{OutputTokS: 5000, RequestsS: 9, GoodputS: 9}},
		{Concurrency: 200},
	}
	for metric, want := range map[string]struct {
		value float64
		level int
	}{"output_tok_s": {1100, 80}, "requests_s": {3.6, 80}, "goodput": {2.8, 40}, "concurrency": {80, 80}} {
		value, level, ok := tuner.Objective{Metric: metric}.Score(levels)
		if !ok || value != want.value || level != want.level {
			t.Errorf("%s: %g at %d, %v; want %+v", metric, value, level, ok, want)
		}
	}
}
