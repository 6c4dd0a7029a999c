package physics_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"sgtune/tuner/physics"
)

// spoilt is a world where points that meet a condition end otherwise than its arithmetic says; they
// would be faster.
func spoilt(w *world, how physics.Status, meets func(w *world, p physics.Point) bool) *world {
	truth := w.truth
	w.truth = func(p physics.Point) fate {
		f := truth(p)
		if f.ends != physics.OK || !meets(w, p) {
			return f
		}
		if how != physics.LoadOOM {
			return failed(p, how)
		}
		f.oom, f.seen.LowWaterGiB = 1, physics.Unknown
		f.value *= 1.3
		return f
	}
	return w
}

// withKVtype is a world with a choice of KV types, the second of half the size.
func withKVtype(w *world) *world {
	k := choice("kv-cache-dtype", 2)
	k.Role = physics.RoleKVDtype
	w.space = append(w.space, k)
	w.facts.CellScale, w.facts.Start = []float64{1, 0.5}, append(slices.Clone(w.facts.Start), 0)
	return w
}

func hicached(w *world, p physics.Point) bool { return w.num(p, "hicache-size") > 0 }

// What fails although no model expects it is learnt, and costs a few trials, not the night. Before, two
// thirds and more of the trials of these worlds failed.
func TestUnexpectedFailures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		w    *world
		how  physics.Status
		bad  func(w *world, p physics.Point) bool
	}{
		{"the host pool does not start", serverWorlds()[2], physics.Crashed, hicached},
		{"the host pool runs out of GPU memory at start", serverWorlds()[2], physics.StartOOM, hicached},
		{"the host pool runs out of GPU memory under load", serverWorlds()[2], physics.LoadOOM, hicached},
		{"the host has less memory than nothing said", serverWorlds()[2], physics.HostOOM, func(w *world, p physics.Point) bool { return w.num(p, "hicache-size") > 20 }},
		{"the small KV type does not start", withKVtype(serverWorlds()[0]), physics.Crashed, func(_ *world, p physics.Point) bool { return p[12] == 1 }},
		{"large pages run out of GPU memory", serverWorlds()[2], physics.LoadOOM, func(w *world, p physics.Point) bool { return w.num(p, "page-size") == 64 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && c.how != physics.HostOOM {
				t.Skip("plays 16 trials of a large space: in the slow tier")
			}
			w := spoilt(c.w, c.how, c.bad)
			s := engine(w, firstSeed)
			failures := 0
			for i := range 16 {
				sg, ok := s.Suggest(nil)
				if !ok {
					t.Fatalf("nothing to suggest at trial %d", i)
				}
				o := w.run(sg, rand.New(rand.NewPCG(firstSeed, uint64(i))))
				if s.Observe(o); o.Status != physics.OK && o.Status != physics.Pruned {
					failures++
				}
			}
			if failures > 8 {
				t.Errorf("%d of 16 trials failed", failures)
			}
			if p, ok := s.Recommend(); !ok || w.truth(p).worth() == 0 {
				t.Errorf("recommends %v, %v", p, ok)
			}
		})
	}
}

// value is an observation of a measured value.
func value(p physics.Point, v float64) physics.Observation {
	o := physics.Blank(p, physics.OK)
	o.Value, o.Frac = v, 1
	return o
}

