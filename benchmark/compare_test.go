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

// A latency's logarithms with the signs turned must give the throughput's answer, and gains that are
// shares of the base: 0.1 lower in the logarithm is 1-exp(-0.1) = 9.516% less.
func TestCompareLower(t *testing.T) {
	t.Parallel()
	base := exps(6.99, 7, 7.01)
	for _, c := range []struct {
		name            string
		candidate       []float64
		answer          string
		change, half    float64 // logarithms, candidate over base
		wantGain        float64
		withoutInterval bool
	}{
		{"lower is better", exps(6.89, 6.9, 6.91), "better", -0.1, 0.0226697, 0.0951626, false},
		{"higher is worse", exps(7.09, 7.1, 7.11), "worse", 0.1, 0.0226697, -0.1051709, false},
		{"no difference", exps(7.0126, 7.0226, 7.0326), "no difference found", 0.0226, 0.0226697, -0.0228573, false},
		{"not confirmed", exps(6), "not confirmed", -1, 0, 0.6321206, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := benchmark.CompareLower(base, c.candidate)
			if got.Answer != c.answer || math.Abs(got.Gain-c.wantGain) > 1e-6 {
				t.Errorf("%q, gain %.7f, want %q, %.7f", got.Answer, got.Gain, c.answer, c.wantGain)
			}
			want := benchmark.Comparison{Low: -math.Expm1(c.change + c.half), High: -math.Expm1(c.change - c.half), Detectable: -math.Expm1(-c.half)}
			if c.withoutInterval {
				want = benchmark.Comparison{}
			}
			for what, pair := range map[string][2]float64{"low": {got.Low, want.Low}, "high": {got.High, want.High}, "detectable": {got.Detectable, want.Detectable}} {
				if math.Abs(pair[0]-pair[1]) > 1e-6 {
					t.Errorf("%s = %.7f, want %.7f", what, pair[0], pair[1])
				}
			}
		})
	}
}

func TestCompareLowerOfIdenticalValuesHasNoNegativeZero(t *testing.T) {
	t.Parallel()
	got := benchmark.CompareLower([]float64{5, 5, 5}, []float64{5, 5, 5})
	for what, v := range map[string]float64{"gain": got.Gain, "low": got.Low, "high": got.High} {
		if v != 0 || math.Signbit(v) {
			t.Errorf("%s = %g", what, v)
		}
	}
}

// The counts are worked out by hand: variances of 1e-4 each give t·0.0141421/sqrt(n), which is 0.0226697 for
// n = 3, 0.0173025 for 4 (t = 2.446912), 0.0145848 for 5 (t = 2.306004), 0.0107239 for 8 (t = 2.144787) and
// 0.0099933 for 9 (t = 2.119905).
func TestNeeded(t *testing.T) {
	t.Parallel()
	base := exps(6.99, 7, 7.01)
	at := func(d float64) []float64 { return exps(6.99+d, 7+d, 7.01+d) }
	for _, c := range []struct {
		name            string
		base, candidate []float64
		want            int
	}{
		{"seen already", base, at(0.1), 3},
		{"one more", base, at(-0.02), 4},
		{"just four", base, at(0.0174), 4},
		{"five", base, at(0.0173), 5},
		{"nine", base, at(0.01), 9},
		{"no difference", base, at(0), 0},
		{"too small a difference", base, at(1e-6), 0},
		{"nothing varies", []float64{5, 5, 5}, []float64{6, 6, 6}, 3},
		{"two launches", base, exps(7, 8), 0},
		{"a zero", base, []float64{0, 1, 2}, 0},
	} {
		if got := benchmark.Needed(c.base, c.candidate); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// With logarithms 6.99, 7, 7.01 the half-width is 4.302653·0.01/sqrt(3) = 0.0248414 of a logarithm.
func TestGeometricMean(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		values     []float64
		mean, half float64
		ok         bool
	}{
		{"three", exps(6.99, 7, 7.01), math.Exp(7), math.Expm1(0.0248414), true},
		{"two", []float64{4, 9}, 6, 0, true},
		{"one", []float64{4}, 4, 0, true},
		{"alike", []float64{4, 4, 4}, 4, 0, true},
		{"exact", []float64{15.5, 15.5, 15.5}, 15.5, 0, true},
		{"none", nil, 0, 0, false},
		{"a zero", []float64{0, 4}, 0, 0, false},
		{"not a number", []float64{math.NaN(), 4}, 0, 0, false},
		{"infinite", []float64{math.Inf(1), 4}, 0, 0, false},
	} {
		mean, half, ok := benchmark.GeometricMean(c.values)
		if ok != c.ok || math.Abs(mean-c.mean) > 1e-6 || math.Abs(half-c.half) > 1e-6 {
			t.Errorf("%s: %g, %g, %v, want %g, %g, %v", c.name, mean, half, ok, c.mean, c.half, c.ok)
		}
		if c.name == "exact" && mean != c.mean {
			t.Errorf("%s: %.17g, want %.17g", c.name, mean, c.mean)
		}
	}
}
