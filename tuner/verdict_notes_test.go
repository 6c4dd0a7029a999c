package tuner

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/benchmark"
	"sgtune/sglang"
)

// What a verdict's text tells beside its figures is there as notes, too: whoever spells the figures anew keeps them.
func TestVerdictNotes(t *testing.T) {
	t.Parallel()
	s := &Study{
		Objective: Objective{Metric: "concurrency"}, Workload: WorkloadSpec{Concurrency: []int{16, 32, 64}}, Baseline: sglang.Config{"kv-cache-dtype": "fp8_e5m2"},
	}
	v := &Verdict{Answer: benchmark.AnswerBetter, Value: 32, BaselineValue: 16, Total: 88_000, Hours: 22.41, BaselineHours: 29.84, Text: "better"}
	v.Notes = verdictNotes(s, v)
	v.add("the host changed over the night")
	want := []string{
		"All 88,000 requests in 22.4 h instead of 29.8 h.",
		"Counted in load levels: of 16, 32, 64 the highest that holds the SLO.",
		"The baseline is lossy: its answers may be worse than bf16's.",
		"The host changed over the night.",
	}
	if diff := cmp.Diff(want, v.Notes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if v.Text != "better; the host changed over the night" {
		t.Errorf("text %q", v.Text)
	}
	if notes := verdictNotes(&Study{}, &Verdict{}); notes != nil {
		t.Errorf("nothing to tell: %q", notes)
	}
}
