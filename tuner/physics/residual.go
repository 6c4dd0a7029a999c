package physics

import (
	"math"

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
	hyp   [2]hypothesis

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
	mostRows    = 150  // observations the process is built of
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
	if o.measured() {
		g.judge(o)
		g.seen = append(g.seen, o)
		g.rows = append(g.rows, g.k.row(o.Point))
		g.y = append(g.y, math.Log(o.Value))
		g.frac = append(g.frac, clamp(o.Frac, 0.02, 1))
		g.relSD = append(g.relSD, o.RelSD)
		g.trim()
	}
	if len(g.y) > 0 {
		g.fit()
	}
}

// judge scores both hypotheses by what they said of a value before it was known (prequential, Dawid
// 1984): how well a mean fits that was fitted to the same values says little. Both are taken to have
// heavy tails, so that one odd trial does not decide.
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
	worst := 0
	for i := range g.y[:mostRows/2] {
		if g.y[i] < g.y[worst] {
			worst = i
		}
	}
	g.seen = append(g.seen[:worst], g.seen[worst+1:]...)
	g.rows = append(g.rows[:worst], g.rows[worst+1:]...)
	g.y = append(g.y[:worst], g.y[worst+1:]...)
	g.frac = append(g.frac[:worst], g.frac[worst+1:]...)
	g.relSD = append(g.relSD[:worst], g.relSD[worst+1:]...)
}

// fit learns amplitudes and noise of both hypotheses, and weighs them against each other.
func (g *Residual) fit() {
	able := g.t.Able()
	for h := range g.hyp {
		hyp := &g.hyp[h]
		if !hyp.flat && !able {
			continue
		}
		residuals := g.residuals(hyp)
		if len(g.y) >= leastLearnt {
			g.learn(hyp, residuals, g.evidence(hyp, residuals))
		}
		g.settle(hyp, residuals)
	}
	g.hyp[0].weight, g.hyp[1].weight = 0, 1
	if able {
		flat := math.Log(flatPrior/(1-flatPrior)) + g.hyp[1].score - g.hyp[0].score
		g.hyp[1].weight = chance(flat)
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
				was, f = *value, 1
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
