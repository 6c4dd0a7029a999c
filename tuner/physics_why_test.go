package tuner

import (
	"errors"
	"fmt"
	"testing"

	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner/physics"
)

// What is expected is compared in words that stay true where it is less than the best, or the same.
func TestBeside(t *testing.T) {
	t.Parallel()
	seven, tokens := 7, Objective{Metric: "output_tok_s"}
	tests := []struct {
		value, best float64
		over        *int
		want        string
	}{
		{1420, 1365.6, &seven, " (+4.0% over the 1,366 expected of trial 7)"},
		{1300, 1365.6, &seven, " (4.8% below the 1,366 expected of trial 7)"},
		{1365.5, 1365.6, &seven, " (as much as is expected of trial 7)"},
		{1420, 1365.6, nil, " (+4.0% over the 1,366 expected of the best so far)"},
		{1420, 0, &seven, ""},
	}
	for _, tt := range tests {
		if got := tokens.beside(&trial.Reason{Value: figure(tt.value), Best: figure(tt.best), Over: tt.over}); got != tt.want {
			t.Errorf("%g beside %g: %q, want %q", tt.value, tt.best, got, tt.want)
		}
	}
	if got := tokens.beside(&trial.Reason{Value: figure(1)}); got != "" {
		t.Errorf("without a best: %q", got)
	}
	clients := Objective{Metric: "concurrency"}
	if got, want := clients.beside(&trial.Reason{Value: figure(41.45), Best: figure(39.52), Over: &seven}), " (+4.9% over the 40 expected of trial 7)"; got != want {
		t.Errorf("%q, want %q: there is no part of a client", got, want)
	}
	if got := clients.At(48, 48); got != "48 clients" {
		t.Errorf("%q: the value is the level", got)
	}
}

func TestPercentHasNoNegativeZero(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]string{-0.0004: "0.0%", 0: "0.0%", 0.0004: "0.0%", -0.0006: "-0.1%", 0.104: "+10.4%"} {
		if got := percent(x); got != want {
			t.Errorf("percent(%g) = %q, want %q", x, got, want)
		}
	}
}

// A knob whose value was measured already is not what a trial teaches most about while another one's is new.
func TestLesson(t *testing.T) {
	t.Parallel()
	p := codedProblem()
	base := p.config(p.Space.Config(make([]int, len(p.Space))))
	other := base.Clone()
	other[memFraction] = p.Space[0].Values[1]
	if p.Space[0].Name != memFraction {
		t.Fatalf("the first knob is %s", p.Space[0].Name)
	}
	p.History = []*trial.Trial{baselineTrial(p), truth(p, 1, base)}
	m := newModel(p)
	r := &trial.Reason{Teaches: p.Space[1].Name, Share: figure(0.9)}
	m.lesson(r, other)
	if r.Teaches != memFraction || r.Share != nil {
		t.Errorf("teaches %s (%v), want %s: only its value is new", r.Teaches, r.Share, memFraction)
	}
	r = &trial.Reason{Teaches: memFraction, Share: figure(0.9)}
	if m.lesson(r, other); r.Teaches != memFraction || r.Share == nil {
		t.Errorf("teaches %s (%v), want the engine's own %s", r.Teaches, r.Share, memFraction)
	}
}

// Servers that ran but met the SLO at no load level are not nothing, and no figure of speed is made up from them.
func TestReasonWithoutAnyValue(t *testing.T) {
	t.Parallel()
	p := codedProblem()
	missed := baselineTrial(p)
	missed.Value, missed.Best = nil, 0
	p.History = []*trial.Trial{missed}
	m := newModel(p)
	r := m.reason(physics.Why{Kind: "recover", Mean: 200.6, Spread: 0.1, OOM: 0.001, Tokens: 174_000, FreeGiB: 4.5})
	if got, want := m.sentence(r), "no trial has a value yet: under 1% chance of GPU OOM, 174K KV tokens, 4.5 GiB free"; got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// The end of the search is told without who asked whom.
func TestExhausted(t *testing.T) {
	t.Parallel()
	inner := fmt.Errorf("all 2 configurations of the space were launched, or may not be: %w", ErrExhausted)
	want := "nothing is left to try: all 2 configurations of the space were launched, or may not be: no admitted configuration is left"
	if got := exhausted(fmt.Errorf("ask the sampler for trial 3: %w", fmt.Errorf("physics: %w", inner))); got != want {
		t.Errorf("%q", got)
	}
	if got := exhausted(ErrExhausted); got != "nothing is left to try: "+ErrExhausted.Error() {
		t.Errorf("%q", got)
	}
	if got := exhausted(errors.New("x")); got != "nothing is left to try: x" {
		t.Errorf("%q", got)
	}
}

// Of the launches that failed a verdict names how, each once, and only those of the sides asked for.
func TestEndings(t *testing.T) {
	t.Parallel()
	a, b := sglang.Config{memFraction: 0.85}, sglang.Config{memFraction: 0.9}
	failed := func(c sglang.Config, o trial.Outcome) *trial.Trial {
		return &trial.Trial{Role: trial.RoleConfirm, Config: c, State: trial.Failed, Verdict: trial.Verdict{Outcome: o, Blames: trial.BlameNo}}
	}
	h := History{failed(a, trial.BenchInvalid), failed(b, trial.BenchInvalid), failed(b, trial.BenchInvalid), failed(b, trial.EnvFault)}
	missed := failed(b, trial.OK)
	missed.State = trial.Complete
	h = append(h, missed)
	if got := endings(h, b); got != "bench_invalid, env_fault, no load level met the SLO" {
		t.Errorf("%q", got)
	}
	if got := endings(h, a); got != "bench_invalid" {
		t.Errorf("%q", got)
	}
}
