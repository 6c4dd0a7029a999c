package physics

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// evidence is the log marginal likelihood of the residuals, averaged over the mean functions, with
// the priors of the hyperparameters.
func (g *Residual) evidence(hyp *hypothesis, residuals *mat.Dense) float64 {
	n := len(g.y)
	if hyp.gram == nil || hyp.gram.SymmetricDim() != n {
		hyp.gram = mat.NewSymDense(n, nil)
	}
	for a := range n {
		for b := a; b < n; b++ {
			v := g.between(hyp, a, b)
			if a == b {
				v += g.noiseVar(hyp, a)
			}
			hyp.gram.SetSym(a, b, v)
		}
	}
	if !hyp.chol.Factorize(hyp.gram) {
		return math.Inf(-1)
	}
	_, means := residuals.Dims()
	var solved mat.Dense
	if err := hyp.chol.SolveTo(&solved, residuals); err != nil {
		return math.Inf(-1)
	}
	half := make([]float64, means)
	top := math.Inf(-1)
	for j := range half {
		for i := range n {
			half[j] -= .5 * residuals.At(i, j) * solved.At(i, j)
		}
		top = math.Max(top, half[j])
	}
	sum := 0.0
	for _, v := range half {
		sum += math.Exp(v - top)
	}
	return top + math.Log(sum/float64(means)) - .5*hyp.chol.LogDet() + hyp.logPrior()
}

// logPrior is the lognormal prior of the learnt factors: amplitudes vary much from knob to knob.
func (h *hypothesis) logPrior() float64 {
	sum := 0.0
	for _, gain := range h.gain {
		z := math.Log(gain) / 0.8
		sum -= .5 * z * z
	}
	base := 1.0
	if h.flat {
		base = flatScale
	}
	z := math.Log(h.scale/base) / 0.4
	sum -= .5 * z * z
	z = math.Log(h.product) / 0.7
	sum -= .5 * z * z
	z = math.Log(h.noise) / 0.5
	return sum - .5*z*z
}

// between is the covariance of two observations.
func (g *Residual) between(hyp *hypothesis, a, b int) float64 {
	v := g.covariance(hyp, &g.rows[a], g.rows[b].point)
	return v + biasSD*biasSD*(1-g.frac[a])*(1-g.frac[b])
}

// covariance is the process between an observed point and any other, at full measuring time.
func (g *Residual) covariance(hyp *hypothesis, r *row, p Point) float64 {
	sum, distance := 0.0, 0.0
	for i, j := range p {
		distance += r.distance[i][j]
		if r.alive[i] && (g.l.space[i].Needs < 0 || g.l.space.Alive(p, i)) {
			amp := g.k.amp[i] * hyp.gain[i]
			sum += amp * amp * r.alike[i][j]
		}
	}
	return sum*hyp.scale*hyp.scale + sq(ampProduct*hyp.product)*math.Exp(-.25*distance) + hyp.level()
}

// level is the variance of a constant. Physics is not trusted with the level either: without this a
// knob that was the same in all trials would look like one without effect.
func (h *hypothesis) level() float64 {
	if h.flat {
		return flatMean * flatMean
	}
	return levelSD * levelSD
}

func (g *Residual) noiseVar(hyp *hypothesis, a int) float64 {
	sd := g.noise.SD(g.frac[a], g.relSD[a]) * hyp.noise
	return sd * sd
}

// learn improves amplitudes and noise by their evidence, one at a time.
func (g *Residual) learn(hyp *hypothesis, residuals *mat.Dense, best float64) {
	try := func(value *float64, factors ...float64) {
		was := *value
		for _, f := range factors {
			*value = was * f
			if e := g.evidence(hyp, residuals); e > best+1e-9 {
				best = e
				was = *value
				continue
			}
			*value = was
		}
	}
	try(&hyp.scale, 1.3, 1/1.3)
	try(&hyp.noise, 1.3, 1/1.3)
	try(&hyp.product, 1.5, 1/1.5)
	for i := range hyp.gain {
		if g.k.amp[i] > 0 {
			try(&hyp.gain[i], 1.6, 1/1.6)
		}
	}
}

// settle solves for the weights that predictions use.
func (g *Residual) settle(hyp *hypothesis, residuals *mat.Dense) {
	if math.IsInf(g.evidence(hyp, residuals), -1) {
		return
	}
	n, means := residuals.Dims()
	var inv mat.SymDense
	if err := hyp.chol.InverseTo(&inv); err != nil {
		return
	}
	hyp.inv = hyp.inv[:0]
	for a := range n {
		for b := range n {
			hyp.inv = append(hyp.inv, inv.At(a, b))
		}
	}
	hyp.alpha, hyp.share = make([][]float64, means), make([]float64, means)
	top := math.Inf(-1)
	for j := range means {
		hyp.alpha[j] = make([]float64, n)
		for a := range n {
			for b := range n {
				hyp.alpha[j][a] += hyp.inv[a*n+b] * residuals.At(b, j)
			}
			hyp.share[j] -= .5 * hyp.alpha[j][a] * residuals.At(a, j)
		}
		top = math.Max(top, hyp.share[j])
	}
	sum := 0.0
	for j, v := range hyp.share {
		hyp.share[j] = math.Exp(v - top)
		sum += hyp.share[j]
	}
	for j := range hyp.share {
		hyp.share[j] /= sum
	}
}
