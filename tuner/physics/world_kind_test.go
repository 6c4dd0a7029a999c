package physics_test

import (
	"math"
	"math/rand/v2"
	"sync"

	"sgtune/tuner/physics"
)

// world is a response surface that the engine is tried on: a space, what the engine may know of it,
// and the truth. None of the worlds uses the engine's formulas, and most of them break its prior.
type world struct {
	name  string
	space physics.Space
	facts physics.Facts
	truth func(physics.Point) fate

	launch float64 // relative standard deviation between two launches of the same point
	window float64 // relative standard deviation of a full window within a launch
	quiet  bool    // no figures of logs and counters, only values

	// bias is the factor by which a window of a share of the full time reads wrong; nil = 1.
	bias func(p physics.Point, frac float64) float64

	once sync.Once
	best physics.Point
	top  float64
}

// fate is what becomes of a point, luck left out.
type fate struct {
	ends  physics.Status      // OK, or how every launch of it ends: Crashed, StartOOM, HostOOM
	value float64             // objective of a full window
	oom   float64             // chance that a full window runs out of GPU memory
	seen  physics.Observation // figures of the stages it reaches
}

// worth is what exporting the point is worth: it has to survive four windows.
func (f fate) worth() float64 {
	if f.ends != physics.OK {
		return 0
	}
	return f.value * math.Pow(1-f.oom, 4)
}

// failed is the fate of a point that never comes up and shows nothing.
func failed(p physics.Point, how physics.Status) fate {
	return fate{ends: how, oom: 1, seen: physics.Blank(p, how)}
}

// run launches a suggestion once and returns what the engine is told. It draws the same number of
// random figures whatever happens, so two players with the same rng meet the same luck.
func (w *world) run(sg physics.Suggestion, rng *rand.Rand) physics.Observation {
	f := w.truth(sg.Point)
	luck := [6]float64{rng.Float64(), rng.Float64(), rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()}
	o := physics.Blank(sg.Point, f.ends)
	if !w.quiet {
		o = f.seen
		o.Point, o.Status = sg.Point, f.ends
		o.BeforeLoadGiB += 0.01 * luck[4]
		o.AfterLoadGiB += 0.01 * luck[5]
		o.AfterGraphGiB += 0.01 * luck[4]
	}
	o.Running, o.HitRatio, o.LowWaterGiB = physics.Unknown, physics.Unknown, physics.Unknown
	o.StartupMin, o.CostMin = 4, 5
	if f.ends != physics.OK {
		o.StartupMin, o.CostMin = physics.Unknown, 3
		return o
	}
	if sg.Frac <= 0 {
		o.Status = physics.Started
		return o
	}
	frac := min(max(sg.Frac, 0.1), 1)
	read := func(part, noise float64) float64 {
		v := f.value * math.Exp(w.launch*luck[2]+w.window*noise/math.Sqrt(part))
		if w.bias != nil {
			v *= w.bias(sg.Point, part)
		}
		return v
	}
	dies := luck[0] < 1-math.Pow(1-f.oom, 0.3+0.7*frac)
	at := luck[1] * frac
	if sg.AbortBelow > 0 && sg.AbortFrac > 0 && sg.AbortFrac < frac && (!dies || at > sg.AbortFrac) {
		if v := read(sg.AbortFrac, luck[3]); v < sg.AbortBelow {
			o.Status, o.Value, o.Frac, o.CostMin = physics.Pruned, v, sg.AbortFrac, 5+15*sg.AbortFrac
			w.counters(&o, f, luck[5])
			return o
		}
	}
	if dies {
		o.Status, o.CostMin = physics.LoadOOM, 5+15*at
		return o
	}
	o.Value, o.Frac, o.CostMin = read(frac, luck[3]), frac, 5+15*frac
	w.counters(&o, f, luck[5])
	return o
}

// counters fills in what only a run under load shows.
func (w *world) counters(o *physics.Observation, f fate, noise float64) {
	if w.quiet {
		return
	}
	o.Running, o.HitRatio, o.LowWaterGiB = f.seen.Running, f.seen.HitRatio, max(f.seen.LowWaterGiB+0.05*noise, 0)
}

// admits is facts.Admit, and whether the point lies in the space at all.
func (w *world) admits(p physics.Point) bool {
	if len(p) != len(w.space) {
		return false
	}
	for i, j := range p {
		if j < 0 || j >= len(w.space[i].Values) {
			return false
		}
	}
	return w.facts.Admit == nil || w.facts.Admit(p)
}

// num is the number of the knob with a name at p.
func (w *world) num(p physics.Point, name string) float64 {
	for i := range w.space {
		if w.space[i].Name == name {
			return w.space.Value(p, i)
		}
	}
	return math.NaN()
}

// random is a point drawn uniformly from those admitted; nil when a thousand draws found none.
func (w *world) random(rng *rand.Rand) physics.Point {
	for range 1000 {
		p := make(physics.Point, len(w.space))
		for i, k := range w.space {
			p[i] = rng.IntN(len(k.Values))
		}
		if w.admits(p) {
			return p
		}
	}
	return nil
}

// ordered is a knob of numbers without a knob it depends on.
func ordered(name string, role physics.Role, values ...float64) physics.Knob {
	return physics.Knob{Name: name, Role: role, Values: values, Needs: -1}
}

// logged is ordered where ratios matter.
func logged(name string, role physics.Role, values ...float64) physics.Knob {
	k := ordered(name, role, values...)
	k.Log = true
	return k
}

// choice is a knob of n choices without an order.
func choice(name string, n int) physics.Knob {
	k := physics.Knob{Name: name, Kind: physics.Unordered, Needs: -1}
	for j := range n {
		k.Values = append(k.Values, float64(j))
	}
	return k
}

// needing is a knob that does nothing unless the knob at index on is above 0.
func needing(k physics.Knob, on int) physics.Knob {
	k.Needs = on
	return k
}

// steps are the numbers from low to high, step apart.
func steps(low, high, step float64) []float64 {
	var out []float64
	for i := 0; low+float64(i)*step <= high+step/1000; i++ {
		out = append(out, math.Round((low+float64(i)*step)*1e6)/1e6)
	}
	return out
}

// at is the point that has the given numbers, each knob at its nearest value.
func at(s physics.Space, numbers ...float64) physics.Point {
	p := make(physics.Point, len(s))
	for i, v := range numbers {
		p[i] = s[i].Nearest(v)
	}
	return p
}
