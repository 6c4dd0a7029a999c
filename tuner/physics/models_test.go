package physics_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sgtune/tuner/physics"
)

// taught is an engine that has seen n random admitted points of a world, the start first.
func taught(w *world, n int, seed uint64) (s *physics.Search) {
	lessons(w, seed, []int{n}, func(_ int, taught *physics.Search) { s = taught })
	return s
}

// lessons calls ask with an engine each time it has seen so many points; numbers ascend.
func lessons(w *world, seed uint64, numbers []int, ask func(n int, s *physics.Search)) {
	s := engine(w, seed)
	points := drawn(w, numbers[len(numbers)-1], seed)
	seen := 0
	for _, n := range numbers {
		for ; seen < n; seen++ {
			s.Observe(w.run(physics.Suggestion{Point: points[seen], Frac: 1}, rand.New(rand.NewPCG(seed, uint64(seen)))))
		}
		ask(n, s)
	}
}

// some are the first n worlds in the fast tier, all of them in the slow one.
func some(n int, all ...*world) []*world {
	if testing.Short() {
		return all[:n]
	}
	return all
}

// drawn are n random admitted points, the start first.
func drawn(w *world, n int, seed uint64) []physics.Point {
	rng := rand.New(rand.NewPCG(seed, 31))
	out := []physics.Point{w.facts.Start}
	for len(out) < n {
		out = append(out, w.random(rng))
	}
	return out[:n]
}

// ladder calls step with each pair of neighbours of a knob, everything else as at p.
func ladder(w *world, p physics.Point, role physics.Role, step func(low, high physics.Point)) {
	i := w.space.Role(role)
	for j := 1; j < len(w.space[i].Values); j++ {
		low, high := slices.Clone(p), slices.Clone(p)
		low[i], high[i] = j-1, j
		step(low, high)
	}
}

// After one log the pool is arithmetic: more of the fraction is more tokens and less free memory, at
// any point and whatever was seen.
func TestPoolGrowsWithFraction(t *testing.T) {
	t.Parallel()
	for _, w := range some(1, serverWorlds()[1], serverWorlds()[0], movedLineWorld()) {
		lessons(w, 3, []int{1, 4, 9}, func(n int, s *physics.Search) {
			for _, p := range drawn(w, 12, 5) {
				ladder(w, p, physics.RoleMemFraction, func(low, high physics.Point) {
					a, b := s.Predict(low), s.Predict(high)
					if b.Tokens < a.Tokens || (a.Tokens > 0 && b.Tokens <= a.Tokens) {
						t.Errorf("%s after %d: tokens fall from %.0f to %.0f between %v and %v", w.name, n, a.Tokens, b.Tokens, low, high)
					}
					if b.FreeGiB >= a.FreeGiB {
						t.Errorf("%s after %d: free memory grows from %.2f to %.2f GiB between %v and %v", w.name, n, a.FreeGiB, b.FreeGiB, low, high)
					}
				})
			}
		})
	}
}

// One log tells the tokens of every fraction, as exactly as its figures are rounded.
func TestOneLogTellsAllTokens(t *testing.T) {
	t.Parallel()
	for _, w := range serverWorlds() {
		s := taught(w, 1, 3)
		ladder(w, w.facts.Start, physics.RoleMemFraction, func(_, p physics.Point) {
			f := w.truth(p)
			got := s.Predict(p)
			if f.ends == physics.OK && math.Abs(got.Tokens-f.seen.Tokens) > 0.005*f.seen.Tokens+0.05*gib/w.facts.CellBytes {
				t.Errorf("%s %v: %.0f tokens, the server has %.0f", w.name, p, got.Tokens, f.seen.Tokens)
			}
			if f.ends == physics.OK && math.Abs(got.FreeGiB-f.seen.AfterGraphGiB) > 0.15 {
				t.Errorf("%s %v: %.2f GiB free, the server has %.2f", w.name, p, got.FreeGiB, f.seen.AfterGraphGiB)
			}
		})
	}
}

