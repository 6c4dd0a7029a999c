package tuner

import (
	"errors"
	"testing"

	"sgtune/sglang"
	"sgtune/trial"
)

func failedRow(n int, c sglang.Config, outcome trial.Outcome, cause string, blame trial.Blame) *trial.Trial {
	return &trial.Trial{
		Number: n, Role: trial.RoleSearch, Config: c, State: trial.Failed, LowWater: -1,
		Verdict: trial.Verdict{Outcome: outcome, Cause: cause, Blames: blame},
	}
}

func TestFrontier(t *testing.T) {
	t.Parallel()
	at := func(f, chunk float64) sglang.Config { return sglang.Config{memFraction: f, chunkedSize: chunk} }
	baseline := row(0, 700, sglang.Config{memFraction: 0.85}, 0) // 8.30 GiB free, 1.40 used under load at chunk 8192
	oom := failedRow(1, at(0.92, 8192), trial.GPUOOM, "prefill_activation", trial.BlameYes)
	starved := failedRow(1, at(0.76, 8192), trial.GPUOOM, "kv_pool_nonpositive", trial.BlameYes)
	host := failedRow(1, sglang.Config{memFraction: 0.8, hicacheSize: 50.0}, trial.HostOOM, "kernel_oom_kill", trial.BlameYes)
	innocent := failedRow(1, at(0.86, 8192), trial.GPUOOM, "prefill_activation", trial.BlameNo)
	void := failedRow(1, at(0.86, 8192), trial.GPUOOM, "prefill_activation", trial.BlameYes)
	void.Void = "a neighbour held memory"
	survived := row(2, 900, at(0.92, 8192), 0)
	dead := func(n int) *trial.Trial {
		return failedRow(n, sglang.Config{memFraction: 0.8 + float64(n)/100, "attention-backend": "fa4"}, trial.ConfigRejected, "bad_value", trial.BlameYes)
	}
	tests := []struct {
		name     string
		h        []*trial.Trial
		c        sglang.Config
		proven   string // rule of Check, "" = admitted
		cautious string // rule of Cautious
	}{
		{"nothing known", nil, at(0.93, 16384), "", ""},
		{"founding: 0.91 is allowed after the baseline", []*trial.Trial{baseline}, at(0.91, 8192), "", ""},
		{"founding: 0.93 is suspect after the baseline", []*trial.Trial{baseline}, at(0.93, 8192), "", RuleLine},
		{"a smaller chunk needs less", []*trial.Trial{baseline}, at(0.92, 4096), "", ""},
		{"a larger chunk needs more", []*trial.Trial{baseline}, at(0.91, 16384), "", RuleLine},
		{"the whole prompt at once", []*trial.Trial{baseline}, at(0.88, -1), "", RuleLine},
		{"the whole prompt at once, with more room than what ran", []*trial.Trial{baseline}, at(0.84, -1), "", ""},
		{"at a proven failure", []*trial.Trial{baseline, oom}, at(0.92, 8192), RuleFrontier, RuleFrontier},
		{"above in both", []*trial.Trial{baseline, oom}, at(0.93, 16384), RuleFrontier, RuleFrontier},
		{"higher fraction, smaller chunk", []*trial.Trial{baseline, oom}, at(0.925, 2048), "", ""},
		{"lower fraction, larger chunk", []*trial.Trial{baseline, oom}, at(0.87, 16384), "", ""},
		{"well below", []*trial.Trial{baseline, oom}, at(0.88, 8192), "", ""},
		{"innocent failures teach nothing", []*trial.Trial{baseline, innocent}, at(0.88, 8192), "", ""},
		{"void failures teach nothing", []*trial.Trial{baseline, void}, at(0.88, 8192), "", ""},
		{"an outlived failure teaches nothing", []*trial.Trial{baseline, oom, survived}, at(0.92, 8192), "", ""},
		{"no KV pool: lower is worse", []*trial.Trial{starved}, at(0.75, 8192), RuleFrontier, RuleFrontier},
		{"no KV pool: higher is open", []*trial.Trial{starved}, at(0.78, 8192), "", ""},
		{"host pool at a host OOM", []*trial.Trial{host}, sglang.Config{memFraction: 0.85, hicacheSize: 56.0}, RuleFrontier, RuleFrontier},
		{"host pool below it", []*trial.Trial{host}, sglang.Config{memFraction: 0.85, hicacheSize: 48.0}, "", ""},
		{"host OOM says nothing about GPUs", []*trial.Trial{host}, at(0.93, 8192), "", ""},
		{"a value that never ran", []*trial.Trial{baseline, dead(1), dead(2), dead(3)}, sglang.Config{memFraction: 0.85, "attention-backend": "fa4"}, RuleFrontier, RuleFrontier},
		{"twice is not enough", []*trial.Trial{baseline, dead(1), dead(2)}, sglang.Config{memFraction: 0.85, "attention-backend": "fa4"}, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := NewFrontier(tt.h)
			for what, got := range map[string]error{tt.proven + " proven": f.Check(tt.c), tt.cautious + " cautious": f.Cautious(tt.c)} {
				rule := ""
				var why *Infeasible
				if errors.As(got, &why) {
					rule = why.Rule
				}
				if rule+" proven" != what && rule+" cautious" != what {
					t.Errorf("want %q, got %v", what, got)
				}
			}
		})
	}
}

// The margin falls with the fraction and with the chunk, and is what the tie-break compares.
func TestMargin(t *testing.T) {
	t.Parallel()
	f := NewFrontier([]*trial.Trial{row(0, 700, sglang.Config{memFraction: 0.85}, 0)})
	last := 100.0
	for _, c := range []sglang.Config{
		{memFraction: 0.80, chunkedSize: 4096.0}, {memFraction: 0.80}, {memFraction: 0.88}, {memFraction: 0.88, chunkedSize: 16384.0}, {memFraction: 0.93},
	} {
		m, ok := f.Margin(c)
		if !ok || m >= last {
			t.Errorf("margin of %v is %.2f (known %v), after %.2f", c, m, ok, last)
		}
		last = m
	}
	if _, ok := NewFrontier(nil).Margin(sglang.Config{}); ok {
		t.Error("a margin is known from nothing")
	}
}
