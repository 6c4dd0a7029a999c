package physics

import (
	"cmp"
	"math"
	"slices"
)

// candidate is a point with its score.
type candidate struct {
	point Point
	score float64
}

// How many candidates a turn looks at.
const (
	drawnRandom  = 350
	drawnElite   = 70 // from each of the best
	drawnBest    = 160
	localRounds  = 7
	localParents = 10
	localEach    = 14
)

// candidates are the points worth a look, the best first: some anywhere, more around the best ones,
// each also with its memory budget filled up or relieved, then a local search from the best of
// them.
func (a *acquisition) candidates() []candidate {
	var all []candidate
	found := map[string]bool{}
	add := func(p Point) {
		p = a.s.space.Mask(p, a.s.l.home)
		if k := key(p); !found[k] {
			found[k] = true
			all = append(all, candidate{p, a.score(p)})
		}
	}
	home := a.s.l.home
	if a.known {
		home = a.incumbent
	}
	for range drawnRandom {
		add(a.random())
	}
	for _, e := range a.elite {
		for range drawnElite {
			add(a.mutate(e, 4))
		}
	}
	for range drawnBest {
		add(a.mutate(home, 8))
	}
	a.single(home, add)
	better := func(x, y candidate) int { return cmp.Compare(y.score, x.score) }
	rounds := localRounds
	if a.doubtful {
		rounds = 0 // what is least known is a corner, and a corner teaches little
	}
	for round := range rounds {
		slices.SortStableFunc(all, better)
		parents := slices.Clone(all[:min(len(all), localParents)])
		changes := 1
		switch {
		case round < 1:
			changes = 5
		case round < 3:
			changes = 3
		}
		for _, c := range parents {
			add(a.trade(c.point))
			for range localEach {
				add(a.mutate(c.point, changes))
			}
		}
	}
	slices.SortStableFunc(all, better)
	return all
}

// single adds every neighbour of p that differs in one knob: each other choice, and steps up and
// down.
func (a *acquisition) single(p Point, add func(Point)) {
	for i, k := range a.s.space {
		for _, j := range neighbours(k, p[i]) {
			q := slices.Clone(p)
			q[i] = j
			add(q)
		}
	}
}

func neighbours(k Knob, at int) []int {
	n := len(k.Values)
	if k.Kind == Unordered || n <= 8 {
		out := make([]int, 0, n)
		for j := range n {
			if j != at {
				out = append(out, j)
			}
		}
		return out
	}
	step := max(1, n/16)
	var out []int
	for _, j := range []int{0, at - 4*step, at - step, at - 1, at + 1, at + step, at + 4*step, n - 1} {
		if j >= 0 && j < n && j != at && !slices.Contains(out, j) {
			out = append(out, j)
		}
	}
	return out
}

// random is a point anywhere in the space; host pools are often none or all there is.
func (a *acquisition) random() Point {
	p := make(Point, len(a.s.space))
	for i := range p {
		p[i] = a.draw(i)
	}
	return p
}

func (a *acquisition) draw(i int) int {
	k := a.s.space[i]
	n := len(k.Values)
	switch {
	case k.Role == RoleHostPool && a.r.Float64() < .15:
		return 0
	case k.Role == RoleHostPool && a.r.Float64() < .12:
		return n - 1
	case k.Log && n > 12:
		return k.Nearest(k.Values[0] * math.Pow(k.Values[n-1]/k.Values[0], a.r.Float64()))
	}
	return a.r.IntN(n)
}

// mutate changes about so many knobs of p, at random and by steps that fit them.
func (a *acquisition) mutate(p Point, most int) Point {
	q := slices.Clone(p)
	rate := float64(1+a.r.IntN(most)) / float64(len(p))
	changed := false
	for i := range q {
		if a.r.Float64() < rate {
			q[i] = a.step(i, q[i])
			changed = true
		}
	}
	if !changed {
		i := a.r.IntN(len(q))
		q[i] = a.step(i, q[i])
	}
	if a.r.Float64() < .25 {
		return a.trade(q)
	}
	return q
}

// step is another value of knob i near j.
func (a *acquisition) step(i, j int) int {
	k := a.s.space[i]
	n := len(k.Values)
	switch {
	case n == 1:
		return 0
	case k.Kind == Unordered:
		return (j + 1 + a.r.IntN(n-1)) % n
	case n <= 12:
		d := 1
		if a.r.Float64() < .3 {
			d = 2
		}
		if a.r.IntN(2) == 0 {
			d = -d
		}
		return min(max(j+d, 0), n-1)
	case k.Role == RoleHostPool && a.r.Float64() < .1:
		return 0
	case k.Log:
		return k.Nearest(k.Values[j] * math.Exp(.3*a.r.NormFloat64()))
	}
	d := int(math.Round(.12 * float64(n) * a.r.NormFloat64()))
	if d == 0 {
		d = 1 - 2*a.r.IntN(2)
	}
	return min(max(j+d, 0), n-1)
}

// trade sets mem-fraction-static of p to what its other knobs leave room for: the highest fraction
// at which it is still likely to survive. Smaller chunks or graphs pay in KV tokens, and only
// together.
func (a *acquisition) trade(p Point) Point {
	i := a.s.l.role[RoleMemFraction]
	if i < 0 {
		return p
	}
	q := slices.Clone(p)
	want := searchAlive + .1 + .3*a.r.Float64()
	low, high := 0, len(a.s.space[i].Values)-1
	for low < high { // survival falls with the fraction
		q[i] = (low + high + 1) / 2
		_, free, sd := a.s.memory.Predict(q)
		if !known(free) {
			return p
		}
		survive, _ := a.s.risk.Predict(q, free, sd, windowsHere)
		if survive*normalCDF((free-.08)/sd) >= want {
			low = q[i]
		} else {
			high = q[i] - 1
		}
	}
	q[i] = low
	return q
}