// What starts is less likely to survive its load with a higher fraction, and with a larger chunk.
func TestRiskGrows(t *testing.T) {
	t.Parallel()
	for _, w := range some(1, serverWorlds()[0], serverWorlds()[2], movedLineWorld()) {
		lessons(w, 3, []int{1, 5, 12}, func(n int, s *physics.Search) {
			for _, p := range drawn(w, 12, 6) {
				for _, role := range []physics.Role{physics.RoleMemFraction, physics.RoleChunk} {
					ladder(w, p, role, func(low, high physics.Point) {
						a, b := s.Predict(low), s.Predict(high)
						if a.Start < 0.05 || b.Start < 0.05 {
							return
						}
						if b.Survive/b.Start > a.Survive/a.Start+1e-6 {
							t.Errorf("%s after %d: survival grows from %.4f to %.4f between %v and %v", w.name, n, a.Survive/a.Start, b.Survive/b.Start, low, high)
						}
					})
				}
			}
		})
	}
}

// An OOM under load makes a point less trusted, survivals more.
func TestRiskLearns(t *testing.T) {
	t.Parallel()
	w := serverWorlds()[0]
	edge := at(w.space, 0.93, 0, 8192, 256, 128, 1, 1, 0, 0, 0, 0, 1)
	told := func(how physics.Status, times int) float64 {
		s := taught(w, 1, 4)
		for i := range times {
			o := w.run(physics.Suggestion{Point: edge, Frac: 1}, rand.New(rand.NewPCG(9, uint64(i))))
			if o.Status = how; how == physics.LoadOOM {
				o.Value, o.LowWaterGiB = physics.Unknown, physics.Unknown
			}
			o.LowWaterGiB, o.Frac = physics.Unknown, 1
			s.Observe(o)
		}
		return s.Predict(edge).Survive
	}
	before, died, lived := told(physics.OK, 0), told(physics.LoadOOM, 2), told(physics.OK, 3)
	if died > before-0.05 || died > 0.5 {
		t.Errorf("survival after two OOMs is %.3f, and was %.3f before", died, before)
	}
	if lived < before {
		t.Errorf("survival after three survivals is %.3f, and was %.3f before", lived, before)
	}
}

// The spread of a prediction shrinks where measurements are, and in all after many.
func TestPosteriorTightens(t *testing.T) {
	t.Parallel()
	for _, w := range some(2, serverWorlds()[1], plainEnvWorld(), middleWorld()) {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			s := engine(w, 1)
			p := drawn(w, 12, 8)
			var there, memory, around []float64
			for i := range 12 {
				s.Observe(w.run(physics.Suggestion{Point: p[i], Frac: 1}, rand.New(rand.NewPCG(2, uint64(i)))))
				at := s.Predict(p[0])
				there, memory = append(there, at.Spread), append(memory, at.FreeSD)
				sum := 0.0
				for _, q := range drawn(w, 40, 99) {
					sum += s.Predict(q).Spread
				}
				around = append(around, sum/40)
			}
			if there[11] > there[0] || there[11] > 0.06 {
				t.Errorf("spread at a measured point goes %.4f", there)
			}
			if around[11] > 0.8*around[0] {
				t.Errorf("mean spread over the space goes %.4f", around)
			}
			if !w.quiet && (memory[11] > memory[0] || memory[0] > 0.25) {
				t.Errorf("deviation of free memory goes %.4f", memory)
			}
		})
	}
}

// Repeating a measurement narrows the prediction of that point every time.
func TestRepeatsTighten(t *testing.T) {
	t.Parallel()
	w := plainEnvWorld()
	s := engine(w, 1)
	last := math.Inf(1)
	for i := range 5 {
		o := physics.Blank(w.facts.Start, physics.OK)
		o.Value, o.Frac = 50, 1
		s.Observe(o)
		spread := s.Predict(w.facts.Start).Spread
		if spread > last*1.02 {
			t.Errorf("spread grows from %.4f to %.4f at repeat %d", last, spread, i)
		}
		last = spread
	}
	if last > 0.025 {
		t.Errorf("spread is %.4f after five equal launches", last)
	}
}

