package virtual

import (
	"testing"

	"sgtune/sglang"
	"sgtune/tuner"
)

// In a space that can be looked at in full, the search for the best finds it, counts what fails, and measures what
// runs today.
func TestFindBest(t *testing.T) {
	slow(t)
	s, err := tuner.ReadStudy("testdata/llama8b.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s.Workload.Concurrency = []int{16, 32}
	s.Space = tuner.Space{
		{Name: "mem-fraction-static", Kind: tuner.Numeric, Values: []any{0.85, 0.90, 0.95}},
		{Name: "hicache-size", Kind: tuner.Numeric, Values: []any{0.0, 64.0}},
	}
	b, err := FindBest(t.Context(), s, 20, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	long := judge(t, s).Long()
	best, failing := 0.0, 0
	for point := range s.Space.All() {
		o, err := long.Value(t.Context(), sglang.Merge(s.SearchBase(), point), 0, Noise{Free: true})
		if err != nil {
			t.Fatal(err)
		}
		if best = max(best, o.Value); o.Failure != "" {
			failing++
		}
	}
	if b.Value != best || b.Runs < 20 || b.Drawn != 6 || b.Admitted != 6 || failing != 2 || b.Failing != 2.0/6 {
		t.Errorf("%s; the best of all is %.2f, %d of 6 fail", b.Text(), best, failing)
	}
	if b.Baseline <= 0 || b.Baseline >= b.Value || b.LowGiB <= 0 {
		t.Errorf("baseline %.1f, best %.1f with %.2f GiB free", b.Baseline, b.Value, b.LowGiB)
	}
}
