package tuner_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sgtune/benchmark"
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

// Two launches in a row that fail before there is a server, as on a full disk of the host, stop the study after successes too:
// the others would fail as quickly.
func TestNoServerStops(t *testing.T) {
	t.Parallel()
	r := newRig(t, smallStudy())
	full := true
	r.runner.script = func(row *trial.Trial) *trial.Verdict {
		if !full || row.Number != 1 && row.Number < 3 {
			return nil
		}
		return &trial.Verdict{Outcome: trial.EnvFault, Phase: sglang.PhaseLaunch, Cause: "unknown", Blames: trial.BlameNo, Text: "no space left on device"}
	}
	_, err := r.loop.Run(t.Context())
	if !errors.Is(err, tuner.ErrBreaker) || !strings.Contains(err.Error(), "2 launches in a row failed before there was a server: no space left") || len(r.trials(t)) != 5 {
		t.Fatalf("error %v after %d trials", err, len(r.trials(t)))
	}
	full = false
	r.restart(t)
	if v, err := r.loop.Run(t.Context()); err != nil || v == nil {
		t.Errorf("with room again: %+v, %v", v, err)
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
		row.Levels[0].Report.Tokens.Got, row.Levels[0].Report.Windows = 0, nil
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

// A host that is not the one the study was begun on stops it, and the reason names what changed.
func TestEachChangeOfTheHost(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(f *tuner.HostFacts)
		want   string // "" = the study goes on
	}{
		{"a card was exchanged", func(f *tuner.HostFacts) { f.GPUs[2].UUID = "GPU-other" }, "GPU 2 was the card GPU-2 and is GPU-other"},
		{"a card of another kind", func(f *tuner.HostFacts) { f.GPUs[2].Name = "H20" }, "GPU 2 was GPU"},
		{"a card is missing", func(f *tuner.HostFacts) { f.GPUs = f.GPUs[:7] }, "8 GPUs and has 7"},
		{"another driver", func(f *tuner.HostFacts) { f.Driver = "555.42.06" }, "its NVIDIA driver was 550.54.15 and is 555.42.06"},
		{"restarted", func(f *tuner.HostFacts) { f.BootID = "b2" }, "restarted between two trials"},
		{"another machine", func(f *tuner.HostFacts) { f.Name = "ssh other" }, "it was simulated and is ssh other"},
		{"less memory", func(f *tuner.HostFacts) { f.MemTotal = 300e9 }, "449.0 GB of RAM and has 300.0 GB"},
		{"facts that cannot be read", func(f *tuner.HostFacts) {
			f.Driver, f.BootID = "", ""
			for i := range f.GPUs {
				f.GPUs[i].UUID = ""
			}
		}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, smallStudy())
			facts := &r.host.facts
			facts.BootID, facts.Driver = "b1", "550.54.15"
			for i := range facts.GPUs {
				facts.GPUs[i].UUID = fmt.Sprintf("GPU-%d", i)
			}
			r.runner.during = func(_ context.Context, row *trial.Trial) {
				if row.Number == 1 {
					facts.GPUs = slices.Clone(facts.GPUs)
					tt.change(facts)
				}
			}
			_, err := r.loop.Run(t.Context())
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (!errors.Is(err, tuner.ErrBreaker) || !strings.Contains(err.Error(), tt.want) || len(r.trials(t)) != 2):
				t.Errorf("error %v after %d trials, want %q", err, len(r.trials(t)), tt.want)
			}
		})
	}
}

// A host that was restarted is the same host: the study is continued by running it again.
func TestRestartedHostGoesOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, smallStudy())
	r.host.facts.BootID = "b1"
	r.runner.during = func(_ context.Context, row *trial.Trial) {
		if row.Number == 1 {
			r.host.facts.BootID = "b2"
		}
	}
	if _, err := r.loop.Run(t.Context()); err == nil {
		t.Fatal("it went on")
	}
	r.restart(t)
	if v, err := r.loop.Run(t.Context()); err != nil || v.Answer != "better" {
		t.Errorf("%+v, %v", v, err)
	}
}

