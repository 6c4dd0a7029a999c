package tuner

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner/physics"
)

// truth is a made-up server: more tokens and a host pool help, a chunk of 8192 is best, and above a
// fraction of 0.9 prefill runs out of memory.
func truth(p Problem, n int, c sglang.Config) *trial.Trial {
	f, _ := c.Float(memFraction)
	chunk, _ := c.Float(chunkedSize)
	pool, _ := c.Float(hicacheSize)
	v := 100 * (1 + 4*(f-0.87)) * (1 + 0.002*pool)
	if chunk != 8192 {
		v *= 0.95
	}
	t := baselineTrial(p)
	t.Number, t.Role, t.Config, t.Value, t.Sampler = n, trial.RoleSearch, c, &v, physicsName
	tokens := sglang.KVTokens(94.04, 21.71, f, 70272, 1)
	t.Memory.Fraction, t.Memory.Tokens, t.Memory.KVGiB = f, tokens, float64(tokens)*70272/bytesPerGiB
	t.Memory.AfterGraphGiB = 94.04*(1-f) - 5.81
	t.Memory.ChunkedPrefill, t.Memory.PageSize = int(chunk), 16
	if f > 0.9 {
		t.State, t.Value = trial.Failed, nil
		t.Verdict = trial.Verdict{Outcome: trial.GPUOOM, Cause: "prefill_activation", Phase: sglang.PhasePrefill, Blames: trial.BlameYes}
	}
	return t
}

// played is a search of eight trials on the made-up server, with its proposals; it is made once.
var played = sync.OnceValues(func() (Problem, []Proposal) {
	p := codedProblem()
	p.History = []*trial.Trial{baselineTrial(p)}
	var all []Proposal
	for n := range 8 {
		p.Remaining = 12 - n
		prop, err := new(physicsSampler).Sample(context.Background(), p)
		if err != nil {
			return p, nil
		}
		all = append(all, prop)
		p.History = append(p.History, truth(p, n+1, prop.Config))
	}
	return p, all
})

// The same history and seed give the same proposal, so a study that was killed goes on where it was.
func TestPhysicsIsAFunctionOfItsHistory(t *testing.T) {
	t.Parallel()
	p, all := played()
	if len(all) != 8 {
		t.Fatalf("%d proposals", len(all))
	}
	p.History, p.Remaining = p.History[:5], 12-4
	prop, err := new(physicsSampler).Sample(t.Context(), p)
	if d := cmp.Diff(all[4], prop); err != nil || d != "" {
		t.Errorf("resumed after trial 4: %v\n%s", err, d)
	}
	p.Seed = 2
	if other, err := new(physicsSampler).Sample(t.Context(), p); err != nil || cmp.Equal(all[4], other) {
		t.Errorf("another seed proposes the same: %v", err)
	}
}