// A choice or a pair that was part of crashes only is not tried again; a start acquits it.
func TestQuarantine(t *testing.T) {
	t.Parallel()
	space := physics.Space{choice("a", 4), choice("b", 3), choice("c", 3), choice("d", 2), ordered("e", physics.RoleOther, 1, 2, 3, 4)}
	begin := func(started ...physics.Point) *physics.Search {
		s := physics.New(space, physics.Facts{Ranks: 1, Start: physics.Point{0, 0, 0, 0, 0}, Budget: 30})
		for _, p := range append(started, physics.Point{0, 0, 0, 0, 0}) {
			s.Observe(value(p, 100))
		}
		return s
	}
	s := begin()
	s.Observe(physics.Blank(physics.Point{1, 0, 0, 0, 0}, physics.Crashed))
	s.Observe(physics.Blank(physics.Point{1, 0, 1, 0, 2}, physics.Crashed))
	elsewhere := physics.Point{1, 1, 2, 1, 3}
	if got := s.Predict(elsewhere).Crash; got < 1 {
		t.Errorf("a value that crashed twice is tried again: chance of a crash %.3f", got)
	}
	s.Observe(value(elsewhere, 100))
	if got := s.Predict(physics.Point{1, 1, 2, 1, 0}).Crash; got > 0.5 {
		t.Errorf("a value that started later is still suspected: chance of a crash %.3f", got)
	}
	if got := s.Predict(physics.Point{1, 0, 0, 0, 0}).Crash; got < 1 {
		t.Errorf("a point that crashed and never started may be tried again: chance of a crash %.3f", got)
	}
	s = begin(physics.Point{1, 0, 0, 0, 0}, physics.Point{0, 1, 0, 0, 0})
	s.Observe(physics.Blank(physics.Point{1, 1, 0, 0, 0}, physics.Crashed))
	if got := s.Predict(physics.Point{1, 1, 2, 0, 0}).Crash; got < 1 {
		t.Errorf("a pair that crashed is tried again: chance of a crash %.3f", got)
	}
	if got := s.Predict(physics.Point{1, 0, 0, 0, 1}).Crash; got > 0.2 {
		t.Errorf("half of a pair that crashed is suspected: chance of a crash %.3f", got)
	}
}

// A crash of nothing but what is known to start is no proof against the host pool; a second one is.
func TestOneOddCrashIsNoProof(t *testing.T) {
	t.Parallel()
	w := fuzzWorld()
	s := engine(w, 1)
	s.Observe(value(w.facts.Start, 100))
	s.Observe(physics.Blank(at(w.space, 0.85, 32, 64, 0, 0), physics.Crashed))
	other := at(w.space, 0.8, 32, 16, 0, 0)
	one := s.Predict(other).Crash
	s.Observe(physics.Blank(at(w.space, 0.9, 32, 64, 0, 0), physics.Crashed))
	two := s.Predict(other).Crash
	s.Observe(value(at(w.space, 0.85, 32, 16, 0, 0), 100))
	later := s.Predict(other).Crash
	if one > 0.6 || two < one+0.2 || later > 0.1 {
		t.Errorf("chance of a crash: %.3f after one, %.3f after two, %.3f after a start", one, two, later)
	}
}

// A host pool that ran out of the host's memory rules out all that are as large, until one comes up.
func TestHostMemoryLine(t *testing.T) {
	t.Parallel()
	w := serverWorlds()[2]
	w.facts.HostGB, w.facts.Admit = 0, nil
	s := engine(w, 1)
	s.Observe(value(w.facts.Start, 100))
	large, small := slices.Clone(w.facts.Start), slices.Clone(w.facts.Start)
	large[1], small[1] = 5, 4
	s.Observe(physics.Blank(large, physics.HostOOM))
	for i := range 3 {
		sg, ok := s.Suggest(nil)
		if !ok || sg.Point[1] >= 5 {
			t.Fatalf("suggestion %d after a host OOM at place 5: %v, %v", i, sg.Point, ok)
		}
		s.Observe(value(sg.Point, 100+float64(sg.Point[1])))
	}
	s.Observe(value(large, 200)) // the memory was another's at that time
	larger := false
	for i := 0; i < 8 && !larger; i++ {
		sg, _ := s.Suggest(nil)
		larger = sg.Point[1] >= 5
		s.Observe(value(sg.Point, 100+float64(sg.Point[1])))
	}
	if !larger {
		t.Error("no pool as large as one that came up is suggested")
	}
}

// A low-water mark that came before any figure of memory does not make everything safe later.
func TestLowWaterBeforeMemory(t *testing.T) {
	t.Parallel()
	w := fuzzWorld()
	w.facts.GPUGiB, w.facts.WeightsGiB, w.facts.CellBytes = 0, 0, 0
	s := engine(w, 1)
	o := value(w.facts.Start, 100)
	o.AfterGraphGiB, o.LowWaterGiB = 5, 3
	s.Observe(o)
	c := physics.Blank(at(w.space, 0.8, 0, 64, 2, 0), physics.Crashed)
	c.BeforeLoadGiB = 20
	s.Observe(c)
	at := s.Predict(at(w.space, 0.95, 0, 64, 1, 0))
	if at.FreeGiB > -1 || at.Survive > 0.01 {
		t.Errorf("chance to survive is %.4f with %.1f GiB free", at.Survive, at.FreeGiB)
	}
}
