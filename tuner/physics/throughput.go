package physics

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Throughput is what physics expects of the output tokens a second of a server under a closed load:
//
//	n    = min(clients, max running, KV tokens / what admission reserves for a request)
//	hit  = (cache capacity / working set)^al     device cache, then device and host
//	step = a0 + a1*n                              decode, ms; beyond the largest graph eager
//	rest = n/output * (new*prefill + loaded*lam + written*lam')   prefill work per decode step, ms
//	y    = n / (step + rest) * (1 - retraction)
//
// with ten coefficients, learnt from the measured value and from the log's own running requests and
// hit ratio. It is deliberately simpler than any server: layouts, policies, pages and backends are
// the residual's. Sources of the forms: sgtune's reference on search, section 4, and on SGLang,
// sections 2 (pool), 3 (admission by schedule-conservativeness) and 5 (hierarchical cache).
type Throughput struct {
	l     *layout
	m     *Memory
	e     *ensemble
	r     *rand.Rand
	seen  []Observation
	value []float64 // their logarithms
	use   []coefficients
	rows  []features
	pace  pace
}

// coefficients are one vector of the ensemble, ready for use.
type coefficients struct {
	a0, a1, prefill, load, set, al, resident, retract, eager, knee float64
}

// features are a point as the formulas see it.
type features struct {
	tokens, pool, cap, sig, chunk, graph float64
	host                                 bool
}

const (
	physicsParticles = 220
	physicsShown     = 16
	physicsSweeps    = 16
)

func newThroughput(l *layout, m *Memory, r *rand.Rand) *Throughput {
	t := &Throughput{l: l, m: m, r: r}
	prior := []float64{math.Log(22), math.Log(.25), math.Log(.09), math.Log(.02), math.Log(1.2e6), .6, 0, 0, math.Log(12), math.Log(300)}
	sd := []float64{.8, .8, .8, .9, 1.2, .12, .35, .4, .4, .5}
	t.e = newEnsemble(r, physicsParticles, prior, sd)
	t.refresh()
	return t
}

// Able reports whether the workload and the memory model give physics what it needs.
func (t *Throughput) Able() bool {
	w := t.l.facts.Load
	return w.Clients > 0 && w.OutputTokens > 0 && w.InputTokens > 0 && known(t.m.before) && known(t.m.after) && known(t.m.cell)
}

func coefficientsOf(x []float64) coefficients {
	return coefficients{
		a0: math.Exp(x[0]), a1: math.Exp(x[1]), prefill: math.Exp(x[2]), load: math.Exp(x[3]), set: math.Exp(x[4]),
		al: x[5], resident: math.Exp(x[6]), retract: math.Exp(x[7]), eager: math.Exp(x[8]), knee: math.Exp(x[9]),
	}
}

func (t *Throughput) refresh() {
	t.use = t.use[:0]
	stride := len(t.e.x) / physicsShown
	for i := range physicsShown {
		t.use = append(t.use, coefficientsOf(t.e.x[i*stride]))
	}
}

func (t *Throughput) features(p Point, tokens float64) features {
	w := t.l.facts.Load
	f := features{
		tokens: math.Max(tokens, 1), cap: math.Min(w.Clients, t.l.or(p, RoleMaxRunning, math.Inf(1))),
		sig: t.l.or(p, RoleConservativeness, 1), chunk: t.l.chunk(p), graph: t.l.or(p, RoleGraphBS, usualGraphBS),
	}
	if pool := t.l.pool(p); pool > 0 {
		f.host, f.pool = true, pool*t.l.facts.PoolBytes/t.m.cellBytes(p)
	}
	return f
}

