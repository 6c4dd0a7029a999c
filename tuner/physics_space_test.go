package tuner

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner/physics"
)

// allAdmitted is an admission without rules.
func allAdmitted(sglang.Config) error { return nil }

// codedProblem has a knob of every kind, and a baseline with values outside of the space.
func codedProblem() Problem {
	return Problem{
		Space: Space{
			{Name: memFraction, Kind: Numeric, Values: []any{0.80, 0.84, 0.88, 0.92}},
			{Name: hicacheSize, Kind: Numeric, Values: []any{0.0, 16.0, 48.0}},
			{Name: "hicache-write-policy", Kind: Categorical, Values: []any{"write_back", "write_through"}},
			{Name: chunkedSize, Kind: Numeric, Values: []any{-1.0, 4096.0, 8192.0}},
			{Name: "enable-mixed-chunk", Kind: Categorical, Values: []any{true, false}},
			{Name: "env.NCCL_ALGO", Kind: Categorical, Values: []any{"Ring", "Tree"}},
			{Name: maxRunning, Kind: Numeric, Log: true, Values: []any{16.0, 64.0, 256.0}},
			{Name: pageSize, Kind: Numeric, Values: []any{16.0, 64.0}},
		},
		Baseline: sglang.Config{memFraction: 0.87, "schedule-policy": "lpm"},
		Base:     sglang.Config{memFraction: 0.87, "schedule-policy": "lpm", kvDtype: "bf16"},
		Flags:    sglang.Config{"tp-size": 8.0}, Admit: allAdmitted, Seed: 1,
	}
}

func baselineTrial(p Problem) *trial.Trial {
	v := 100.0
	return &trial.Trial{
		Number: 0, Role: trial.RoleBaseline, Config: p.Baseline, State: trial.Complete, Value: &v, LowWater: -1, Startup: 1,
		Verdict: trial.Verdict{Outcome: trial.OK, Blames: trial.BlameYes},
		Memory: sglang.Observation{
			Fraction: 0.87, TP: 8, KVDtype: "torch.bfloat16", PageSize: 1, ChunkedPrefill: 8192, MaxRunning: 2048,
			BeforeLoadGiB: 94.04, AfterLoadGiB: 21.71, KVGiB: 9.48, Tokens: 144900, AfterGraphGiB: 6.42,
		},
	}
}

func TestCodedSpace(t *testing.T) {
	t.Parallel()
	p := codedProblem()
	s := newCodedSpace(p)
	kinds := map[string]physics.Role{}
	for i, k := range s.coded {
		if k.Role != physics.RoleOther {
			kinds[k.Name] = k.Role
		}
		if k.Kind == physics.Ordered && !slices.IsSorted(k.Values) {
			t.Errorf("%s is not ascending: %v", k.Name, k.Values)
		}
		if needs := k.Needs; (needs == 1) != (i == 2) || needs != -1 && i != 2 {
			t.Errorf("%s needs %d", k.Name, needs)
		}
		if k.Log != (k.Name == maxRunning) {
			t.Errorf("%s: log %v", k.Name, k.Log)
		}
	}
	want := map[string]physics.Role{
		memFraction: physics.RoleMemFraction, hicacheSize: physics.RoleHostPool, chunkedSize: physics.RoleChunk, maxRunning: physics.RoleMaxRunning,
	}
	if d := cmp.Diff(want, kinds); d != "" {
		t.Errorf("roles (-want +got):\n%s", d)
	}
	chunk := s.coded[3].Values
	if last := chunk[len(chunk)-1]; last < usualPrefill || s.knobs[3].shown(len(chunk)-1) != -1.0 {
		t.Errorf("the whole prompt at once is coded as %v (%v), want the largest", chunk, s.knobs[3].shown(len(chunk)-1))
	}
	if on := s.knobs[4]; on.shown(0) != false || on.shown(1) != true {
		t.Errorf("a switch is coded %v, want off first", on.texts)
	}
}

// Every configuration of the space comes back as it went in, and dead knobs make no difference.
func TestCodedSpaceRoundTrip(t *testing.T) {
	t.Parallel()
	p := codedProblem()
	p.History = []*trial.Trial{baselineTrial(p)}
	s := newCodedSpace(p)
	n := 0
	for c := range p.Space.All() {
		n++
		full := p.config(c)
		point, moved := s.point(full, sglang.Observation{})
		back, ok := s.config(point)
		if moved != 0 || !ok || Key(back) != Key(full) {
			t.Fatalf("%v came back as %v (moved %d)", full, back, moved)
		}
	}
	if n != 4*(1+2*2)*3*2*2*3*2 {
		t.Errorf("%d configurations", n)
	}
}

