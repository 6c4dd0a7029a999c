package physics

import "math"

// cost predicts the minutes of a trial: start-up by the size of the host pool, whose pages are
// pinned at start, and the measuring time.
type cost struct {
	l       *layout
	startup *linear // minutes: 1, host pool in GB of all ranks
	measure float64 // minutes of a full measuring time, running mean
	n       float64
	x       sparse
}

func newCost(l *layout) *cost {
	return &cost{l: l, measure: 11, startup: newLinear([]float64{5, 1.0 / 80}, []float64{5, 0.01})}
}

func (c *cost) features(p Point) {
	c.x.reset()
	c.x.add(0, 1)
	c.x.add(1, c.l.pool(p)*float64(c.l.facts.Ranks))
}

// Observe learns from a trial that came up.
func (c *cost) Observe(o Observation) {
	if !known(o.StartupMin) || o.StartupMin <= 0 {
		return
	}
	c.features(o.Point)
	c.startup.observe(&c.x, math.Min(o.StartupMin, 600), 0.1*o.StartupMin+0.1)
	if known(o.CostMin) && o.Frac > 0.05 && o.CostMin > o.StartupMin && o.Status == OK {
		c.n++
		c.measure = running(c.measure, math.Min((o.CostMin-o.StartupMin)/o.Frac, 600), c.n)
	}
}

// Predict is the minutes of a trial that measures the given share of the full time.
func (c *cost) Predict(p Point, frac float64) float64 {
	c.features(p)
	start, _ := c.startup.predict(&c.x)
	return math.Max(start, 0.1) + math.Max(c.measure, 0.1)*frac
}
