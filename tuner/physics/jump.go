package physics

import "math"

const (
	plateauTurns = 5     // turns without progress after which one looks elsewhere
	trustedTurns = 8     // the same while physics foretells the values well
	plateauGain  = 0.005 // least progress, relative
	jumpShare    = 0.33
	jumpDraws    = 20  // of many the farthest is always a corner, which teaches little
	jumpAlive    = 0.7 // least chance to survive of a jump
)

// plateau reports whether the last plateauTurns trials brought nothing better, and the ones before
// that a multiple of it: steps around the best point then tell no more, whatever the models expect of
// them.
func (a *acquisition) plateau() bool {
	if budget := a.s.facts.Budget; budget > 0 && float64(a.left) < jumpShare*float64(budget) {
		return false // what is found now could not be improved any more
	}
	best, since := 0.0, 0
	for _, o := range a.s.seen {
		since++
		if o.measured() && o.Status == OK && o.Value > best*(1+plateauGain) {
			best, since = o.Value, 0
		}
	}
	turns := plateauTurns
	if a.s.residual.trusted() {
		turns = trustedTurns
	}
	return best > 0 && since > 0 && since%turns == 0
}

// farthest is a point that differs most from all that was tried, among random ones that are likely
// to run.
func (a *acquisition) farthest() (best Point, ok bool) {
	top := 0.0
	for range jumpDraws {
		p := a.s.space.Mask(a.random(), a.s.l.home)
		if !a.free(p) || !a.s.l.admits(p) {
			continue
		}
		p = a.s.space.Mask(a.trade(p), a.s.l.home)
		if !a.free(p) || !a.s.l.admits(p) {
			continue
		}
		if at := a.s.predict(p, 1); at.Survive < jumpAlive || at.Crash > 1-jumpAlive {
			continue
		}
		if d := a.distance(p); d > top {
			best, top, ok = p, d, true
		}
	}
	return best, ok
}

// distance is how far p is from the nearest point that was tried or is pending: knobs count alike.
func (a *acquisition) distance(p Point) float64 {
	least := math.Inf(1)
	from := func(q Point) { least = math.Min(least, a.apart(p, q)) }
	for _, o := range a.s.seen {
		from(o.Point)
	}
	for _, q := range a.pending {
		from(q)
	}
	return least
}

// apart is how far two points differ: knobs count alike, 1 for the whole range or another choice.
func (a *acquisition) apart(p, q Point) float64 {
	sum := 0.0
	for i, k := range a.s.space {
		switch {
		case p[i] == q[i]:
		case k.Kind == Unordered:
			sum++
		default:
			sum += math.Abs(a.s.l.numbers[i][p[i]] - a.s.l.numbers[i][q[i]])
		}
	}
	return sum
}