// What is pending elsewhere is neither proposed again nor forgotten.
func TestPhysicsHeedsPending(t *testing.T) {
	t.Parallel()
	p, _ := played()
	p.Remaining, p.History = 10, p.History[:4]
	seen := map[string]bool{}
	for n := range 4 {
		prop, err := new(physicsSampler).Sample(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if seen[Key(prop.Config)] {
			t.Fatalf("%v is proposed while it runs", prop.Config)
		}
		seen[Key(prop.Config)] = true
		p.Pending = append(p.Pending, &trial.Trial{Number: 10 + n, Config: prop.Config, State: trial.Running})
	}
}

// A proposal says why in figures that JSON can hold, and in a sentence a person can read.
func TestPhysicsSaysWhy(t *testing.T) {
	t.Parallel()
	p, all := played()
	if all[0].Sampler != physicsName || all[0].Reason == nil || all[0].Reason.OOM == nil || all[0].Reason.Tokens == nil {
		t.Errorf("the first proposal: %+v", all[0].Reason)
	}
	last := all[7]
	if r := last.Reason; r.Value == nil || r.Best == nil || r.Over == nil || r.Kind == "" {
		t.Errorf("after seven trials: %+v", r)
	}
	for _, part := range []string{"expected ", " output tok/s (", " expected of trial ", "chance of GPU OOM", "K KV tokens", " GiB free"} {
		if !strings.Contains(last.Why, part) {
			t.Errorf("no %q in %q", part, last.Why)
		}
	}
	for _, prop := range all {
		if _, err := json.Marshal(prop.Reason); err != nil {
			t.Errorf("%+v: %v", prop.Reason, err)
		}
	}
	m := newModel(p)
	number := 7
	r := &trial.Reason{Kind: "search", Value: figure(1420.2), Best: figure(1365.6), Over: &number, OOM: figure(0.03), Crash: figure(0.01), Tokens: figure(164_211), FreeGiB: figure(4.12), Teaches: "page-size"}
	want := "expected 1,420 output tok/s (+4.0% over the 1,366 expected of trial 7), 3% chance of GPU OOM, 164K KV tokens, 4.1 GiB free; teaches most about page-size"
	if got := m.sentence(r); got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
	bare := m.reason(physics.Why{Kind: "search", Mean: math.NaN(), Tokens: physics.Unknown, FreeGiB: physics.Unknown, OOM: math.Inf(1)})
	if _, err := json.Marshal(bare); err != nil || bare.Tokens != nil || bare.OOM != nil {
		t.Errorf("unknown figures: %+v, %v", bare, err)
	}
}

// When nothing that the models want may be launched, a point is drawn, and when none is left the
// search is over.
func TestPhysicsFallsBack(t *testing.T) {
	t.Parallel()
	p := codedProblem()
	p.Admit = func(sglang.Config) error { return errors.New("no") }
	if _, err := new(physicsSampler).Sample(t.Context(), p); !errors.Is(err, ErrExhausted) {
		t.Errorf("nothing is admitted: %v", err)
	}
	p.Space = nil
	if _, err := new(physicsSampler).Sample(t.Context(), p); !errors.Is(err, ErrExhausted) {
		t.Errorf("no space: %v", err)
	}
}

// The view is what the candidate is chosen by: measured configurations stand where their values are,
// and what is exported has been measured and does not stand at the memory line.
func TestPhysicsView(t *testing.T) {
	t.Parallel()
	p, _ := played()
	v, ok := physicsView(p)
	if !ok {
		t.Fatal("nothing was learnt")
	}
	for _, tr := range p.History {
		s, ok := v.of(tr.Config)
		if !ok {
			t.Fatalf("trial %d has no place", tr.Number)
		}
		if counts(tr) && math.Abs(s.Mean / *tr.Value - 1) > 0.1 {
			t.Errorf("trial %d: expected %.1f, measured %.1f", tr.Number, s.Mean, *tr.Value)
		}
		if !(s.Spread >= 0) || s.Survive < 0 || s.Survive > 1 || s.Crash < 0 || s.Crash > 1 || s.Tokens <= 0 {
			t.Errorf("trial %d: %+v", tr.Number, s)
		}
	}
	c, ok := v.recommended()
	f, _ := c.Float(memFraction)
	if !ok || f > 0.9 || !taken(p.History)[Key(c)] {
		t.Errorf("recommended %v, %v", c, ok)
	}
	if _, ok := v.of(sglang.Merge(c, sglang.Config{"disable-overlap-schedule": true})); ok {
		t.Error("a configuration with other flags outside of the space has a standing")
	}
	if _, ok := physicsView(Problem{History: p.History}); ok {
		t.Error("a view without a space")
	}
}

func TestImportances(t *testing.T) {
	t.Parallel()
	if got := Learn(codedProblem()).Importances; got != nil {
		t.Errorf("before any trial: %+v", got)
	}
	p, _ := played()
	got := Learn(p).Importances
	if len(got) != len(p.Space) {
		t.Fatalf("%d knobs, want %d", len(got), len(p.Space))
	}
	for i, k := range got {
		if i > 0 && k.Effect > got[i-1].Effect {
			t.Errorf("%s comes after a smaller one", k.Knob)
		}
		if k.Low < 0 || k.Low > k.Effect || k.High < k.Effect || k.Best == nil {
			t.Errorf("%+v", k)
		}
	}
	if _, err := json.Marshal(got); err != nil {
		t.Error(err)
	}
}

func TestFeasibility(t *testing.T) {
	t.Parallel()
	p := codedProblem()
	if Learn(p).Feasibility != nil {
		t.Error("a map before any start")
	}
	p, _ = played()
	p.Admit = HostRAM{Fixed: p.Flags, Budget: 200e9, Available: -1, Own: -1}.Check
	m := Learn(p).Feasibility
	if m == nil {
		t.Fatal("no map")
	}
	if d := cmp.Diff([]float64{0.80, 0.84, 0.88, 0.92}, m.Fractions); d != "" {
		t.Errorf("columns (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]float64{0, 16, 48}, m.HostPools); d != "" {
		t.Errorf("rows (-want +got):\n%s", d)
	}
	for i, row := range m.Cells {
		for j, c := range row {
			if refused := m.HostPools[i] == 48; (c.Refused == RuleHostRAM) != refused || refused != (c.Why != "") {
				t.Errorf("%v GB: %+v, want the RAM line between 16 and 48", m.HostPools[i], c)
			}
			if c.Tokens == nil || c.OOM == nil || c.FreeGiB == nil {
				t.Fatalf("row %d column %d: %+v", i, j, c)
			}
			if j > 0 && (*c.Tokens <= *row[j-1].Tokens || *c.OOM < *row[j-1].OOM-1e-9 || *c.FreeGiB >= *row[j-1].FreeGiB) {
				t.Errorf("a larger fraction gives %+v after %+v", c, row[j-1])
			}
		}
	}
	if want := float64(sglang.KVTokens(94.04, 21.71, 0.88, 70272, 1)); math.Abs(*m.Cells[0][2].Tokens/want-1) > 0.01 {
		t.Errorf("%v KV tokens at 0.88, want %v", *m.Cells[0][2].Tokens, want)
	}
	if len(m.Measured) != len(p.History) || m.Shown != len(p.History) {
		t.Errorf("%d trials on the map, learnt from %d, want %d", len(m.Measured), m.Shown, len(p.History))
	}
	if _, err := json.Marshal(m); err != nil {
		t.Error(err)
	}
	p.Space = p.Space[3:]
	v, ok := reviewed(p)
	if !ok {
		t.Fatal("nothing was learnt")
	}
	if m, ok := v.feasibility(p.Baseline); !ok || len(m.HostPools) != 1 || len(m.Fractions) < 10 {
		t.Errorf("memory is not searched: %v %v %v", ok, m.Fractions, m.HostPools)
	}
}
