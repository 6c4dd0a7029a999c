package tuner_test

import (
	"errors"
	"strings"
	"testing"

	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// kimi is the start-up log of the founding case at 0.85: T 94.04, A 21.71 GiB as printed, and
// 116,171 tokens of 70,272 bytes.
var kimi = sglang.Observation{
	Fraction: 0.85, TP: 8, KVDtype: "torch.bfloat16", PageSize: 1, ChunkedPrefill: 8192,
	BeforeLoadGiB: 94.04, AfterLoadGiB: 21.71, KVGiB: 7.60, AfterPoolGiB: 14.1, AfterGraphGiB: 8.30, Tokens: 116_171,
}

const kimiFile = `server: {model: m, flags: {tp-size: 8}}
space:
  mem-fraction-static: {min: 0.74, max: 0.93, step: 0.01}
  hicache-size: [0, 8, 16, 48, 56, 300]
  chunked-prefill-size: [4096, 8192]
workload: {file: prompts.jsonl}
`

// idle is the founding host: 449 GB of RAM, 440 GB of it available.
var idle = tuner.HostFacts{Name: "gpu-box", MemTotal: 449e9, MemAvailable: 440e9, CgroupHeadroom: -1}

func infeasible(t *testing.T, err error) *tuner.Infeasible {
	t.Helper()
	var why *tuner.Infeasible
	if err != nil && !errors.As(err, &why) {
		t.Fatalf("error is %T (%v), want *Infeasible", err, err)
	}
	return why
}

func TestFoundingHostRAM(t *testing.T) {
	t.Parallel()
	s := mustParse(t, kimiFile)
	for _, tt := range []struct {
		name   string
		size   float64
		change func(*tuner.HostFacts)
		own    int64
		budget float64
		limit  float64 // GB, 0 = admitted
		want   float64
		text   []string
	}{
		{name: "48 GB x 8 is admitted", size: 48},
		{name: "off is admitted", size: 0},
		{name: "56 GB is refused", size: 56, limit: 429.3, want: 464, text: []string{"448.0 GB", "464.0 GB", "440.0 GB", "10.7 GB", "429.3 GB"}},
		{name: "300 GB is refused", size: 300, limit: 429.3, want: 2416, text: []string{"2400.0 GB", "440.0 GB"}},
		{name: "a cgroup counts", size: 48, change: func(f *tuner.HostFacts) { f.CgroupHeadroom = 300e9 }, limit: 289.3, want: 400},
		{name: "what a server was seen to take counts", size: 48, own: 60e9, limit: 429.3, want: 444, text: []string{"60.0 GB"}},
		{name: "and may be less than the guess", size: 48, own: 4e9, change: func(f *tuner.HostFacts) { f.MemAvailable = 400e9 }},
		{name: "budget", size: 48, budget: 380e9, limit: 380, want: 384, text: []string{"384.0 GB", "ram_budget", "380.0 GB"}},
		{name: "unknown RAM leaves the budget", size: 300, change: func(f *tuner.HostFacts) { f.MemAvailable = -1 }},
		{name: "no pool passes on a full host", size: 0, change: func(f *tuner.HostFacts) { f.MemAvailable = 1e9 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			facts, study := idle, *s
			if tt.change != nil {
				tt.change(&facts)
			}
			study.Host.RAMBudgetBytes = tt.budget
			var history []*trial.Trial
			if tt.own > 0 {
				history = []*trial.Trial{{State: trial.Complete, Config: sglang.Config{"mem-fraction-static": 0.5}, OwnRAM: tt.own}}
			}
			a := tuner.NewAdmission(&study, history, facts, nil)
			why := infeasible(t, a.Admit(sglang.Config{"hicache-size": tt.size}))
			if tt.limit == 0 {
				if why != nil {
					t.Fatalf("refused: %v", why)
				}
				return
			}
			if why == nil {
				t.Fatal("admitted")
			}
			if why.Rule != tuner.RuleHostRAM || why.Limit/1e9 != tt.limit || why.Want/1e9 != tt.want || why.Unit != "bytes" {
				t.Errorf("rule %q limit %v want %v, expected host RAM %v %v", why.Rule, why.Limit, why.Want, tt.limit, tt.want)
			}
			for _, w := range tt.text {
				if !strings.Contains(why.Error(), w) {
					t.Errorf("%q does not say %q", why, w)
				}
			}
		})
	}
}

func TestBudgetPerRank(t *testing.T) {
	t.Parallel()
	r := tuner.HostRAM{Fixed: sglang.Config{"tp-size": 2.0}, PerRank: 50e9, Available: -1, Own: -1}
	if err := r.Check(sglang.Config{"hicache-size": 50.0}); err != nil {
		t.Errorf("50 GB a rank is refused: %v", err)
	}
	if why := infeasible(t, r.Check(sglang.Config{"hicache-size": 51.0, "tp-size": 4.0})); why == nil || why.Limit != 200e9 || why.Want != 204e9 {
		t.Errorf("51 GB a rank on 4 ranks: %+v", why)
	}
}

func TestRanks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		c    sglang.Config
		want int
	}{
		{sglang.Config{}, 1},
		{sglang.Config{"tp-size": 8.0}, 8},
		{sglang.Config{"tp-size": 4.0, "pp-size": 2.0}, 8},
		{sglang.Config{"tp-size": 4.0, "dp-size": 2.0}, 8},
		{sglang.Config{"tp-size": 8.0, "dp-size": 8.0, "enable-dp-attention": true}, 8},
		{sglang.Config{"tp-size": 16.0, "nnodes": 2.0}, 8},
	} {
		if got := tuner.Ranks(tt.c); got != tt.want {
			t.Errorf("Ranks(%v) = %d, want %d", tt.c, got, tt.want)
		}
	}
}