// A choice that never starts is avoided, what started is trusted.
func TestCrashesAreLearnt(t *testing.T) {
	t.Parallel()
	w := crashWorld()
	s := engine(w, 1)
	start := w.facts.Start
	s.Observe(w.run(physics.Suggestion{Point: start, Frac: 1}, rand.New(rand.NewPCG(1, 1))))
	trusted := s.Predict(start).Crash
	bad := slices.Clone(start)
	bad[0] = 3
	before := s.Predict(bad).Crash
	s.Observe(physics.Blank(bad, physics.Crashed))
	other := slices.Clone(bad)
	other[4], other[5] = 1, 2
	after := s.Predict(other).Crash
	if trusted > 0.1 || before < trusted || after < 0.5 || after < before {
		t.Errorf("chance of a crash: %.3f where it started, %.3f untried, %.3f after a crash of that choice alone", trusted, before, after)
	}
	if still := s.Predict(start).Crash; still > 0.1 {
		t.Errorf("chance of a crash where it started is %.3f after a crash elsewhere", still)
	}
}

// No world and no number of observations makes a figure that is not a number.
func TestPredictionsAreNumbers(t *testing.T) {
	t.Parallel()
	for _, w := range some(3, append([]*world{crashWorld(), plainEnvWorld(), overfullWorld()}, worlds()...)...) {
		lessons(w, 3, []int{0, 1, 3, 8}, func(n int, s *physics.Search) {
			for _, p := range drawn(w, 20, 44) {
				if why := absurd(s.Predict(p)); why != "" {
					t.Fatalf("%s after %d: %s at %v: %+v", w.name, n, why, p, s.Predict(p))
				}
			}
			for _, v := range s.Importances() {
				if math.IsNaN(v.Effect+v.Low+v.Top) || v.Low > v.Top || v.Effect < 0 {
					t.Fatalf("%s after %d: importance %+v", w.name, n, v)
				}
			}
		})
	}
}

// absurd says what is wrong with a prediction, "" for nothing.
func absurd(p physics.Prediction) string {
	for name, v := range map[string]float64{"mean": p.Mean, "spread": p.Spread} {
		if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
			return fmt.Sprintf("%s is %v", name, v)
		}
	}
	for name, v := range map[string]float64{"start": p.Start, "survive": p.Survive, "crash": p.Crash} {
		if !(v >= 0 && v <= 1) { // also not a number
			return fmt.Sprintf("chance %s is %v", name, v)
		}
	}
	if p.Survive > p.Start+1e-9 {
		return "survives more often than it starts"
	}
	for name, v := range map[string]float64{"tokens": p.Tokens, "free memory": p.FreeGiB, "its deviation": p.FreeSD} {
		if math.IsInf(v, 0) {
			return fmt.Sprintf("%s is %v", name, v)
		}
	}
	if p.Tokens < 0 || p.FreeSD < 0 {
		return "negative tokens or deviation"
	}
	return ""
}

// The engine is a function of its observations: a second one that is told the same answers the same,
// be it at every trial or only at the end.
func TestSameHistorySameAnswer(t *testing.T) {
	t.Parallel()
	for _, w := range some(1, crashWorld(), serverWorlds()[1]) {
		s, twin := engine(w, 7), engine(w, 7)
		var told []physics.Observation
		for i := range 5 {
			a, _ := s.Suggest(nil)
			b, _ := twin.Suggest(nil)
			if diff := cmp.Diff(a, b, cmpopts.EquateNaNs()); diff != "" {
				t.Fatalf("%s: two engines differ at trial %d:\n%s", w.name, i, diff)
			}
			o := w.run(a, rand.New(rand.NewPCG(7, uint64(i))))
			told = append(told, o)
			s.Observe(o)
			twin.Observe(o)
			s.Recommend() // asking changes nothing
			s.Predict(a.Point)
		}
		late := engine(w, 7)
		for _, o := range told {
			late.Observe(o)
		}
		a, _ := s.Suggest(nil)
		b, _ := late.Suggest(nil)
		if diff := cmp.Diff(a, b, cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("%s: an engine continued from its history differs:\n%s", w.name, diff)
		}
	}
}

