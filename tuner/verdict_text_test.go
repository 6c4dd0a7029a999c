package tuner

import (
	"strings"
	"testing"

	"sgtune/benchmark"
)

// Launches that agree on a load level have an interval of no width: the verdict says what the figure is, and
// where it ends for want of higher levels.
func TestVerdictInLevels(t *testing.T) {
	t.Parallel()
	s := &Study{Objective: Objective{Metric: "concurrency"}, Workload: WorkloadSpec{Concurrency: []int{16, 32, 64}}}
	zero, gain := 0.0, 1.0
	for _, c := range []struct {
		name     string
		v        Verdict
		want     string
		unwanted []string
	}{
		{
			"both at the top",
			Verdict{Answer: benchmark.AnswerNoDifference, Trial: 3, Value: 64, BaselineValue: 64, Low: &zero, High: &zero, Launches: 3},
			"3 launches each (counted in load levels: of 16, 32, 64 the highest that holds the SLO; both hold the highest: higher ones would tell them apart)",
			[]string{"could have shown"},
		},
		{
			"better",
			Verdict{Answer: benchmark.AnswerBetter, Trial: 3, Value: 64, BaselineValue: 32, Gain: 1, Low: &gain, High: &gain, Launches: 3},
			"better: trial 3 makes 64 clients against the baseline's 32 clients, +100.0%, 95% interval +100.0% to +100.0%, 3 launches each (counted in load levels: of 16, 32, 64 the highest that holds the SLO)",
			[]string{"tell them apart"},
		},
	} {
		got := verdictText(s, &c.v)
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %q lacks %q", c.name, got, c.want)
		}
		for _, no := range c.unwanted {
			if strings.Contains(got, no) {
				t.Errorf("%s: %q says %q", c.name, got, no)
			}
		}
	}
}