func TestAdmissionRules(t *testing.T) {
	t.Parallel()
	s := mustParse(t, kimiFile)
	value := 1.0
	history := []*trial.Trial{
		{Number: 0, Role: trial.RoleBaseline, State: trial.Complete, Value: &value, Config: sglang.Config{"mem-fraction-static": 0.85}, Memory: kimi, OwnRAM: -1},
		{Number: 1, Role: trial.RoleSearch, State: trial.Complete, Value: &value, Config: sglang.Config{"mem-fraction-static": 0.86}, Void: "power cap"},
		{Number: 2, Role: trial.RoleSearch, State: trial.Failed, Config: sglang.Config{"mem-fraction-static": 0.87}, Verdict: trial.Verdict{Outcome: trial.Aborted, Blames: trial.BlameNo}},
		{Number: 3, Role: trial.RoleSearch, State: trial.Failed, Config: sglang.Config{"mem-fraction-static": 0.93}, Verdict: trial.Verdict{Outcome: trial.GPUOOM, Blames: trial.BlameYes}},
		{Number: 4, Role: trial.RoleSearch, State: trial.Running, Config: sglang.Config{"mem-fraction-static": 0.88}},
		{Number: 5, Role: trial.RoleConfirm, State: trial.Complete, Value: &value, Config: sglang.Config{"mem-fraction-static": 0.89}},
	}
	line := func(c sglang.Config) error {
		if f, _ := c.Float("mem-fraction-static"); f > 0.92 {
			return &tuner.Infeasible{Rule: "learnt memory line", Text: "too high"}
		}
		return nil
	}
	a := tuner.NewAdmission(s, history, idle, line)
	for _, tt := range []struct {
		name string
		c    sglang.Config
		rule string // "" = admitted
		text string
	}{
		{"new", sglang.Config{"mem-fraction-static": 0.9, "hicache-size": 48.0}, "", ""},
		{"lossy", sglang.Config{"mem-fraction-static": 0.9, "kv-cache-dtype": "fp8_e4m3"}, "quality", "fp8_e4m3"},
		{"bf16", sglang.Config{"mem-fraction-static": 0.9, "kv-cache-dtype": "bf16"}, "", ""},
		{"quantized", sglang.Config{"mem-fraction-static": 0.9, "quantization": "fp8"}, "quality", "quantization fp8"},
		{"no KV left", sglang.Config{"mem-fraction-static": 0.76}, "KV tokens", "above 0.769"},
		{"host pool below the device pool", sglang.Config{"mem-fraction-static": 0.85, "hicache-size": 8.0}, "host tokens", "8 GB a rank holds"},
		{"host pool above it", sglang.Config{"mem-fraction-static": 0.85, "hicache-size": 16.0}, "", ""},
		{"too much host RAM", sglang.Config{"mem-fraction-static": 0.85, "hicache-size": 56.0}, "host RAM", "448.0 GB"},
		{"above the learnt line", sglang.Config{"mem-fraction-static": 0.925}, "learnt memory line", ""},
		{"the baseline again", sglang.Config{"mem-fraction-static": 0.85, "hicache-size": 0.0}, "no repeat", "trial 0"},
		{"a void one again", sglang.Config{"mem-fraction-static": 0.86}, "", ""},
		{"an aborted one again", sglang.Config{"mem-fraction-static": 0.87}, "", ""},
		{"one that runs", sglang.Config{"mem-fraction-static": 0.88}, "no repeat", "trial 4"},
		{"one that was only confirmed", sglang.Config{"mem-fraction-static": 0.89}, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			why := infeasible(t, a.Admit(tt.c))
			switch {
			case tt.rule == "" && why != nil:
				t.Errorf("refused: %v", why)
			case tt.rule != "" && (why == nil || why.Rule != tt.rule || !strings.Contains(why.Error(), tt.text)):
				t.Errorf("got %v, want rule %q saying %q", why, tt.rule, tt.text)
			}
		})
	}
}

