package benchmark_test

import (
	"math"
	"testing"

	"sgtune/benchmark"
)

// exps are values whose logarithms are these.
func exps(logs ...float64) []float64 {
	out := make([]float64, len(logs))
	for i, l := range logs {
		out[i] = math.Exp(l)
	}
	return out
}

// The half-widths are worked out by hand: equal variances of 1e-4 with n = 3 give ν = 4, t = 2.776445
// and t·sqrt(2e-4/3) = 0.0226697; variances of 1e-4 and 9e-4 give ν = 100/41, t = 3.639411 and t·sqrt(1e-3/3) = 0.0664463.
func TestCompare(t *testing.T) {
	t.Parallel()
	base := exps(6.99, 7, 7.01)
	for _, c := range []struct {
		name            string
		base, candidate []float64
		answer          string
		gain, half      float64 // logarithms
	}{
		{"better", base, exps(7.09, 7.1, 7.11), "better", 0.1, 0.0226697},
		{"worse", base, exps(6.89, 6.9, 6.91), "worse", -0.1, 0.0226697},
		{"just enough", base, exps(7.0127, 7.0227, 7.0327), "better", 0.0227, 0.0226697},
		{"just too little", base, exps(7.0126, 7.0226, 7.0326), "no difference found", 0.0226, 0.0226697},
		{"unequal variances", base, exps(7.02, 7.05, 7.08), "no difference found", 0.05, 0.0664463},
		{"two launches", base, exps(8, 8.01), "not confirmed", 1.005, math.NaN()},
		{"no launches", nil, nil, "not confirmed", 0, math.NaN()},
		{"a zero", base, []float64{0, 1, 2}, "not confirmed", 0, math.NaN()},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := benchmark.Compare(c.base, c.candidate)
			if got.Answer != c.answer || got.N != [2]int{len(c.base), len(c.candidate)} {
				t.Errorf("answer %q of %v, want %q", got.Answer, got.N, c.answer)
			}
			if math.Abs(got.Gain-math.Expm1(c.gain)) > 1e-9 {
				t.Errorf("gain = %g, want %g", got.Gain, math.Expm1(c.gain))
			}
			if math.IsNaN(c.half) {
				if got.Low != 0 || got.High != 0 || got.Detectable != 0 {
					t.Errorf("an interval without a confirmation: %+v", got)
				}
				return
			}
			for what, pair := range map[string][2]float64{
				"low":        {got.Low, math.Expm1(c.gain - c.half)},
				"high":       {got.High, math.Expm1(c.gain + c.half)},
				"detectable": {got.Detectable, math.Expm1(c.half)},
			} {
				if math.Abs(pair[0]-pair[1]) > 1e-6 {
					t.Errorf("%s = %.8f, want %.8f", what, pair[0], pair[1])
				}
			}
			if got.MannWhitneyP != nil {
				t.Error("a rank test with three launches")
			}
		})
	}
}

// Exact p values are shares of all C(n+m, n) deals.
func TestCompareRanks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		base, candidate []float64
		want            float64
	}{
		{"four apart", []float64{1, 2, 3, 4}, []float64{5, 6, 7, 8}, 2.0 / 70},
		{"five apart", []float64{1, 2, 3, 4, 5}, []float64{10, 9, 8, 7, 6}, 2.0 / 252},
		{"one swap", []float64{1, 2, 3, 5}, []float64{4, 6, 7, 8}, 4.0 / 70},
		{"mixed", []float64{1, 4, 5, 8}, []float64{2, 3, 6, 7}, 1},
		{"all tied", []float64{3, 3, 3, 3}, []float64{3, 3, 3, 3}, 1},
		// Ranks 1.5 1.5 3 4.5 | 4.5 6 7 8: the smallest sum, 10.5, is reached with either of the two 4.5.
		{"ties", []float64{1, 1, 2, 3}, []float64{3, 4, 5, 6}, 2 * 2.0 / 70},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := benchmark.Compare(c.base, c.candidate)
			if got.MannWhitneyP == nil || math.Abs(*got.MannWhitneyP-c.want) > 1e-12 {
				t.Errorf("p = %v, want %v", got.MannWhitneyP, c.want)
			}
		})
	}
}

func TestCompareOfIdenticalValuesFindsNothing(t *testing.T) {
	t.Parallel()
	if got := benchmark.Compare([]float64{5, 5, 5}, []float64{5, 5, 5}); got.Answer != "no difference found" || got.Low != 0 {
		t.Errorf("%+v", got)
	}
}
