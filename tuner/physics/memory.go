package physics

import (
	"math"

	"sgtune/sglang"
)

// Memory predicts what a configuration leaves of GPU memory. Its arithmetic is SGLang's own
// (sglang.KVTokens): tokens and free memory are exactly linear in mem-fraction-static, so one start's
// log fixes both for every fraction. What the log shows only for its own configuration, the pool's
// overhead by max-running-requests and the graphs' memory by largest batch and choice, are two small
// linear regressions.
//
// Assumes that free memory before and after the weights does not depend on the configuration.
type Memory struct {
	l             *layout
	before, after float64 // GiB free around the weights, smallest rank
	cell          float64 // bytes of one bf16 KV token on one rank
	beforeN       float64
	afterN        float64
	overhead      *linear // GiB: 1, max running
	graph         *linear // GiB: 1, largest graph, a feature for each choice of an unordered knob
	x             sparse
}

const (
	contextGiB  = 0.6 // CUDA context before anything is loaded, prior
	logSD       = 0.03
	graphSD     = 0.04
	leastTokens = 4000 // below this a server cannot work
)

func newMemory(l *layout) *Memory {
	m := &Memory{l: l, before: Unknown, after: Unknown, cell: Unknown}
	if l.facts.GPUGiB > 0 {
		m.before = l.facts.GPUGiB - contextGiB
		if l.facts.WeightsGiB > 0 {
			m.after = m.before - l.facts.WeightsGiB
		}
	}
	if l.facts.CellBytes > 0 {
		m.cell = l.facts.CellBytes
	}
	m.overhead = newLinear([]float64{1.2, 0.0002}, []float64{1.0, 0.0002})
	mean, sd := []float64{1.05, 0.005}, []float64{0.5, 0.003}
	for range l.choices {
		mean, sd = append(mean, 0), append(sd, 0.2)
	}
	m.graph = newLinear(mean, sd)
	return m
}

// Observe learns from the figures of a start-up log; what is not in it changes nothing.
func (m *Memory) Observe(o Observation) {
	if known(o.BeforeLoadGiB) && o.BeforeLoadGiB > 0 {
		m.beforeN++
		m.before = running(m.before, o.BeforeLoadGiB, m.beforeN)
	}
	if known(o.AfterLoadGiB) && o.AfterLoadGiB > 0 {
		m.afterN++
		m.after = running(m.after, o.AfterLoadGiB, m.afterN)
	}
	if known(o.KVGiB) && known(o.Tokens) && o.KVGiB > 0 && o.Tokens > 0 {
		m.cell = o.KVGiB * sglang.GiB / o.Tokens / m.l.cellScale(o.Point)
	}
	left := m.budget(o.Point)
	if known(o.AfterKVGiB) && known(left) {
		m.poolFeatures(o.Point)
		m.overhead.observe(&m.x, bounded(left-o.AfterKVGiB), logSD)
	}
	switch {
	case known(o.AfterGraphGiB) && known(o.AfterKVGiB):
		m.graphFeatures(o.Point)
		m.graph.observe(&m.x, bounded(o.AfterKVGiB-o.AfterGraphGiB), graphSD)
	case known(o.AfterGraphGiB) && known(left): // some versions print only the last figure
		m.poolFeatures(o.Point)
		pool, _ := m.overhead.predict(&m.x)
		m.graphFeatures(o.Point)
		m.graph.observe(&m.x, bounded(left-pool-o.AfterGraphGiB), 0.3)
	case o.Status == StartOOM && known(o.AfterKVGiB):
		// The graphs needed more than was there.
		m.graphFeatures(o.Point)
		mean, _ := m.graph.predict(&m.x)
		m.graph.observe(&m.x, math.Max(bounded(o.AfterKVGiB)+0.15, mean), 0.15)
	}
}

// running is the mean of n figures, the n-th being v; the first replaces the prior.
func running(mean, v, n float64) float64 {
	if n <= 1 || !known(mean) {
		return v
	}
	return mean + (v-mean)/n
}

// bounded keeps an absurd figure from moving a model to where it can't come back from.
func bounded(gib float64) float64 { return math.Max(-512, math.Min(512, gib)) }

// budget is what mem-fraction-static leaves outside of weights and pool, GiB.
func (m *Memory) budget(p Point) float64 {
	return m.before * (1 - m.l.or(p, RoleMemFraction, usualFraction))
}

func (m *Memory) poolFeatures(p Point) {
	m.x.reset()
	m.x.add(0, 1)
	m.x.add(1, m.l.or(p, RoleMaxRunning, usualRunning))
}

func (m *Memory) graphFeatures(p Point) {
	m.x.reset()
	m.x.add(0, 1)
	m.x.add(1, m.l.or(p, RoleGraphBS, usualGraphBS))
	m.l.eachChoice(p, func(f int) { m.x.add(2+f, 1) })
}

// cellBytes is a KV token's size on one rank at p; Unknown before any log or fact.
func (m *Memory) cellBytes(p Point) float64 { return m.cell * m.l.cellScale(p) }

// Predict is the KV pool in tokens, and free GPU memory after graph capture with its standard
// deviation, GiB. Figures are Unknown until facts or a log give what they need.
func (m *Memory) Predict(p Point) (tokens, freeGiB, sdGiB float64) {
	tokens = Unknown
	if cell := m.cellBytes(p); known(m.before) && known(m.after) && known(cell) && cell > 0 {
		tokens = math.Max(0, float64(sglang.KVTokens(m.before, m.after, m.l.or(p, RoleMemFraction, usualFraction), cell, 1)))
	}
	left := m.budget(p)
	if !known(left) {
		return tokens, Unknown, Unknown
	}
	m.poolFeatures(p)
	pool, v1 := m.overhead.predict(&m.x)
	m.graphFeatures(p)
	graph, v2 := m.graph.predict(&m.x)
	return tokens, left - pool - graph, math.Sqrt(v1 + v2 + logSD*logSD)
}

// Start is the chance that there is memory for the pool and the graphs.
func (m *Memory) Start(tokens, freeGiB, sdGiB float64) float64 {
	if known(tokens) && tokens < leastTokens {
		return 0.02
	}
	if !known(freeGiB) {
		return 0.9
	}
	return normalCDF((freeGiB - 0.08) / sdGiB)
}

func normalCDF(z float64) float64 { return 0.5 * math.Erfc(-z/math.Sqrt2) }
