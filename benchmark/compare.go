package benchmark

import (
	"math"

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
