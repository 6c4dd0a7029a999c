package tuner

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/trial"
)

// row is a complete search trial of the founding host.
func row(n int, value float64, c sglang.Config, startup time.Duration) *trial.Trial {
	f, _ := c.Float(memFraction)
	free := 94.04*(1-f) - 5.81
	tokens := sglang.KVTokens(94.037, 21.7085, f, 70272, 1)
	t := &trial.Trial{
		Number: n, Role: trial.RoleSearch, Config: c, State: trial.Complete, Value: &value, Best: 120, Startup: startup,
		LowWater: int64((free - 1.4) * bytesPerGiB),
		Memory: sglang.Observation{
			Fraction: f, KVDtype: "torch.bfloat16", PageSize: 1, ChunkedPrefill: 8192, BeforeLoadGiB: 94.04, AfterLoadGiB: 21.71,
			KVGiB: float64(tokens) * 70272 / bytesPerGiB, Tokens: tokens, AfterGraphGiB: free,
		},
		Verdict: trial.Verdict{Outcome: trial.OK, Blames: trial.BlameYes},
	}
	t.Levels = []trial.Level{{Concurrency: 120, Report: &benchmark.Report{OutputTokS: value, OutputLow: value * 0.98, OutputHigh: value * 1.02}}}
	return t
}

func TestCandidateTieBreaks(t *testing.T) {
	t.Parallel()
	base := sglang.Config{memFraction: 0.85}
	at := func(f, hicache, cons float64) sglang.Config {
		return sglang.Config{memFraction: f, hicacheSize: hicache, "schedule-conservativeness": cons}
	}
	minute := time.Minute
	tests := []struct {
		name string
		rows History
		out  []sglang.Config
		want int // -1 none
		why  string
	}{
		{"none", nil, nil, -1, ""},
		{"clearly faster wins", History{row(1, 1000, at(0.88, 48, 1), minute), row(2, 1100, at(0.91, 48, 1), minute)}, nil, 2, "highest value"},
		{"equal: farther from the line", History{row(1, 1000, at(0.88, 48, 1), minute), row(2, 1005, at(0.91, 48, 1), minute)}, nil, 1, "farther from the memory line"},
		{"equal: less host RAM", History{row(1, 1000, at(0.88, 16, 1), minute), row(2, 1005, at(0.88, 48, 1), minute)}, nil, 1, "less host RAM"},
		{"equal: faster start", History{row(1, 1000, at(0.88, 16, 0.9), minute), row(2, 1005, at(0.88, 16, 1), 2*minute)}, nil, 1, "starts faster"},
		{"equal: fewer flags", History{
			row(1, 1000, sglang.Config{memFraction: 0.88}, minute), row(2, 1005, sglang.Config{memFraction: 0.88, "schedule-conservativeness": 0.5}, minute),
		}, nil, 1, "changes fewer flags"},
		{"equal in all: the faster", History{row(1, 1000, at(0.88, 16, 0.9), minute), row(2, 1005, at(0.88, 16, 0.8), minute)}, nil, 2, "highest value"},
		{"margin comes before RAM", History{row(1, 1000, at(0.88, 48, 1), minute), row(2, 1005, at(0.91, 0, 1), minute)}, nil, 1, "farther"},
		{"out of the confirmation", History{row(1, 1000, at(0.88, 48, 1), minute), row(2, 1100, at(0.91, 48, 1), minute)}, []sglang.Config{at(0.91, 48, 1)}, 1, ""},
		{"the baseline's own configuration is no candidate", History{row(1, 1000, base, minute)}, nil, -1, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out := map[string]bool{}
			for _, c := range tt.out {
				out[Key(c)] = true
			}
			pick := candidate(tt.rows, base, out, standingsOf(tt.rows))
			got := -1
			if pick.trial != nil {
				got = pick.trial.Number
			}
			if got != tt.want || !strings.Contains(pick.why, tt.why) {
				t.Errorf("picked %d: %s", got, pick.why)
			}
		})
	}
}

// Clients are whole, also the ones that are expected.
func TestChoiceSaysWholeClients(t *testing.T) {
	t.Parallel()
	tr := row(1, 120, sglang.Config{memFraction: 0.88}, 0)
	of := map[string]estimate{Key(tr.Config): {Mean: math.Log(113.4)}}
	for metric, want := range map[string]string{"concurrency": "trial 1 (120 clients, expected 113)", "output_tok_s": "trial 1 (120 output tok/s, expected 113.4)"} {
		if got := (standings{of: of, objective: Objective{Metric: metric}}).value(tr); got != want {
			t.Errorf("%s: %q, want %q", metric, got, want)
		}
	}
}

func TestVoidAndPrunedAreNoCandidates(t *testing.T) {
	t.Parallel()
	void, pruned := row(1, 2000, sglang.Config{memFraction: 0.86}, 0), row(2, 2000, sglang.Config{memFraction: 0.87}, 0)
	void.Void, pruned.State = "contaminated", trial.Pruned
	h := History{void, pruned, row(3, 100, sglang.Config{memFraction: 0.88}, 0)}
	if pick := candidate(h, nil, nil, standingsOf(h)); pick.trial.Number != 3 {
		t.Errorf("picked trial %d", pick.trial.Number)
	}
}

