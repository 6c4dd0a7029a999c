package physics

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// Residual is what the measurements say beyond physics: a Gaussian process (Rasmussen, Williams
// 2006) over all knobs on the logarithm of the objective, with an additive kernel whose amplitudes
// are learnt by their evidence, so that knobs that do nothing cost nothing.
//
// It holds two hypotheses at once: that physics' mean is right up to effects of a few percent, and
// that it says nothing (a constant mean and wide effects). Their evidence decides, so where physics
// is wrong the data win.
//
// A short measuring time may be biased; the bias is one more unknown, proportional to the part that
// was left out.
type Residual struct {
	l     *layout
	k     *kernel
	t     *Throughput
	noise *Noise
	rows  []row
	y     []float64 // log value
	frac  []float64
	relSD []float64
	seen  []Observation
	pace  pace
	hyp   [2]hypothesis

	waiting []Observation // values that were observed and are not fitted yet

	kv    []float64 // scratch: covariances of a point with the observations
	means []float64
	last  [2]moment // what each hypothesis said at the last point asked
}

// moment is a normal distribution of log value.
type moment struct{ mean, variance float64 }

// hypothesis is one mean function with its learnt amplitudes.
type hypothesis struct {
	flat    bool
	gain    []float64 // by knob: learnt factor on its amplitude
	scale   float64   // learnt factor on all
	noise   float64   // learnt factor on the noise
	product float64   // learnt factor on what knobs do together
	score   float64   // log probability that it gave to the values before it saw them
	weight  float64   // of this hypothesis

	gram   *mat.SymDense
	chol   mat.Cholesky
	inv    []float64 // inverse of the gram matrix, row by row
	alpha  [][]float64
	share  []float64 // weight of each mean
	center float64
}

const (
	flatScale   = 2.2  // amplitudes where physics says nothing
	flatMean    = 0.4  // standard deviation of the constant
	levelSD     = 0.25 // standard deviation of the constant beside physics
	flatPrior   = 0.2  // chance that physics says nothing, before any data
	biasSD      = 0.03 // of log value, for a measuring time near zero
	leastLearnt = 5    // observations from which amplitudes are learnt
)

func newResidual(l *layout, t *Throughput, noise *Noise) *Residual {
	g := &Residual{l: l, k: newKernel(l), t: t, noise: noise}
	for h := range g.hyp {
		g.hyp[h] = hypothesis{flat: h == 1, gain: ones(len(l.space)), scale: 1, noise: 1, product: 1}
	}
	g.hyp[1].scale = flatScale
	return g
}

func ones(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = 1
	}
	return out
}

// Observe adds a measured value and fits both hypotheses anew. It comes after the throughput model's
// own Observe.
func (g *Residual) Observe(o Observation) {
	learn := g.pace.due()
	if o.measured() {
		g.waiting = append(g.waiting, o)
	}
	if !g.l.later {
		g.judgeWaiting()
		g.take(learn)
	}
}

// judgeWaiting is judge for the values that were observed since the last fit.
func (g *Residual) judgeWaiting() {
	for _, o := range g.waiting {
		g.judge(o)
	}
}

// take adds those values, and fits both hypotheses anew.
func (g *Residual) take(learn bool) {
	for _, o := range g.waiting {
		g.seen = append(g.seen, o)
		g.rows = append(g.rows, g.k.row(o.Point))
		g.y = append(g.y, math.Log(o.Value))
		g.frac = append(g.frac, clamp(o.Frac, 0.02, 1))
		g.relSD = append(g.relSD, o.RelSD)
		g.trim()
	}
	g.waiting = g.waiting[:0]
	if len(g.y) > 0 {
		g.fit(learn)
	}
}

// judge scores both hypotheses by what the process said of a value before it was fitted to it (after
// the prequential score, Dawid 1984): how well a mean fits that was fitted to the same values says
// little. Physics' own coefficients have seen the value by then, which favours physics a little; both
// are taken to have heavy tails, so that one odd trial does not decide.
func (g *Residual) judge(o Observation) {
	if !g.hyp[0].ready(len(g.rows)) || !g.hyp[1].ready(len(g.rows)) {
		return
	}
	tokens, _, _ := g.t.m.Predict(o.Point)
	g.Predict(o.Point, tokens)
	for h := range g.hyp {
		hyp := &g.hyp[h]
		noise := g.noise.SD(clamp(o.Frac, 0.02, 1), o.RelSD) * hyp.noise
		sd := math.Sqrt(g.last[h].variance + noise*noise)
		z := (math.Log(o.Value) - g.last[h].mean) / sd
		hyp.score -= 2.5*math.Log1p(z*z/4) + math.Log(sd) // Student's t with 4 degrees of freedom
	}
}

// trim keeps the better and the newer half of what is too much.
func (g *Residual) trim() {
	if len(g.y) <= mostRows {
		return
	}
	worst := leastOf(func(i, j int) bool { return g.y[i] > g.y[j] })
	g.seen = slices.Delete(g.seen, worst, worst+1)
	g.rows = slices.Delete(g.rows, worst, worst+1)
	g.y = slices.Delete(g.y, worst, worst+1)
	g.frac = slices.Delete(g.frac, worst, worst+1)
	g.relSD = slices.Delete(g.relSD, worst, worst+1)
}

// fit learns amplitudes and noise of both hypotheses where that is due, and weighs them against each other.
func (g *Residual) fit(learn bool) {
	able := g.t.Able()
	for h := range g.hyp {
		hyp := &g.hyp[h]
		if !hyp.flat && !able {
			continue
		}
		residuals := g.residuals(hyp)
		if len(g.y) >= leastLearnt && learn {
			g.learn(hyp, residuals, g.evidence(hyp, residuals))
		}
		g.settle(hyp, residuals)
	}
	g.hyp[0].weight, g.hyp[1].weight = 0, 1
	if able {
		flat := math.Log(flatPrior/(1-flatPrior)) + g.hyp[1].score - g.hyp[0].score
		g.hyp[1].weight = chance(flat)
		if g.hyp[1].weight >= proven && len(g.y) > quickTurns {
			g.hyp[1].weight = math.Max(g.hyp[1].weight, unproven)
		}
		g.hyp[0].weight = 1 - g.hyp[1].weight
	}
}

// residuals are the values less each mean function: a column for each vector of the throughput
// model, one column for the flat hypothesis.
func (g *Residual) residuals(hyp *hypothesis) *mat.Dense {
	n := len(g.y)
	if hyp.flat {
		hyp.center = 0
		for _, y := range g.y {
			hyp.center += y / float64(n)
		}
		r := mat.NewDense(n, 1, nil)
		for i, y := range g.y {
			r.Set(i, 0, y-hyp.center)
		}
		return r
	}
	r := mat.NewDense(n, physicsShown, nil)
	mean := make([]float64, physicsShown)
	for i, y := range g.y {
		tokens, _, _ := g.t.m.Predict(g.seen[i].Point)
		g.t.Predict(g.seen[i].Point, tokens, mean)
		for j, m := range mean {
			r.Set(i, j, y-m)
		}
	}
	return r
}
