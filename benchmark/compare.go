package benchmark

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Answers of a comparison.
const (
	AnswerBetter       = "better"
	AnswerWorse        = "worse"
	AnswerNoDifference = "no difference found"
	AnswerNotConfirmed = "not confirmed"
)

const (
	// LeastLaunches is the fewest launches on each side that give an answer.
	LeastLaunches = 3
	// leastRanked is the fewest launches on each side for which a rank test is told: with three the
	// smallest possible p is 0.1, which says nothing.
	leastRanked = 4
)

// Comparison is what two sets of launches say about each other. Gains are relative: 0.123 = 12.3%
// more than the base.
type Comparison struct {
	N      [2]int  `json:"n"` // launches: base, candidate
	Gain   float64 `json:"gain"`
	Low    float64 `json:"gain_low,omitempty"` // 95% interval, 0 and 0 when not confirmed
	High   float64 `json:"gain_high,omitempty"`
	Answer string  `json:"answer"`
	// Detectable is the smallest gain these launches could have shown: the one whose interval would
	// just have begun above zero.
	Detectable   float64  `json:"detectable,omitempty"`
	MannWhitneyP *float64 `json:"mann_whitney_p,omitempty"` // two-sided, exact; nil with fewer than 4 launches a side
}

// Compare tells whether the candidate's values are better than the base's, by the 95% t-interval of the
// difference of mean log(value). One value is one launch: values of windows or requests of the same
// launch are not independent and would make the interval far too narrow.
//
// With d the difference of the mean logs, s² the sample variances of the logs and n the counts:
// d ± t(0.975, ν)·sqrt(s₁²/n₁ + s₂²/n₂), ν by Welch and Satterthwaite (Welch, "The generalization of
// Student's problem when several different population variances are involved", Biometrika 34, 1947).
// Gains are exp(·)-1. Fewer than three launches on a side, or a value that is not above zero: not confirmed.
func Compare(base, candidate []float64) Comparison {
	c := Comparison{N: [2]int{len(base), len(candidate)}, Answer: AnswerNotConfirmed}
	a, okA := logs(base)
	b, okB := logs(candidate)
	if !okA || !okB {
		return c
	}
	d := stat.Mean(b, nil) - stat.Mean(a, nil)
	c.Gain = math.Expm1(d)
	if min(len(a), len(b)) < LeastLaunches {
		return c
	}
	half := welchHalfWidth(a, b)
	c.Low, c.High, c.Detectable = math.Expm1(d-half), math.Expm1(d+half), math.Expm1(half)
	switch {
	case d-half > 0:
		c.Answer = AnswerBetter
	case d+half < 0:
		c.Answer = AnswerWorse
	default:
		c.Answer = AnswerNoDifference
	}
	if min(len(a), len(b)) >= leastRanked {
		p := mannWhitney(a, b)
		c.MannWhitneyP = &p
	}
	return c
}

// CompareLower is Compare for values of which less is better, like latencies: better means lower, and
// gains are how much lower the candidate is, 0.2 = 20% less than the base. The test is the same, on the
// same logarithms.
func CompareLower(base, candidate []float64) Comparison {
	c := Compare(base, candidate)
	c.Gain = 0 - c.Gain // never -0
	c.Low, c.High = 0-c.High, 0-c.Low
	c.Detectable /= 1 + c.Detectable // 1 - exp(-half)
	switch c.Answer {
	case AnswerBetter:
		c.Answer = AnswerWorse
	case AnswerWorse:
		c.Answer = AnswerBetter
	}
	return c
}

// mostNeeded is the largest number of launches that Needed names.
const mostNeeded = 1000

// Needed is how many launches of each side would show a difference as large as the one seen with the
// noise seen: the smallest n whose interval, t(0.975, 2n-2)·sqrt((s₁²+s₂²)/n), is narrower than it. They
// must be fresh ones: going on until an answer comes finds differences that are not there. 0 where it
// cannot be told: fewer than three launches on a side, no difference at all, or more than a thousand.
func Needed(base, candidate []float64) int {
	a, okA := logs(base)
	b, okB := logs(candidate)
	if !okA || !okB || min(len(a), len(b)) < LeastLaunches {
		return 0
	}
	d := math.Abs(stat.Mean(b, nil) - stat.Mean(a, nil))
	spread := stat.Variance(a, nil) + stat.Variance(b, nil)
	for n := LeastLaunches; n <= mostNeeded; n++ {
		if studentT(float64(2*n-2))*math.Sqrt(spread/float64(n)) < d {
			return n
		}
	}
	return 0
}

// GeometricMean is the mean whose ratio of two sides is what Compare tests, and the relative half-width
// of its 95% t-interval (0.012 = ±1.2%; 0 with fewer than three values). Not ok without values or with
// one that is not above zero.
func GeometricMean(values []float64) (mean, half float64, ok bool) {
	l, ok := logs(values)
	if !ok {
		return 0, 0, false
	}
	if slices.Min(values) == slices.Max(values) {
		return values[0], 0, true // exactly, not by way of the logarithm
	}
	if n := float64(len(l)); len(l) >= LeastLaunches {
		half = math.Expm1(studentT(n-1) * stat.StdDev(l, nil) / math.Sqrt(n))
	}
	return math.Exp(stat.Mean(l, nil)), half, true
}

// logs are the logarithms of values; not ok without values or with one that has none.
func logs(values []float64) ([]float64, bool) {
	out := make([]float64, len(values))
	for i, v := range values {
		if !(v > 0) || math.IsInf(v, 1) {
			return nil, false
		}
		out[i] = math.Log(v)
	}
	return out, len(out) > 0
}

// welchHalfWidth is half the 95% interval of a difference of means with unequal variances.
func welchHalfWidth(a, b []float64) float64 {
	na, nb := float64(len(a)), float64(len(b))
	va, vb := stat.Variance(a, nil)/na, stat.Variance(b, nil)/nb
	if va+vb == 0 {
		return 0 // identical values: nothing varies that could be estimated
	}
	nu := (va + vb) * (va + vb) / (va*va/(na-1) + vb*vb/(nb-1))
	return studentT(nu) * math.Sqrt(va+vb)
}