func TestABBA(t *testing.T) {
	t.Parallel()
	for sides, want := range map[int][]int{2: {0, 1, 1, 0, 0, 1, 1, 0, 0, 1}, 3: {0, 1, 2, 2, 1, 0, 0, 1, 2}} {
		var got []int
		for i := range want {
			got = append(got, abba(i, sides))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%d sides: order (-want +got):\n%s", sides, d)
		}
	}
}

// Whatever has run and failed so far, the next launch fills the first empty place of the order.
func TestConfirmationNext(t *testing.T) {
	t.Parallel()
	base, cand := sglang.Config{memFraction: 0.85}, sglang.Config{memFraction: 0.9}
	tests := []struct {
		name string
		runs string // A, B: ran; a, b: failed innocently; x: interrupted launch of the baseline; v: void one of the candidate
		want string // next side, "" = nothing left
	}{
		{"first", "", "A"},
		{"second", "A", "B"},
		{"third", "AB", "B"},
		{"fourth", "ABB", "A"},
		{"failed one is repeated in its place", "Ab", "B"},
		{"interrupted ones do not count", "xxxxx", "A"},
		{"void ones do not count", "ABv", "B"},
		{"a side is given up", "aaa", ""},
		{"done", "ABBAAB", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var h History
			for i, r := range tt.runs {
				run := row(i, 100, base, 0)
				run.Role = trial.RoleConfirm
				if strings.ContainsRune("Bbv", r) {
					run.Config = cand
				}
				switch r {
				case 'a', 'b':
					run.State, run.Value, run.Verdict = trial.Failed, nil, trial.Verdict{Outcome: trial.EnvFault, Blames: trial.BlameNo}
				case 'x':
					run.State, run.Value, run.Verdict = trial.Failed, nil, trial.Verdict{Outcome: trial.Aborted, Blames: trial.BlameNo}
				case 'v':
					run.Void = "contaminated"
				}
				h = append(h, run)
			}
			side, more := confirmation{h: h, baseline: base, candidate: cand, pairs: 3}.next()
			got := ""
			if more && sameConfig(side, base) {
				got = "A"
			} else if more {
				got = "B"
			}
			if got != tt.want {
				t.Errorf("next is %q, want %q", got, tt.want)
			}
		})
	}
}

func TestPairsFor(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 22, 0, 0, 0, time.UTC)
	tests := []struct {
		name  string
		asked int
		gain  float64
		noise float64
		left  time.Duration // 0 = no deadline
		want  int
	}{
		{"asked for", 1, 0.5, 0.01, 0, 1},
		{"large gain", 0, 0.5, 0.01, 0, 3},
		{"gain near the noise", 0, 0.02, 0.01, 0, 4}, // 3 launches show 2.3%, 4 show 1.7%
		{"the same gain, more noise", 0, 0.02, 0.02, 0, 5},
		{"gain below the noise", 0, 0.005, 0.01, 0, 5},
		{"gain below the noise, little time", 0, 0.005, 0.01, 45 * time.Minute, 4},
		{"no time", 0, 0.005, 0.01, time.Minute, 3},
		{"no gain expected", 0, -0.01, 0.01, 0, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := Plan{Now: now, Full: 5 * time.Minute}
			if tt.left > 0 {
				p.Deadline = now.Add(tt.left)
			}
			if n := pairsFor(tt.asked, Noise{Launch: tt.noise}, choice{expected: true, gain: tt.gain}, p); n != tt.want {
				t.Errorf("%d launches each, want %d", n, tt.want)
			}
		})
	}
}

// levelled is a history whose best trial measured 40, 80, ... clients, in this order, with these values.
func levelled(best int, values ...float64) History {
	r := row(1, 0, sglang.Config{}, 0)
	r.Levels = nil
	for i, v := range values {
		n := best - 40*(len(values)-1-i)
		r.Levels = append(r.Levels, trial.Level{Concurrency: n, Report: &benchmark.Report{Valid: true, OutputTokS: v}})
	}
	last := values[len(values)-1]
	r.Value, r.Best = &last, best
	return History{r}
}

// early marks the lowest level of the first trial as stopped early.
func early(h History) History {
	h[0].Levels[0].Report.Pruned = true
	return h
}

func TestPlanLevels(t *testing.T) {
	t.Parallel()
	all := []int{40, 80, 120, 160}
	at := func(best int) History {
		r := row(1, 100, sglang.Config{}, 0)
		r.Best = best
		return History{r}
	}
	tests := []struct {
		name string
		h    History
		role trial.Role
		want []int
	}{
		{"baseline", nil, trial.RoleBaseline, []int{160, 120, 80, 40}},
		{"confirmation", at(80), trial.RoleConfirm, []int{160, 120, 80, 40}},
		{"search", at(80), trial.RoleSearch, []int{120, 80}},
		{"search at the top", at(160), trial.RoleSearch, []int{160}},
		{"search without a value", nil, trial.RoleSearch, []int{160, 120, 80, 40}},
		{"the lower of two equal levels", levelled(120, 709.7, 711.9), trial.RoleSearch, []int{120, 80}},
		{"the higher one where it is better", levelled(120, 685, 711.9), trial.RoleSearch, []int{160, 120}},
		{"one that was stopped early is no equal", early(levelled(120, 711, 711.9)), trial.RoleSearch, []int{160, 120}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(tt.want, planLevels(tt.h, tt.role, all, Objective{Metric: "output_tok_s"})); d != "" {
				t.Errorf("levels (-want +got):\n%s", d)
			}
		})
	}
}
