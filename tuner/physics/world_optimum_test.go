package physics_test

import (
	"math/rand/v2"
	"slices"

	"sgtune/tuner/physics"
)

// enumerable is the number of points up to which a world's optimum is found by trying all of them.
const enumerable = 60_000

// optimum is the best point to export and what it is worth, by enumeration of a small world, else
// by hill climbing from many starts.
func (w *world) optimum() (physics.Point, float64) {
	w.once.Do(func() {
		n := 1
		for _, k := range w.space {
			n = min(n*len(k.Values), enumerable+1)
		}
		if n <= enumerable {
			w.enumerate()
			return
		}
		rng := rand.New(rand.NewPCG(1, 2))
		w.climb(w.facts.Start)
		for range 10 {
			if p := w.alive(rng); p != nil {
				w.climb(p)
			}
		}
	})
	return w.best, w.top
}

// regret is the share of the optimum's worth that a point falls short of.
func (w *world) regret(p physics.Point) float64 {
	_, top := w.optimum()
	if top <= 0 || !w.admits(p) {
		return 1
	}
	return 1 - w.truth(p).worth()/top
}

// enumerate tries every admitted point.
func (w *world) enumerate() {
	p := make(physics.Point, len(w.space))
	for {
		if w.admits(p) {
			w.keep(p, w.truth(p).worth())
		}
		i := 0
		for ; i < len(p); i++ {
			if p[i]++; p[i] < len(w.space[i].Values) {
				break
			}
			p[i] = 0
		}
		if i == len(p) {
			return
		}
	}
}

// keep remembers the best point.
func (w *world) keep(p physics.Point, worth float64) {
	if w.best == nil || worth > w.top {
		w.best, w.top = slices.Clone(p), worth
	}
}

// alive is a random admitted point that runs, nil when a thousand draws found none.
func (w *world) alive(rng *rand.Rand) physics.Point {
	for range 1000 {
		if p := w.random(rng); p != nil && w.truth(p).worth() > 0 {
			return p
		}
	}
	return nil
}

// climb walks from p to a point that no change of one knob and no step of two knobs betters.
func (w *world) climb(p physics.Point) {
	p = slices.Clone(p)
	worth := w.truth(p).worth()
	try := func(q physics.Point) bool {
		if !w.admits(q) {
			return false
		}
		if v := w.truth(q).worth(); v > worth {
			copy(p, q)
			worth = v
			return true
		}
		return false
	}
	for better := true; better; {
		better = w.climbOne(p, try) || w.climbTwo(p, try)
	}
	w.keep(p, worth)
}

// climbOne tries every value of every knob in turn.
func (w *world) climbOne(p physics.Point, try func(physics.Point) bool) (better bool) {
	for i, k := range w.space {
		for j := range k.Values {
			q := slices.Clone(p)
			q[i] = j
			better = j != p[i] && try(q) || better
		}
	}
	return better
}

// climbTwo tries steps of two knobs at once.
func (w *world) climbTwo(p physics.Point, try func(physics.Point) bool) (better bool) {
	for i := range w.space {
		for j := range i {
			for _, d := range [...][2]int{{1, 1}, {1, -1}, {-1, 1}, {-1, -1}, {3, 1}, {1, 3}, {-3, 1}, {3, -1}} {
				q := slices.Clone(p)
				q[i] += d[0]
				q[j] += d[1]
				better = try(q) || better
			}
		}
	}
	return better
}
