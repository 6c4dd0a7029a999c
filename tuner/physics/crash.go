package physics

import (
	"cmp"
	"math"
	"slices"
)

// Crashes is what is known of choices that do not start: backends, page sizes, and pairs of values
// that exclude each other. Each value and each pair is bad with a small prior chance; one that was
// part of a start is good for certain, and a crash must have a cause among those that were not.
//
// Assumes that a crash has one cause (the posterior of Poole's single-fault diagnosis, Representing
// diagnosis knowledge, 1994, by two rounds of reweighting), and that nothing of three values or more
// excludes each other. A knob that physics knows by its role (the KV type, the host pool being on) is
// taken on trust: it is asked only about crashes that have no other cause left, and those may as well
// have one that is not known here.
type Crashes struct {
	l       *layout
	started []Point
	crashed []Point
	good    map[fault]bool
	bad     map[fault]float64 // posterior of what was part of a crash and of no start
	causes  []fault           // its keys, in order
	untried float64           // trials that held a value not known to start
	failed  float64           // those of them that crashed
}

// fault is a value (second is -1) or a pair of values that may keep a server from starting.
type fault struct{ first, value, second, other int }

const (
	priorValue  = 0.08  // an untried choice does not start
	priorTrust  = 12.0  // trials of untried choices that this figure is worth
	priorPair   = 0.004 // an untried pair
	unexplained = 0.03  // a crash without a suspect left has a cause outside of this model
	innocent    = 0.97  // a start of what is known to start
	quarantine  = 0.85  // posterior above which a cause is not tried again
)

func newCrashes(l *layout) *Crashes {
	return &Crashes{l: l, good: map[fault]bool{}, bad: map[fault]float64{}}
}

// Observe learns whether a configuration came up. Failures for memory say nothing here.
func (c *Crashes) Observe(o Observation) {
	c.count(o)
	switch o.Status {
	case OK, Pruned, Started, LoadOOM, Worthless:
		c.started = append(c.started, o.Point)
		c.each(o.Point, func(f fault) { c.good[f] = true })
		c.eachTrusted(o.Point, func(f fault) { c.good[f] = true })
	case Crashed:
		c.crashed = append(c.crashed, o.Point)
	default:
		return
	}
	c.infer()
}

// count learns how often untried values fail on this server. Before the first start a crash may have
// any cause.
func (c *Crashes) count(o Observation) {
	if len(c.started) == 0 || !slices.ContainsFunc(c.l.suspects, func(i int) bool { return !c.good[fault{i, o.Point[i], -1, 0}] }) {
		return
	}
	switch o.Status {
	case Crashed:
		c.failed++
		c.untried++
	case OK, Pruned, Started, LoadOOM, Worthless:
		c.untried++
	default: // says nothing of choices
	}
}

// value is the chance that an untried choice does not start.
func (c *Crashes) value() float64 {
	return (priorValue*priorTrust + c.failed) / (priorTrust + c.untried)
}

// each calls do with every value and every pair of values of p that may be at fault.
func (c *Crashes) each(p Point, do func(fault)) {
	for a, i := range c.l.suspects {
		do(fault{i, p[i], -1, 0})
		for _, j := range c.l.suspects[a+1:] {
			do(fault{i, p[i], j, p[j]})
		}
	}
}

// eachTrusted is each for the choices of knobs that physics knows, alone and in pairs with any other.
func (c *Crashes) eachTrusted(p Point, do func(fault)) {
	for a, i := range c.l.trusted {
		do(fault{i, c.choice(p, i), -1, 0})
		for _, j := range c.l.trusted[a+1:] {
			do(fault{i, c.choice(p, i), j, c.choice(p, j)})
		}
		for _, j := range c.l.suspects {
			do(fault{i, c.choice(p, i), j, p[j]})
		}
	}
}

// choice is the choice that p makes of knob i: of the host pool, whether there is one.
func (c *Crashes) choice(p Point, i int) int {
	switch {
	case i != c.l.role[RoleHostPool]:
		return p[i]
	case c.l.space.Value(p, i) > 0:
		return 1
	}
	return 0
}

// holds reports whether p makes the choices of a fault.
func (c *Crashes) holds(p Point, f fault) bool {
	return c.choice(p, f.first) == f.value && (f.second < 0 || c.choice(p, f.second) == f.other)
}

func (c *Crashes) prior(f fault) float64 {
	switch {
	case f.second >= 0:
		return priorPair
	case f.value == c.choice(c.l.home, f.first):
		return c.value() / 4 // what runs today is taken on trust
	case c.l.space[f.first].Kind == Ordered:
		return c.value() / 4
	}
	return c.value()
}

// infer shares the blame of each crash among its possible causes, and then twice anew: a cause that
// explains several crashes draws the blame of all of them.
func (c *Crashes) infer() {
	odds, other := c.possible()
	for range 3 {
		miss := map[fault]float64{}
		for k, p := range c.crashed {
			sum := other[k]
			c.all(p, func(f fault) { sum += odds[f] })
			if sum <= 0 {
				continue
			}
			c.all(p, func(f fault) {
				if w := odds[f]; w > 0 {
					if miss[f] == 0 {
						miss[f] = 1
					}
					miss[f] *= math.Max(1-w/sum, 1e-6)
				}
			})
			if other[k] > 0 {
				other[k] = 1 - (1-other[k]/sum)*(1-unexplained)
			}
		}
		for f, m := range miss {
			odds[f] = 1 - m*(1-c.prior(f))
		}
	}
	clear(c.bad)
	c.causes = c.causes[:0]
	for f, w := range odds {
		c.bad[f] = w
		c.causes = append(c.causes, f)
	}
	slices.SortFunc(c.causes, func(a, b fault) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.value, b.value), cmp.Compare(a.second, b.second), cmp.Compare(a.other, b.other))
	})
}

// possible are the causes that the crashes may have, with their prior chances; other is, for each
// crash, that of none of them.
func (c *Crashes) possible() (odds map[fault]float64, other []float64) {
	odds, other = map[fault]float64{}, make([]float64, len(c.crashed))
	add := func(f fault) {
		if !c.good[f] {
			odds[f] = c.prior(f)
		}
	}
	for _, p := range c.crashed {
		c.each(p, add)
	}
	for k, p := range c.crashed {
		sum := 0.0
		c.each(p, func(f fault) { sum += odds[f] })
		if sum <= 0 {
			other[k] = unexplained
			c.eachTrusted(p, add)
		}
	}
	return odds, other
}

// all is each and eachTrusted.
func (c *Crashes) all(p Point, do func(fault)) {
	c.each(p, do)
	c.eachTrusted(p, do)
}

// among reports whether p is one of the points.
func among(points []Point, p Point) bool {
	for _, q := range points {
		if p.Equal(q) {
			return true
		}
	}
	return false
}

// Predict is the chance that p starts as far as its choices go. A point is refused (0) when it holds a
// cause that is as good as proven, or when it crashed and never started.
func (c *Crashes) Predict(p Point) float64 {
	if among(c.crashed, p) && !among(c.started, p) {
		return 0
	}
	start := innocent
	for _, i := range c.l.suspects {
		f := fault{i, p[i], -1, 0}
		if c.good[f] {
			continue
		}
		if _, blamed := c.bad[f]; !blamed {
			start *= 1 - c.prior(f)
		}
	}
	for _, f := range c.causes {
		if !c.holds(p, f) {
			continue
		}
		w := c.bad[f]
		if w >= quarantine {
			return 0
		}
		start *= 1 - w
	}
	return start
}
