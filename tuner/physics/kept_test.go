package physics

import (
	"math"
	"reflect"
	"testing"
)

// What an engine may be kept by must know every figure of an observation, also one that is added later.
func TestObservationSame(t *testing.T) {
	t.Parallel()
	o := Blank(Point{1, 2}, OK)
	if !o.Same(Blank(Point{1, 2}, OK)) {
		t.Error("two blank observations differ")
	}
	fields := reflect.TypeFor[Observation]()
	for i := range fields.NumField() {
		other := Blank(Point{1, 2}, OK)
		switch f := reflect.ValueOf(&other).Elem().Field(i); f.Kind() {
		case reflect.Float64:
			f.SetFloat(7)
		case reflect.Uint8:
			f.SetUint(3)
		default:
			other.Point = Point{1, 3}
		}
		if o.Same(other) {
			t.Errorf("another %s makes no difference", fields.Field(i).Name)
		}
	}
}

// Facts differ by what the models learn by, and by nothing that Renew replaces.
func TestFactsAlike(t *testing.T) {
	t.Parallel()
	base := func() Facts {
		return Facts{Ranks: 8, CellScale: []float64{1}, Start: Point{0}, Fixed: map[Role]float64{RoleChunk: 8192}}
	}
	for _, tt := range []struct {
		name   string
		change func(*Facts)
		alike  bool
	}{
		{"nothing", func(*Facts) {}, true},
		{"host memory", func(f *Facts) { f.HostGB = 100 }, true},
		{"budget", func(f *Facts) { f.Budget = 30 }, true},
		{"admission", func(f *Facts) { f.Admit = func(Point) bool { return false } }, true},
		{"ranks", func(f *Facts) { f.Ranks = 4 }, false},
		{"GPU", func(f *Facts) { f.GPUGiB = 94 }, false},
		{"load", func(f *Facts) { f.Load.Clients = 4 }, false},
		{"start", func(f *Facts) { f.Start = Point{1} }, false},
		{"fixed", func(f *Facts) { f.Fixed = nil }, false},
		{"cell scale", func(f *Facts) { f.CellScale = []float64{1, .5} }, false},
		{"seed", func(f *Facts) { f.Seed = 2 }, false},
	} {
		f := base()
		tt.change(&f)
		if got := base().Alike(f); got != tt.alike {
			t.Errorf("%s: alike is %v, want %v", tt.name, got, tt.alike)
		}
	}
}

// However many trials there were, no model is made of more than mostRows of them, a failure stays among
// them, and every prediction is a number.
func TestManyTrialsAreBounded(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("long: some hundred observations")
	}
	space := Space{
		{Name: "mem-fraction-static", Role: RoleMemFraction, Values: evenly(.7, .95, 26), Needs: -1},
		{Name: "chunked-prefill-size", Role: RoleChunk, Values: []float64{2048, 4096, 8192}, Needs: -1},
		{Name: "other", Kind: Unordered, Values: []float64{0, 1, 2, 3, 4}, Needs: -1},
	}
	s := New(space, Facts{Ranks: 1, GPUGiB: 94, Start: Point{10, 1, 0}, Load: Load{Clients: 100, InputTokens: 1000, OutputTokens: 1000}})
	for n := range 2*mostRows + 20 {
		o := Blank(Point{n * 7 % 26, n % 3, n * 3 % 5}, OK)
		o.BeforeLoadGiB, o.AfterLoadGiB, o.KVGiB, o.Tokens, o.AfterGraphGiB = 94, 30, 20, 150_000, 5
		o.Value, o.Frac, o.LowWaterGiB = 1000+float64(n%17), 1, 2
		if n == 3 {
			o = Blank(o.Point, LoadOOM)
			o.AfterGraphGiB = 1
		}
		s.Observe(o)
	}
	for name, n := range map[string]int{
		"throughput": len(s.throughput.seen), "residual": len(s.residual.y), "risk": len(s.risk.seen), "excess": len(s.risk.x.low),
		"failures": len(s.failures.rows),
	} {
		if n > mostRows {
			t.Errorf("%s is made of %d observations, want at most %d", name, n, mostRows)
		}
	}
	kept := 0.0
	for _, label := range s.failures.label {
		kept += label
	}
	if kept != 1 {
		t.Errorf("%v failures are kept, want the one there was", kept)
	}
	if p := s.Predict(Point{3, 1, 2}); math.IsNaN(p.Mean) || math.IsNaN(p.Survive) || p.Mean <= 0 {
		t.Errorf("prediction %+v", p)
	}
	if _, ok := s.Suggest(nil); !ok {
		t.Error("nothing is suggested")
	}
}

func evenly(from, to float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = from + (to-from)*float64(i)/float64(n-1)
	}
	return out
}