// A value that what runs today has outside of the space has a place of its own: it is measured there,
// and launched as the nearest value, or not at all where a choice has no neighbour.
func TestBaselineOutsideOfTheSpace(t *testing.T) {
	t.Parallel()
	p := codedProblem()
	for _, history := range [][]*trial.Trial{nil, {baselineTrial(p)}} {
		p.History = history
		s := newCodedSpace(p)
		if got := s.coded[0].Values[s.start[0]]; got != 0.87 {
			t.Errorf("today's fraction stands at %v, want 0.87", got)
		}
		if s.knobs[0].launch[s.start[0]] != 1 {
			t.Errorf("0.87 is launched as value %d, want 0.84: never a larger fraction", s.knobs[0].launch[s.start[0]])
		}
		for knob, wanted := range map[int]any{1: 0.0, 4: false, 5: notSet, 7: 1.0} {
			if got := s.knobs[knob].shown(s.start[knob]); got != wanted {
				t.Errorf("%s starts at %v, want %v", s.coded[knob].Name, got, wanted)
			}
		}
		if c, ok := s.config(s.start); ok {
			t.Errorf("no page size and no algorithm of the space has run, and %v may be launched for what runs today", c)
		}
	}
	s := newCodedSpace(p)
	for knob, wanted := range map[int]float64{3: 8192, 6: 2048, 7: 1} {
		if got := s.coded[knob].Values[s.start[knob]]; got != wanted {
			t.Errorf("%s starts at %v, want %v as the log says", s.coded[knob].Name, got, wanted)
		}
	}
	other := baselineTrial(p)
	other.Number, other.Config = 1, sglang.Merge(p.Base, sglang.Config{hicacheSize: 16.0, "env.NCCL_ALGO": "Tree", pageSize: 64.0})
	p.History = append(p.History, other)
	s = newCodedSpace(p)
	c, ok := s.config(s.start)
	if !ok || c["env.NCCL_ALGO"] != "Tree" || c[pageSize] != 64.0 || c[memFraction] != 0.84 {
		t.Errorf("what is nearest to what runs today: %v %v, want the choices that have run", c, ok)
	}
	if m := newModel(p); m.learnt != 2 || m.trialAt(s.start) != p.History[0] {
		t.Errorf("the baseline was not learnt at the start: %d", m.learnt)
	}
}

func TestFacts(t *testing.T) {
	t.Parallel()
	p := codedProblem()
	p.History, p.Remaining, p.GPUGiB, p.PoolGB, p.Levels = []*trial.Trial{baselineTrial(p)}, 10, 95, 400, []int{40, 120}
	p.Space = slices.DeleteFunc(p.Space, func(d Dimension) bool { return d.Name == chunkedSize || d.Name == hicacheSize || d.Name == maxRunning })
	f := newCodedSpace(p).facts(p, len(p.History), nil)
	want := map[physics.Role]float64{
		physics.RoleHostPool: 0, physics.RoleChunk: 8192, physics.RoleMaxRunning: 2048, physics.RoleConservativeness: 1, physics.RoleGraphBS: 512,
	}
	if d := cmp.Diff(want, f.Fixed); d != "" {
		t.Errorf("fixed roles (-want +got):\n%s", d)
	}
	if f.Ranks != 8 || f.GPUGiB != 95 || f.HostGB != 400 || f.Budget != 11 || f.Load.Clients != 120 || f.CellScale != nil {
		t.Errorf("facts %+v", f)
	}
}

// Physics knows a flag by its newer name, too.
func TestRoleOfRenamedFlag(t *testing.T) {
	t.Parallel()
	p := codedProblem()
	p.Space = Space{{Name: graphDecode, Kind: Numeric, Values: []any{8.0, 32.0}}}
	if i := newCodedSpace(p).coded.Role(physics.RoleGraphBS); i != 0 {
		t.Errorf("%s is not taken for the largest graph", graphDecode)
	}
}

func TestCellScale(t *testing.T) {
	t.Parallel()
	p := codedProblem()
	p.Space = Space{{Name: kvDtype, Kind: Categorical, Values: []any{"bf16", "fp8_e4m3"}}}
	if d := cmp.Diff([]float64{1, 0.5}, newCodedSpace(p).cellScale()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Models with a problem of one kind of knob only must not fail, whatever the values.
func TestCodedOddSpaces(t *testing.T) {
	t.Parallel()
	for name, space := range map[string]Space{
		"one point":     {{Name: pageSize, Kind: Numeric, Values: []any{1.0}}},
		"words":         {{Name: "attention-backend", Kind: Categorical, Values: []any{"fa3", "flashinfer"}}},
		"numbers mixed": {{Name: chunkedSize, Kind: Categorical, Values: []any{8192.0, "auto"}}},
		"minus one":     {{Name: chunkedSize, Kind: Numeric, Values: []any{-1.0}}},
		"long range":    {{Name: maxRunning, Kind: Numeric, Values: longRange()}},
	} {
		p := codedProblem()
		p.Space = space
		for range 2 {
			prop, err := new(physicsSampler).Sample(t.Context(), p)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if _, ok := space.Index(prop.Config); !ok {
				t.Errorf("%s: %v lies outside of the space", name, prop.Config)
			}
			p.History = []*trial.Trial{baselineTrial(p)}
		}
	}
}

func longRange() (out []any) {
	for i := range 300 {
		out = append(out, math.Round(float64(8+i)))
	}
	return out
}
