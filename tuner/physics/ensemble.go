package physics

import (
	"math"
	"math/rand/v2"
)

// ensemble is a set of parameter vectors that stand for a posterior, moved by differential-evolution
// Markov chain Monte Carlo (ter Braak 2006, A Markov Chain Monte Carlo version of the genetic
// algorithm Differential Evolution): a step of one vector is along the difference of two others.
type ensemble struct {
	x         [][]float64
	logp      []float64
	prior, sd []float64 // of independent normal priors; the moves' small noise is measured in sd
	proposal  []float64
}

func newEnsemble(r *rand.Rand, size int, prior, sd []float64) *ensemble {
	e := &ensemble{prior: prior, sd: sd, logp: make([]float64, size), proposal: make([]float64, len(prior))}
	for range size {
		x := make([]float64, len(prior))
		for i := range x {
			x[i] = prior[i] + sd[i]*r.NormFloat64()
		}
		e.x = append(e.x, x)
	}
	return e
}

// logPrior is the prior's density at x, up to a constant.
func (e *ensemble) logPrior(x []float64) float64 {
	sum := 0.0
	for i, v := range x {
		z := (v - e.prior[i]) / e.sd[i]
		sum -= 0.5 * z * z
	}
	return sum
}

// move takes the ensemble to the posterior logp: a tempered resampling, then sweeps of moves. logp
// must be finite.
func (e *ensemble) move(r *rand.Rand, sweeps int, logp func(x []float64) float64) {
	for k, x := range e.x {
		e.logp[k] = logp(x)
	}
	e.resample(r, 0.5)
	n := len(e.x)
	for range sweeps {
		for k := range n {
			a, b := e.x[r.IntN(n)], e.x[r.IntN(n)]
			step := [3]float64{0.5, 0.15, 0.9}[r.IntN(3)]
			for i, v := range e.x[k] {
				if r.Float64() < 0.6 {
					v += step * (a[i] - b[i])
				}
				e.proposal[i] = v + 0.03*e.sd[i]*r.NormFloat64()
			}
			lp := logp(e.proposal)
			if math.Log(r.Float64()) < lp-e.logp[k] {
				copy(e.x[k], e.proposal)
				e.logp[k] = lp
			}
		}
	}
}

// resample draws the vectors anew by their weight, tempered so that a single good one does not take
// all places.
func (e *ensemble) resample(r *rand.Rand, temper float64) {
	top := math.Inf(-1)
	for _, l := range e.logp {
		top = math.Max(top, l)
	}
	sum := 0.0
	cumulative := make([]float64, len(e.x))
	for k, l := range e.logp {
		sum += math.Exp(temper * (l - top))
		cumulative[k] = sum
	}
	x, logp := make([][]float64, len(e.x)), make([]float64, len(e.x))
	at, step := 0, sum/float64(len(e.x))
	u := step * r.Float64()
	for k := range x {
		for at < len(cumulative)-1 && cumulative[at] < u {
			at++
		}
		x[k], logp[k] = append([]float64(nil), e.x[at]...), e.logp[at]
		u += step
	}
	e.x, e.logp = x, logp
}