// The first suggestion is what runs today, and nothing is recommended before something was measured.
func TestFirstIsTheStart(t *testing.T) {
	t.Parallel()
	for _, w := range worlds() {
		sg, ok := engine(w, 1).Suggest(nil)
		if !ok || !sg.Point.Equal(w.facts.Start) || sg.AbortBelow > 0 {
			t.Errorf("%s: the first suggestion is %+v (%v), not the start %v", w.name, sg, ok, w.facts.Start)
		}
		if p, ok := engine(w, 1).Recommend(); ok {
			t.Errorf("%s: recommends %v before anything was measured", w.name, p)
		}
	}
}

// Beside pending trials a suggestion is another point, and a space that is used up has none left.
func TestPendingAndUsedUp(t *testing.T) {
	t.Parallel()
	space := physics.Space{choice("backend", 3), ordered("depth", physics.RoleOther, 1, 2)}
	facts := physics.Facts{Ranks: 1, Start: physics.Point{0, 0}, Budget: 30, Seed: 1, Admit: func(p physics.Point) bool { return p[0] != 2 || p[1] != 1 }}
	s := physics.New(space, facts)
	var pending []physics.Point
	for {
		sg, ok := s.Suggest(pending)
		if !ok {
			break
		}
		if slices.ContainsFunc(pending, sg.Point.Equal) {
			t.Fatalf("suggests %v beside %v", sg.Point, pending)
		}
		if !facts.Admit(sg.Point) {
			t.Fatalf("suggests %v, which may not be launched", sg.Point)
		}
		if pending = append(pending, sg.Point); len(pending) > 5 {
			t.Fatalf("six suggestions of five points: %v", pending)
		}
	}
	if len(pending) != 5 {
		t.Errorf("%d of 5 points were suggested: %v", len(pending), pending)
	}
	for i, p := range pending {
		o := physics.Blank(p, physics.OK)
		o.Value, o.Frac = 100+float64(i), 1
		s.Observe(o)
	}
	if p, ok := s.Recommend(); !ok || !facts.Admit(p) {
		t.Errorf("recommends %v, %v", p, ok)
	}
}

// Knobs that do nothing at a point stay where they rest, and a suggestion's shares are shares.
func TestSuggestionsAreWellFormed(t *testing.T) {
	t.Parallel()
	for _, w := range some(1, serverWorlds()[2], middleWorld()) {
		lessons(w, 3, []int{1, 2, 6}, func(n int, s *physics.Search) {
			sg, ok := s.Suggest(nil)
			if !ok {
				t.Fatalf("%s after %d: nothing to suggest", w.name, n)
			}
			if !w.space.Mask(sg.Point, w.facts.Start).Equal(sg.Point) {
				t.Errorf("%s after %d: %v moves a knob that does nothing there", w.name, n, sg.Point)
			}
			if sg.Frac <= 0 || sg.Frac > 1 || sg.AbortBelow < 0 || (sg.AbortBelow > 0 && (sg.AbortFrac <= 0 || sg.AbortFrac > sg.Frac)) {
				t.Errorf("%s after %d: shares %+v", w.name, n, sg)
			}
			y := sg.Why
			if y.Kind == "" || math.IsNaN(y.Mean+y.Spread+y.Best+y.Gain+y.OOM+y.Crash+y.TeachesX) || y.OOM < 0 || y.OOM > 1 || y.Crash < 0 || y.Crash > 1 {
				t.Errorf("%s after %d: why %+v", w.name, n, y)
			}
		})
	}
}
