package physics

import (
	"math"
)

// Predict is the mean of the logarithm of the objective at p and its standard deviation, noise left
// out, for a full measuring time. Before any value it is physics alone.
func (g *Residual) Predict(p Point, tokens float64) (mean, sd float64) {
	if len(g.means) == 0 {
		g.means = make([]float64, physicsShown)
	}
	able := g.t.Able()
	if able {
		g.t.Predict(p, tokens, g.means)
	}
	if len(g.y) == 0 {
		if !able {
			return 0, 1
		}
		mean, sd := spread(g.means, nil)
		return mean, sd + .3
	}
	variance := 0.0
	for h := range g.hyp {
		hyp := &g.hyp[h]
		if !hyp.ready(len(g.rows)) {
			g.last[h] = moment{} // not what some earlier point left
			continue
		}
		m, v := g.under(hyp, p)
		g.last[h] = moment{m, v}
		mean += hyp.weight * m
		variance += hyp.weight * (v + m*m)
	}
	return mean, math.Sqrt(math.Max(variance-mean*mean, 1e-7))
}

// ready reports whether the hypothesis was fitted to n observations.
func (h *hypothesis) ready(n int) bool { return n > 0 && len(h.inv) == n*n }

// doubt is the least chance that is given to physics being wrong wherever it was not tested: the
// measurements near its own optimum can't say.
const doubt = 0.15

// unproven is the least weight of the flat hypothesis once there were enough values to prove physics
// by, and they did not: then it is as good as no physics.
const unproven = 0.5

// proven is the weight of the flat hypothesis below which physics has foretold the values so much
// better that no turn is spent on doubting it.
const proven = 0.01

// trusted reports whether physics has proven itself in this search.
func (g *Residual) trusted() bool {
	return g.hyp[0].ready(len(g.rows)) && g.hyp[1].weight < proven
}

// odds are the weights by which a turn looks for improvement.
func (g *Residual) odds() (physics, flat float64) {
	if !g.hyp[0].ready(len(g.rows)) {
		return 0, 1
	}
	flat = g.hyp[1].weight
	if !g.trusted() {
		flat = math.Max(flat, doubt)
	}
	return 1 - flat, flat
}

// gain is the expected improvement at the point that Predict was last asked for, over what each
// hypothesis says of the incumbent; shift is what the point's chance to survive adds in log value. In
// a turn of doubt only the flat one is asked.
func (g *Residual) gain(best [2]moment, shift float64, doubtful bool) float64 {
	physics, flat := g.odds()
	if doubtful {
		physics, flat = 0, 1
	}
	sum := flat * expected(g.last[1].mean-best[1].mean+shift-leastGain, math.Sqrt(g.last[1].variance))
	if physics > 0 {
		sum += physics * expected(g.last[0].mean-best[0].mean+shift-leastGain, math.Sqrt(g.last[0].variance))
	}
	return sum
}

// Difference is the mean and standard deviation of log value at p less that at q. What the models do
// not know of both alike, their level above all, is not in it.
func (g *Residual) Difference(p, q Point) (mean, sd float64) {
	variance := 0.0
	for h := range g.hyp {
		hyp := &g.hyp[h]
		if !hyp.ready(len(g.rows)) || hyp.weight < 1e-6 {
			continue
		}
		m, v := g.apart(hyp, p, q)
		mean += hyp.weight * m
		variance += hyp.weight * (v + m*m)
	}
	return mean, math.Sqrt(math.Max(variance-mean*mean, 1e-9))
}

// apart is Difference under one hypothesis.
func (g *Residual) apart(hyp *hypothesis, p, q Point) (mean, variance float64) {
	n := len(g.rows)
	k := make([]float64, n)
	for a := range g.rows {
		k[a] = g.covariance(hyp, &g.rows[a], p) - g.covariance(hyp, &g.rows[a], q)
	}
	row := g.k.row(p)
	variance = g.before(hyp, p) + g.before(hyp, q) - 2*g.covariance(hyp, &row, q)
	for a := range k {
		for b := range k {
			variance -= k[a] * hyp.inv[a*n+b] * k[b]
		}
	}
	square := 0.0
	at, other := make([]float64, physicsShown), make([]float64, physicsShown)
	if !hyp.flat {
		tokens, _, _ := g.t.m.Predict(p)
		g.t.Predict(p, tokens, at)
		tokens, _, _ = g.t.m.Predict(q)
		g.t.Predict(q, tokens, other)
	}
	for j, share := range hyp.share {
		m := at[j] - other[j]
		for a, w := range hyp.alpha[j] {
			m += w * k[a]
		}
		mean += share * m
		square += share * m * m
	}
	return mean, math.Max(variance, 0) + math.Max(square-mean*mean, 0)
}

// before is the variance at p before any data: of what is alive there.
func (g *Residual) before(hyp *hypothesis, p Point) float64 {
	sum := 0.0
	for i, amp := range g.k.amp {
		if g.l.space[i].Needs < 0 || g.l.space.Alive(p, i) {
			sum += sq(amp * hyp.gain[i])
		}
	}
	return sum*sq(hyp.scale) + sq(ampProduct*hyp.product) + hyp.level()
}

// under is the prediction of one hypothesis.
func (g *Residual) under(hyp *hypothesis, p Point) (mean, variance float64) {
	n := len(g.rows)
	g.kv = g.kv[:0]
	for a := range g.rows {
		g.kv = append(g.kv, g.covariance(hyp, &g.rows[a], p))
	}
	explained := 0.0
	for a, ka := range g.kv {
		sum := 0.0
		for b, v := range hyp.inv[a*n : a*n+n] {
			sum += v * g.kv[b]
		}
		explained += ka * sum
	}
	square := 0.0
	for j, share := range hyp.share {
		if share < 1e-6 {
			continue
		}
		m := hyp.center
		if !hyp.flat {
			m = g.means[j]
		}
		for a, w := range hyp.alpha[j] {
			m += w * g.kv[a]
		}
		mean += share * m
		square += share * m * m
	}
	return mean, math.Max(g.before(hyp, p)-explained, 1e-6) + math.Max(square-mean*mean, 0)
}

// spread is the mean and standard deviation of values with weights (nil = equal).
func spread(values, weights []float64) (mean, sd float64) {
	sum := 0.0
	for i, v := range values {
		w := 1.0
		if weights != nil {
			w = weights[i]
		}
		mean += w * v
		sd += w * v * v
		sum += w
	}
	mean /= sum
	return mean, math.Sqrt(math.Max(sd/sum-mean*mean, 0))
}