// at is the logarithm of output tokens a second, the running requests and the hit ratio of the whole
// prompt.
func (c *coefficients) at(w *Load, f *features) (y, n, hit float64) {
	base := w.InputTokens - .5*w.SharedTokens
	full := c.resident * (base + .5*w.OutputTokens)
	admit := c.resident * (base + w.OutputTokens*(.15+.6*f.sig))
	n = max(1, min(f.cap, f.tokens/admit))
	retract := max(0, min(.6, n*full/f.tokens*1.2-.97)) * c.retract
	n = min(n, max(f.tokens/full, 1))
	cache := max(f.tokens-n*full*.8, 0)
	device := power(cache/c.set, c.al)
	total := device
	if f.host {
		total = power((cache+max(f.pool-.4*f.tokens, 0))/c.set, c.al)
	}
	fresh := w.InputTokens - w.SharedTokens*total
	rest := fresh*c.prefill*(1+c.knee/f.chunk) + w.SharedTokens*(total-device)*c.load
	if f.host {
		rest += (fresh + w.OutputTokens) * c.load * .15
	}
	step := c.a0 + c.a1*n
	if n > f.graph {
		step = step*1.1 + c.eager
	}
	y = math.Log(n * 1000 / (step + n/w.OutputTokens*rest) * max(1-retract, .3))
	return y, n, total * w.SharedTokens / w.InputTokens
}

// power is min(1, x^al), 0 at and below 0. Wild values may take al below 0, where it is 1: a hit ratio
// above 1 would leave less than nothing to prefill, and no number for the whole.
func power(x, al float64) float64 {
	switch {
	case x <= 0:
		return 0
	case x >= 1 || al <= 0:
		return 1
	}
	return math.Exp(al * math.Log(x))
}

// Observe learns from a measured value and from what the log says of it.
func (t *Throughput) Observe(o Observation) {
	if !o.measured() {
		return
	}
	t.seen = append(t.seen, o)
	t.value = append(t.value, math.Log(o.Value))
	if len(t.seen) > mostRows {
		worst := leastOf(func(i, j int) bool { return t.value[i] > t.value[j] })
		t.seen, t.value = slices.Delete(t.seen, worst, worst+1), slices.Delete(t.value, worst, worst+1)
	}
	if t.Able() && t.pace.due() && !t.l.later {
		t.learn()
	}
}

// learn moves the ensemble to all that was observed.
func (t *Throughput) learn() {
	if !t.Able() || len(t.seen) == 0 {
		return
	}
	t.rows = t.rows[:0]
	for _, o := range t.seen {
		tokens := o.Tokens
		if !known(tokens) {
			tokens, _, _ = t.m.Predict(o.Point)
		}
		t.rows = append(t.rows, t.features(o.Point, tokens))
	}
	t.e.move(t.r, physicsSweeps, t.logp)
	t.refresh()
}

// How far the formulas are trusted: standard deviations of log value, log running and hit ratio.
const (
	valueTrust   = 0.10
	runningTrust = 0.10
	hitTrust     = 0.06
)

func (t *Throughput) logp(x []float64) float64 {
	sum := t.e.logPrior(x)
	c := coefficientsOf(x)
	w := &t.l.facts.Load
	for i := range t.rows {
		o := &t.seen[i]
		y, n, hit := c.at(w, &t.rows[i])
		sum -= huber((t.value[i] - y) / valueTrust)
		if known(o.Running) {
			sum -= huber(math.Log(max(o.Running, 1)/n) / runningTrust)
		}
		if known(o.HitRatio) {
			sum -= huber((o.HitRatio - hit) / hitTrust)
		}
	}
	if math.IsNaN(sum) {
		return -1e12
	}
	return sum
}

// Predict is the logarithm of the expected tokens a second at p for each vector that stands for the
// posterior, into mean (of length physicsShown).
func (t *Throughput) Predict(p Point, tokens float64, mean []float64) {
	f := t.features(p, tokens)
	w := &t.l.facts.Load
	for k := range t.use {
		mean[k], _, _ = t.use[k].at(w, &f)
	}
}

// one is Predict for a single vector.
func (t *Throughput) one(k int, p Point, tokens float64) float64 {
	f := t.features(p, tokens)
	y, _, _ := t.use[k].at(&t.l.facts.Load, &f)
	return y
}
