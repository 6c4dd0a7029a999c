package physics_test

import (
	"encoding/binary"
	"math"
	"testing"

	"sgtune/tuner/physics"
)

// absurdFigures are what a broken log or counter may say.
var absurdFigures = []float64{
	0, -1, -80, 1e-300, 1e300, -1e300, math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN(), 0.5, 3, 80, 1e6, 160_000,
}

// FuzzHistory feeds the engine histories that no server would write: all failed, contradictory, with
// negative memory, huge values and no tokens. It must go on: no panic, an admitted suggestion that was
// not tried, a recommendation that was measured or is the start, and figures that are numbers.
func FuzzHistory(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	for how := range byte(8) { // every trial ends the same way
		var all []byte
		for i := range byte(8) {
			all = append(all, how, i, 3*i, i*i, 7, i, 200, 100)
		}
		f.Add(all)
	}
	f.Add([]byte("the same point again and again, each time with another end; the same point again and again"))
	f.Fuzz(func(t *testing.T, data []byte) {
		w := fuzzWorld()
		s := physics.New(w.space, w.facts)
		tried := map[string]bool{}
		valued := map[string]bool{}
		for range 12 {
			if len(data) < 8 {
				break
			}
			o := absurdObservation(w, data[:8])
			data = data[8:]
			s.Observe(o)
			at := key(w.space.Mask(o.Point, w.facts.Start)) // what does nothing makes no other point
			tried[at] = true
			valued[at] = valued[at] || !math.IsNaN(o.Value)
		}
		check(t, w, s, tried, valued)
	})
}

// fuzzWorld is small, so that a try is cheap, and has a knob of every kind.
func fuzzWorld() *world {
	space := physics.Space{
		ordered("mem-fraction-static", physics.RoleMemFraction, 0.8, 0.85, 0.9, 0.95),
		ordered("hicache-size", physics.RoleHostPool, 0, 32, 64),
		logged("max-running-requests", physics.RoleMaxRunning, 16, 64, 256),
		choice("attention-backend", 3),
		needing(choice("hicache-write-policy", 2), 1),
	}
	w := &world{name: "fuzz", space: space}
	w.facts = physics.Facts{
		Ranks: 2, GPUGiB: 79, WeightsGiB: 38, CellBytes: 160_000, HostGB: 100, Budget: 30, Seed: 3,
		Load:  physics.Load{Clients: 100, InputTokens: 2000, OutputTokens: 400, SharedTokens: 1000},
		Start: at(space, 0.85, 0, 64, 0, 0),
		Admit: func(p physics.Point) bool { return p[1] != 2 },
	}
	return w
}

// absurdObservation makes an observation of eight bytes.
func absurdObservation(w *world, b []byte) physics.Observation {
	bits := binary.LittleEndian.Uint64(b)
	next := func(n uint64) int {
		v := bits % n
		bits = bits/n*31 + v
		return int(v)
	}
	status := physics.Status(next(8))
	p := make(physics.Point, len(w.space))
	for i, k := range w.space {
		p[i] = next(uint64(len(k.Values)))
	}
	o := physics.Blank(p, status)
	figure := func() float64 {
		if next(3) == 0 {
			return physics.Unknown
		}
		return absurdFigures[next(uint64(len(absurdFigures)))]
	}
	o.Value, o.Frac, o.RelSD = figure(), figure(), figure()
	o.BeforeLoadGiB, o.AfterLoadGiB, o.KVGiB, o.Tokens = figure(), figure(), figure(), figure()
	o.AfterKVGiB, o.AfterGraphGiB, o.LowWaterGiB = figure(), figure(), figure()
	o.Running, o.HitRatio, o.StartupMin, o.CostMin = figure(), figure(), figure(), figure()
	return o
}

// key names a point.
func key(p physics.Point) string {
	b := make([]byte, len(p))
	for i, j := range p {
		b[i] = byte(j)
	}
	return string(b)
}

// check asks everything that can be asked.
func check(t *testing.T, w *world, s *physics.Search, tried, valued map[string]bool) {
	t.Helper()
	sg, ok := s.Suggest(nil)
	if !ok {
		t.Fatalf("nothing to suggest after %d of the points", len(tried))
	}
	if !w.admits(sg.Point) {
		t.Fatalf("suggests %v, which may not be launched", sg.Point)
	}
	if tried[key(sg.Point)] {
		t.Fatalf("suggests %v again", sg.Point)
	}
	y := sg.Why
	for _, v := range []float64{sg.Frac, sg.AbortBelow, sg.AbortFrac, y.Mean, y.Spread, y.Best, y.Gain, y.OOM, y.Crash, y.TeachesX} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			t.Fatalf("suggestion with a figure that is no number: %+v", sg)
		}
	}
	if sg.Frac <= 0 || sg.Frac > 1 {
		t.Fatalf("share of the measuring time is %v", sg.Frac)
	}
	if why := absurd(s.Predict(sg.Point)); why != "" {
		t.Fatalf("%s: %+v", why, s.Predict(sg.Point))
	}
	if p, ok := s.Recommend(); ok && !valued[key(p)] && !p.Equal(w.facts.Start) {
		t.Fatalf("recommends %v, which has no value", p)
	}
	for _, v := range s.Importances() {
		if math.IsNaN(v.Effect + v.Low + v.Top) {
			t.Fatalf("importance %+v", v)
		}
	}
}
