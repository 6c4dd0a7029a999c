package physics

import (
	"math"
	"math/rand/v2"
	"slices"
)

// acquisition is one turn's choice: what a candidate is worth, and the best of many.
//
//	log(expected improvement) + 1.5 log(chance that it starts and survives) - 0.5 log(minutes)
//
// The expected improvement is over the best configuration's own posterior, so a lucky measurement is
// no hurdle. Candidates that would hardly survive are taken only where nothing else is left.
type acquisition struct {
	s       *Search
	r       *rand.Rand
	pending []Point
	taken   map[string]bool
	frac    float64
	left    int
	turn    int // trials seen and pending

	known     bool      // there is a value to improve on
	best      float64   // log value of the incumbent
	bests     [2]moment // the same under each hypothesis of the residual model
	bestAlive float64   // log of the incumbent's chance to survive
	doubtful  bool      // this turn asks what would be best if physics said nothing
	incumbent Point
	elite     []Point            // the best measured points, incumbent first
	seen      map[string]float64 // scores of this turn
	guess     *guess             // what the truth may be, nil = expected improvement decides
}

const (
	guessRisk   = 4.0   // weight of the chance to start and survive under a drawn truth
	riskPower   = 1.5   // and in the expected improvement
	costPower   = 0.5   // weight of the minutes
	leastGain   = 0.004 // improvement below which a step is not worth a launch
	searchAlive = 0.55  // least chance to survive of a candidate
	searchStart = 0.5   // least chance to start as far as its choices go
	finishAlive = 0.8   // and at the end, when it may be what is exported
	finishTurns = 4     // last turns, which take the models' own optimum
	hopeless    = -1e6  // score of what can't run
	quickTurns  = 7     // turns before knobs are tried at random
	doubtEvery  = 3     // one turn in so many asks what would be best if physics said nothing,
	doubtAt     = 2     // when the trials so far leave this rest,
	doubtFrom   = 5     // from so many on, and while physics has not proven itself
	gatherShare = 0.28  // of the budget at the end that puts together what was learnt
	exportPower = 1.5   // what is exported must survive so many times as long
	windowsHere = 2.0   // full measuring times a candidate should survive
)

func (s *Search) newAcquisition(pending []Point) *acquisition {
	a := &acquisition{s: s, r: s.random(3 + 16*uint64(len(pending))), taken: map[string]bool{}, left: s.left() - len(pending), turn: len(s.seen) + len(pending), seen: map[string]float64{}}
	for _, p := range pending {
		p = s.space.Mask(p, s.l.home)
		a.pending = append(a.pending, p)
		a.taken[key(p)] = true
	}
	a.frac = a.share()
	a.rank()
	a.doubtful = a.known && a.left > finishTurns && a.turn >= doubtFrom && a.turn%doubtEvery == doubtAt && !s.residual.trusted()
	if a.known && !a.doubtful && a.explores() {
		a.guess, _ = s.residual.guess(a.r)
	}
	return a
}

// share is the part of the full measuring time that a trial of this turn is worth: the first trials
// tell large effects, the last ones decide between small ones.
func (a *acquisition) share() float64 {
	n, budget := a.turn, a.s.facts.Budget
	switch {
	case n < quickTurns:
		return searchFrac
	case budget > 0 && float64(a.left) <= gatherShare*float64(budget):
		return 1
	}
	return middleFrac
}

// explores reports whether this turn follows a drawn function. The first turns take what is expected
// to help most, the middle of the budget learns about all open knobs at once, the last turns put
// together what was learnt. Without a budget the two alternate.
func (a *acquisition) explores() bool {
	n, budget := a.turn, a.s.facts.Budget
	switch {
	case n < quickTurns || a.left <= finishTurns:
		return false
	case budget <= 0:
		return n%2 == 0
	}
	return float64(a.left) > gatherShare*float64(budget)
}

// rank orders the measured points by what they are worth to export.
func (a *acquisition) rank() {
	s := a.s
	a.elite = s.measured(false)
	score := map[string]float64{}
	for _, p := range a.elite {
		at := s.predict(p, 3)
		score[key(p)] = at.logMean + 2*math.Log(math.Max(at.Survive, 1e-3))
	}
	slices.SortStableFunc(a.elite, func(x, y Point) int {
		switch d := score[key(y)] - score[key(x)]; {
		case d > 0:
			return 1
		case d < 0:
			return -1
		}
		return 0
	})
	if len(a.elite) > 0 {
		a.known, a.incumbent = true, a.elite[0]
		at := s.predict(a.incumbent, windowsHere)
		a.best, a.bestAlive = at.logMean, math.Log(math.Max(at.Survive, 1e-4))
		a.bests = s.residual.last
	}
	a.elite = a.elite[:min(len(a.elite), 4)]
}

// free reports whether a point was neither launched nor is on its way.
func (a *acquisition) free(p Point) bool {
	k := key(p)
	return !a.s.tried[k] && !a.taken[k]
}

// score is what a candidate is worth, hopeless when it can't be launched.
func (a *acquisition) score(p Point) float64 {
	k := key(p)
	if v, ok := a.seen[k]; ok {
		return v
	}
	v := a.worth(p)
	if math.IsNaN(v) {
		v = hopeless
	}
	a.seen[k] = v
	return v
}