func TestRatioPoolCounts(t *testing.T) {
	t.Parallel()
	s := mustParse(t, "server: {model: m, flags: {tp-size: 8, enable-hierarchical-cache: true}}\nspace:\n  hicache-ratio: [2, 30]\nworkload: {file: prompts.jsonl}\n")
	a := tuner.NewAdmission(s, []*trial.Trial{{Memory: kimi, Config: sglang.Config{"x": 1.0}}}, idle, nil)
	if err := a.Admit(sglang.Config{"hicache-ratio": 2.0}); err != nil {
		t.Errorf("ratio 2 (8 x 16 GB) is refused: %v", err)
	}
	if why := infeasible(t, a.Admit(sglang.Config{"hicache-ratio": 30.0})); why == nil || why.Rule != tuner.RuleHostRAM {
		t.Errorf("ratio 30 (8 x 245 GB): %v", why)
	}
}

// A reading that came after the host pool is not the server's own memory, and must not keep every host
// pool out from then on.
func TestOwnRAMWithTheHostPoolInIt(t *testing.T) {
	t.Parallel()
	launch := func(own, least int64, pool float64) *trial.Trial {
		return &trial.Trial{OwnRAM: own, MinRAM: least, Memory: sglang.Observation{TP: 8, HostPoolGB: pool}}
	}
	history := []*trial.Trial{launch(16e9, 424e9, 0), launch(17e9, 39e9, 48), launch(-1, -1, 40)}
	if own := tuner.OwnRAM(history); own != 17e9 {
		t.Errorf("own %.0f, want the largest of two", own)
	}
	history = append(history, launch(336e9, 104e9, 40), launch(18e9, 166e9, 32))
	if own := tuner.OwnRAM(history); own != 18e9 {
		t.Errorf("own %.0f: 336 GB are the 40 GB pools of 8 ranks, want 18 GB", own)
	}
	if own := tuner.OwnRAM(append(history, launch(60e9, 20e9, 45))); own != 60e9 {
		t.Errorf("own %.0f: a server that takes 60 GB for itself is believed", own)
	}
}
