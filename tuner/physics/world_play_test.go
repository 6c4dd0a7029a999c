package physics_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sgtune/tuner/physics"
)

// player is what plays a world: the engine, or a comparator.
type player interface {
	Suggest(pending []physics.Point) (physics.Suggestion, bool)
	Observe(o physics.Observation)
	Recommend() (physics.Point, bool)
}

// journey is one run of a player through a world.
type journey struct {
	regret   []float64 // after each trial, of the recommendation
	crashes  int       // start failures and load OOMs
	hostOOMs int
	refused  int // suggestions that Admit refuses
	repeats  int // suggestions of a point seen before while others were left
	unproven int // recommendations of a point that never showed a value, the start aside
	final    fate
	trail    []string // a line a trial, for the log of a failed test
}

// after is the regret after n trials, or the last there is.
func (j journey) after(n int) float64 {
	if len(j.regret) == 0 {
		return 1
	}
	return j.regret[min(n, len(j.regret))-1]
}

// play lets a player make so many trials in a world. The luck of trial i is the same for every player.
func play(w *world, s player, trials int, seed uint64) journey {
	var j journey
	seen := map[string]bool{}
	proven := map[string]bool{}
	rec, recommended := physics.Point(nil), false
	for i := range trials {
		sg, ok := s.Suggest(nil)
		if !ok {
			break
		}
		if !w.admits(sg.Point) {
			j.refused++
			break
		}
		key := fmt.Sprint(sg.Point)
		if seen[key] {
			j.repeats++
		}
		seen[key] = true
		o := w.run(sg, rand.New(rand.NewPCG(seed, uint64(i))))
		s.Observe(o)
		switch o.Status {
		case physics.Crashed, physics.StartOOM, physics.LoadOOM:
			j.crashes++
		case physics.HostOOM:
			j.hostOOMs++
		case physics.OK, physics.Pruned:
			proven[key] = true
		}
		regret := 1.0
		if rec, recommended = s.Recommend(); recommended {
			regret = w.regret(rec)
			if !proven[fmt.Sprint(rec)] && !rec.Equal(w.facts.Start) {
				j.unproven++
			}
		}
		j.regret = append(j.regret, regret)
		j.trail = append(j.trail, w.line(i, sg, o, rec, regret))
	}
	if recommended {
		j.final = w.truth(rec)
	}
	return j
}

// line is one trial in words.
func (w *world) line(i int, sg physics.Suggestion, o physics.Observation, rec physics.Point, regret float64) string {
	return fmt.Sprintf("%2d %-6s %v f=%.2f status=%d value=%.1f worth=%.3f (mean %.1f sd %.3f best %.1f gain %.3f oom %.2f crash %.2f) rec %v regret %.3f",
		i, sg.Why.Kind, []int(sg.Point), sg.Frac, o.Status, o.Value, w.truth(sg.Point).worth()/max(w.top, 1e-9),
		sg.Why.Mean, sg.Why.Spread, sg.Why.Best, sg.Why.Gain, sg.Why.OOM, sg.Why.Crash, []int(rec), regret)
}

// blind draws admitted points at random, the start first, and recommends the best value it saw.
type blind struct {
	w    *world
	rng  *rand.Rand
	seen map[string]bool
	best physics.Observation
}

func newBlind(w *world, seed uint64) *blind {
	return &blind{w: w, rng: rand.New(rand.NewPCG(seed, 77)), seen: map[string]bool{}}
}

// Suggest is the start, then random points not drawn before.
func (b *blind) Suggest([]physics.Point) (physics.Suggestion, bool) {
	p := b.w.facts.Start
	if len(b.seen) > 0 {
		p = nil
		for range 100 {
			if q := b.w.random(b.rng); q != nil && !b.seen[fmt.Sprint(q)] {
				p = q
				break
			}
		}
	}
	if p == nil {
		return physics.Suggestion{}, false
	}
	b.seen[fmt.Sprint(p)] = true
	return physics.Suggestion{Point: p, Frac: 1}, true
}

// Observe keeps the best value.
func (b *blind) Observe(o physics.Observation) {
	if o.Status == physics.OK && (b.best.Point == nil || o.Value > b.best.Value) {
		b.best = o
	}
}

// Recommend is the best point seen.
func (b *blind) Recommend() (physics.Point, bool) { return b.best.Point, b.best.Point != nil }

// tally is what many journeys through one world came to.
type tally []journey

// median is the middle regret after n trials.
func (t tally) median(n int) float64 {
	var all []float64
	for _, j := range t {
		all = append(all, j.after(n))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// mean is the mean regret after n trials.
func (t tally) mean(n int) float64 {
	sum := 0.0
	for _, j := range t {
		sum += j.after(n)
	}
	return sum / float64(len(t))
}

// crashes is the mean number of crashed trials.
func (t tally) crashes() float64 {
	sum := 0
	for _, j := range t {
		sum += j.crashes
	}
	return float64(sum) / float64(len(t))
}

// String is the tally as a row of figures: mean regrets in percent, crashes a run.
func (t tally) String() string {
	var b strings.Builder
	for _, n := range []int{1, 2, 5, 10, 20, 30} {
		fmt.Fprintf(&b, " r%d %.1f", n, 100*t.mean(n))
	}
	worst := 0.0
	for _, j := range t {
		worst = max(worst, j.after(30))
	}
	fmt.Fprintf(&b, " median %.1f worst %.1f crashes %.1f", 100*t.median(30), 100*worst, t.crashes())
	return strings.TrimSpace(b.String())
}

// engine is a physics.Search on a world.
func engine(w *world, seed uint64) *physics.Search {
	f := w.facts
	f.Seed = seed
	return physics.New(w.space, f)
}

// tour plays a world with several seeds, the engine and the blind comparator beside it.
func tour(t *testing.T, w *world, trials, seeds int) (searched, drawn tally) {
	t.Helper()
	for i := range uint64(seeds) {
		seed := firstSeed + i
		searched = append(searched, play(w, engine(w, seed), trials, seed))
		drawn = append(drawn, play(w, newBlind(w, seed), trials, seed))
	}
	return searched, drawn
}