// Another SGLang in the middle of a study: its trial is void and the study stops; with the old one back it
// goes on and launches that configuration again.
func TestSGLangChangedStops(t *testing.T) {
	t.Parallel()
	r := newRig(t, smallStudy())
	version := "0.5.8"
	r.runner.during = func(_ context.Context, row *trial.Trial) {
		if row.Number == 2 {
			version = "0.5.9"
		}
		row.SGLang = version
	}
	_, err := r.loop.Run(t.Context())
	h := r.trials(t)
	if !errors.Is(err, tuner.ErrBreaker) || !strings.Contains(err.Error(), "it was 0.5.8 and is 0.5.9 since trial 2") || len(h) != 3 || !strings.Contains(h[2].Void, "0.5.9") {
		t.Fatalf("error %v after %d trials, void %q", err, len(h), h[len(h)-1].Void)
	}
	r.restart(t)
	if _, err := r.loop.Run(t.Context()); !errors.Is(err, tuner.ErrBreaker) || len(r.trials(t)) != 4 { // still the new one
		t.Fatalf("error %v after %d trials", err, len(r.trials(t)))
	}
	version = "0.5.8"
	r.restart(t)
	v, err := r.loop.Run(t.Context())
	if err != nil || v.Answer != "better" {
		t.Fatalf("%+v, %v", v, err)
	}
	again := count(r.trials(t), func(o *trial.Trial) bool {
		return o.Role == trial.RoleSearch && o.Config.Key() == h[2].Config.Key() && o.Void == ""
	})
	if again != 1 {
		t.Errorf("the configuration of the void trial ran %d times", again)
	}
}

// A server that cannot be reached is not launched over and over: each try costs a load. One that fails in
// between for a reason of its own was reached.
func TestDeadEndpointStops(t *testing.T) {
	t.Parallel()
	lost := trial.Verdict{Outcome: trial.Unreachable, Phase: sglang.PhaseReady, Cause: "tunnel_down", Blames: trial.BlameNo, Text: "4 probes never reached it"}
	tests := []struct {
		name   string
		lost   map[int]bool
		trials int // at which it stops, 0 = it does not
	}{
		{"two in a row", map[int]bool{1: true, 2: true}, 3},
		{"once", map[int]bool{1: true}, 0},
		{"one in between", map[int]bool{1: true, 3: true}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := smallStudy()
			s.Budget.Trials = 8
			r := newRig(t, s)
			r.runner.script = func(row *trial.Trial) *trial.Verdict {
				if tt.lost[row.Number] {
					v := lost
					return &v
				}
				return nil
			}
			_, err := r.loop.Run(t.Context())
			switch {
			case tt.trials == 0 && err != nil:
				t.Error(err)
			case tt.trials > 0 && (!errors.Is(err, tuner.ErrBreaker) || !strings.Contains(err.Error(), "2 launches in a row could not be reached: 4 probes never") || len(r.trials(t)) != tt.trials):
				t.Errorf("error %v after %d trials", err, len(r.trials(t)))
			}
		})
	}
}

// Requests without a token stop the study, and a dead endpoint is told from one that answers nothing of use.
// A load generator that stood still, or a level that was ended before its first request was complete, is
// neither.
func TestNoTokenIsTold(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(r *benchmark.Report)
		want   string
	}{
		{"answers without a token", func(*benchmark.Report) {}, "trial 1 answered requests without a single token"},
		{"errors only", func(r *benchmark.Report) { r.Requests.Failed = map[string]int{"http_status": 100} }, "trial 1 answered requests without a single token"},
		{"refused", func(r *benchmark.Report) {
			r.Requests.Failed = map[string]int{"refused": 70, "reset": 20, "timeout": 10}
		}, "trial 1 sent 100 requests to a dead endpoint"},
		{"it stood still", func(r *benchmark.Report) { r.StoodS = 30 }, ""},
		{"long answers", func(r *benchmark.Report) { r.Windows = []benchmark.Window{{Output: 0}, {Output: 900}} }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, smallStudy())
			r.runner.script = func(row *trial.Trial) *trial.Verdict {
				if row.Number != 1 {
					return nil
				}
				report := &benchmark.Report{Invalid: benchmark.InvalidFailedRequests}
				report.Requests.Sent = 100
				tt.change(report)
				row.Levels = []trial.Level{{Concurrency: 120, Report: report}}
				row.State = trial.Failed
				return &trial.Verdict{Outcome: trial.BenchInvalid, Cause: "failed_requests", Blames: trial.BlameNo, Text: "no token came"}
			}
			_, err := r.loop.Run(t.Context())
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (!errors.Is(err, tuner.ErrBreaker) || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}
