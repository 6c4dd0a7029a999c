package tuner_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// The same failure three times before any success stops the study; a person who starts it again
// gets a new chance.
func TestBreaker(t *testing.T) {
	t.Parallel()
	r := newRig(t, smallStudy())
	broken := true
	r.runner.script = func(*trial.Trial) *trial.Verdict {
		if !broken {
			return nil
		}
		return &trial.Verdict{Outcome: trial.Crashed, Phase: sglang.PhaseWeightLoad, Cause: "cuda_error", Blames: trial.BlameYes, Text: "CUDA error"}
	}
	_, err := r.loop.Run(t.Context())
	if !errors.Is(err, tuner.ErrBreaker) || !strings.Contains(err.Error(), "CUDA error") || len(r.trials(t)) != 3 {
		t.Fatalf("error %v after %d trials", err, len(r.trials(t)))
	}
	broken = false
	r.restart(t)
	v, err := r.loop.Run(t.Context())
	if err != nil || v == nil || len(r.trials(t)) != 5 {
		t.Errorf("after the repair: %+v, %v, %d trials", v, err, len(r.trials(t)))
	}
}

func TestHostChangedStops(t *testing.T) {
	t.Parallel()
	r := newRig(t, smallStudy())
	r.runner.during = func(_ context.Context, row *trial.Trial) {
		if row.Number == 1 {
			r.host.facts.GPUs = r.host.facts.GPUs[:7]
		}
	}
	_, err := r.loop.Run(t.Context())
	if !errors.Is(err, tuner.ErrBreaker) || !strings.Contains(err.Error(), "8 GPUs and has 7") || len(r.trials(t)) != 2 {
		t.Errorf("error %v after %d trials", err, len(r.trials(t)))
	}
}

// A stranger who takes a GPU between two trials would be measured with the next one, and blamed on it.
func TestHolderBetweenTrialsStops(t *testing.T) {
	t.Parallel()
	r := newRig(t, smallStudy())
	r.runner.during = func(_ context.Context, row *trial.Trial) {
		if row.Number == 1 {
			g := &r.host.facts.GPUs[3]
			g.Total, g.Used, g.Holders = 96e9, 40e9, []string{"pid 4711 (python3) 40 GB"}
		}
	}
	_, err := r.loop.Run(t.Context())
	if !errors.Is(err, tuner.ErrHeld) || !strings.Contains(err.Error(), "GPU 3") || !strings.Contains(err.Error(), "4711") || len(r.trials(t)) != 2 {
		t.Errorf("error %v after %d trials", err, len(r.trials(t)))
	}
}

func TestZeroTokensStop(t *testing.T) {
	t.Parallel()
	r := newRig(t, smallStudy())
	r.runner.script = func(row *trial.Trial) *trial.Verdict {
		if row.Number != 1 {
			return nil
		}
		r.runner.measure(row)
		row.Levels[0].Report.Tokens.Got = 0
		row.Value, row.State = nil, trial.Failed
		return &trial.Verdict{Outcome: trial.BenchInvalid, Cause: "failed_requests", Blames: trial.BlameNo, Text: "no token came"}
	}
	if _, err := r.loop.Run(t.Context()); !errors.Is(err, tuner.ErrBreaker) || !strings.Contains(err.Error(), "token") {
		t.Errorf("error %v", err)
	}
}

// Innocent failures and void trials are launched again at most twice, partly blamed ones once.
func TestRequeue(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		blame trial.Blame
		fails int
		want  int // launches of 0.88
		value bool
	}{
		{"innocent once", trial.BlameNo, 1, 2, true},
		{"innocent always", trial.BlameNo, 99, 3, false},
		{"partly once", trial.BlamePartly, 1, 2, true},
		{"partly always", trial.BlamePartly, 99, 2, false},
		{"to blame", trial.BlameYes, 1, 1, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := smallStudy()
			s.Budget.Trials = 12
			r := newRig(t, s)
			launches := 0
			r.runner.script = func(row *trial.Trial) *trial.Verdict {
				if row.Role != trial.RoleSearch || row.Config["mem-fraction-static"] != 0.88 {
					return nil
				}
				if launches++; launches > tt.fails {
					return nil
				}
				return &trial.Verdict{Outcome: trial.Crashed, Cause: "silent_exit", Blames: tt.blame, Text: "gone"}
			}
			if _, err := r.loop.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			ran := count(r.trials(t), func(t *trial.Trial) bool {
				return t.Role == trial.RoleSearch && t.Value != nil && t.Config["mem-fraction-static"] == 0.88
			})
			if launches != tt.want || (ran > 0) != tt.value {
				t.Errorf("%d launches, want %d; ran %d times", launches, tt.want, ran)
			}
		})
	}
}

// What a rule keeps out is an event that names the rule and the value, also when nothing is left to try.
func TestRefusalsAreEvents(t *testing.T) {
	t.Parallel()
	s := smallStudy()
	s.Space = tuner.Space{{Name: "hicache-size", Kind: tuner.Numeric, Values: []any{48.0, 56.0, 300.0}}}
	r := newRig(t, s)
	r.loop.Sampler = tuner.Grid{}
	if _, err := r.loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := strings.Join(r.store.texts("reject"), "\n")
	for _, want := range []string{"host RAM", "hicache-size 56", "448.0 GB", "hicache-size 300", "2400.0 GB", "440.0 GB available"} {
		if !strings.Contains(all, want) {
			t.Errorf("no event says %q:\n%s", want, all)
		}
	}
}