func (a *acquisition) worth(p Point) float64 {
	s := a.s
	if !a.free(p) || !s.l.admits(p) {
		return 2 * hopeless
	}
	if a.guess != nil {
		return a.sampled(p)
	}
	at := s.predict(p, windowsHere)
	start := 1 - at.Crash
	if start <= 0 {
		return hopeless + at.logMean
	}
	chance := math.Log(math.Max(at.Survive, 1e-4)) + math.Log(math.Max(start, 1e-4))
	if !a.known {
		return a.unmeasured(p, at, chance)
	}
	if a.left <= finishTurns {
		v := at.logMean - .25*at.Spread + 2*chance
		if at.Survive < finishAlive {
			v -= 50
		}
		return v
	}
	v := math.Log(math.Max(s.residual.gain(a.bests, exportPower*(math.Log(math.Max(at.Survive, 1e-4))-a.bestAlive), a.doubtful), 1e-12)) + riskPower*chance - costPower*math.Log(s.cost.Predict(p, a.frac))
	v -= 3*a.near(p) + a.spoiled(p)
	alive := searchAlive
	if a.left <= 3 {
		alive = finishAlive
	}
	if at.Survive < alive || start < searchStart {
		v -= 20
	}
	return v
}

// sampled is a candidate's worth under a drawn truth.
func (a *acquisition) sampled(p Point) float64 {
	s := a.s
	tokens, free, sd := s.memory.Predict(p)
	survive := s.survive(p, tokens, free, sd, windowsHere)
	start := s.crashes.Predict(p)
	if start <= 0 {
		return hopeless
	}
	chance := math.Log(math.Max(survive, 1e-4)) + math.Log(math.Max(start, 1e-4))
	v := (a.guess.at(p)+exportPower*math.Log(math.Max(survive, 1e-4)))/.05 + guessRisk*chance - costPower*math.Log(s.cost.Predict(p, a.frac)) - 3*a.near(p) - a.spoiled(p)
	if survive < searchAlive || start < searchStart {
		v -= 200
	}
	return v
}

// unmeasured is a candidate's worth while nothing has a value: it should run, and resemble what runs
// today.
func (a *acquisition) unmeasured(p Point, at Prediction, chance float64) float64 {
	changed := 0.0
	for i := range p {
		if p[i] != a.s.l.home[i] && a.s.space[i].Role == RoleOther {
			changed++
		}
	}
	v := 4*chance - 0.3*changed
	if a.s.throughput.Able() {
		v += at.logMean
	}
	return v - 3*a.near(p) - a.spoiled(p)
}

// spoiled is how close p is to trials that ran but met no limit that counts: nothing else learns from
// them.
func (a *acquisition) spoiled(p Point) float64 {
	sum := 0.0
	for _, o := range a.s.seen {
		if o.Status == Worthless {
			sum += 2 * math.Exp(-a.apart(p, o.Point))
		}
	}
	return sum
}

// near is 1 when a launched or pending point differs only by an immaterial amount.
func (a *acquisition) near(p Point) float64 {
	alike := func(q Point) bool {
		for i, k := range a.s.space {
			if p[i] == q[i] {
				continue
			}
			if k.Kind == Unordered || len(k.Values) <= 12 {
				return false
			}
			tolerance := .07
			if k.Log {
				tolerance = .035
			}
			if math.Abs(a.s.l.numbers[i][p[i]]-a.s.l.numbers[i][q[i]]) > tolerance {
				return false
			}
		}
		return true
	}
	for _, o := range a.s.seen {
		if alike(o.Point) {
			return 1
		}
	}
	if slices.ContainsFunc(a.pending, alike) {
		return 1
	}
	return 0
}

// choose is the best candidate that may be launched.
func (a *acquisition) choose() (p Point, kind string, ok bool) {
	kind = "search"
	switch {
	case !a.known:
		kind = "recover"
	case a.left <= finishTurns:
		kind = "finish"
	}
	if a.known && a.left > finishTurns && a.plateau() {
		if p, ok := a.farthest(); ok {
			return p, "jump", true
		}
	}
	for _, c := range a.candidates() {
		if c.score > 2*hopeless && a.s.l.admits(c.point) {
			return c.point, kind, true
		}
	}
	p, ok = a.any()
	return p, kind, ok
}

// any is an admitted point that was not launched, the best of those looked at; small spaces are
// looked at in full.
func (a *acquisition) any() (best Point, ok bool) {
	top := math.Inf(-1)
	look := func(p Point) {
		p = a.s.space.Mask(p, a.s.l.home)
		if !a.free(p) || !a.s.l.admits(p) {
			return
		}
		if v := a.score(p); v > top {
			best, top, ok = slices.Clone(p), v, true
		}
	}
	size := 1
	for _, k := range a.s.space {
		if size *= len(k.Values); size > fullSearch {
			break
		}
	}
	if size <= fullSearch {
		a.s.space.each(look)
		return best, ok
	}
	for range randomSearch {
		look(a.random())
	}
	return best, ok
}

const (
	fullSearch   = 20_000
	randomSearch = 3_000
)

// each calls do with every point of the space; the point is reused.
func (s Space) each(do func(Point)) {
	p := make(Point, len(s))
	for {
		do(p)
		i := len(s) - 1
		for ; i >= 0; i-- {
			if p[i]++; p[i] < len(s[i].Values) {
				break
			}
			p[i] = 0
		}
		if i < 0 {
			return
		}
	}
}
