package simulator_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sgtune/benchmark"
	"sgtune/host"
	"sgtune/internal/simulator"
	"sgtune/sglang"
	"sgtune/trial"
)

// rows keeps nothing: these trials are judged by their row in memory.
type rows struct{}

func (rows) SaveTrial(context.Context, *trial.Trial) error { return nil }

// scale is how many times faster than real these trials run: what takes 100 s takes one.
const scale = 100

// patient is a ready_timeout that no busy machine reaches.
const patient = 4 * time.Hour

// runTrial runs one whole trial against a sim-server of a version, launched as a user's server.command would.
func runTrial(t *testing.T, version, fault string, config sglang.Config, limit time.Duration) *trial.Trial {
	t.Helper()
	clock := host.NewClock(time.Date(2026, 1, 1, 22, 0, 0, 0, time.UTC), scale)
	command := []string{os.Args[0], "sim-server", "--sim-version", version, "--sim-time-scale", "100", "--sim-startup", "30"}
	if fault != "" {
		command = append(command, "--sim-fault", fault)
	}
	var load []benchmark.Row
	for i := range 400 {
		load = append(load, benchmark.Row{Number: i, InputTokens: 128, OutputTokens: 64, HashIDs: []int64{1, int64(1000 + i)}})
	}
	w := benchmark.NewWorkload(load, 64)
	server := sglang.Server{Command: command, Model: "/models/none", Flags: sglang.Config{"tp-size": 8.0}}
	r := &trial.Runner{
		Host: host.NewSimulated(host.SimulatedOptions{Dir: t.TempDir(), Clock: clock}), Store: rows{}, Clock: clock, Server: server,
		Instruments: sglang.InstrumentFlags(nil, server.Flags), InstrumentEnv: sglang.InstrumentEnv(nil),
		Load:  trial.Load{Workload: w, Levels: []int{4}, Window: 5 * time.Second, Cap: 15 * time.Second, Warmup: 5 * time.Second, Salt: "x"},
		Files: t.TempDir(), Scratch: t.TempDir(), ReadyTimeout: limit, Grace: 30 * time.Second,
		Score: func(levels []trial.Level) (float64, int, bool) {
			if len(levels) == 0 {
				return 0, 0, false
			}
			return levels[0].Report.OutputTokS, 4, true
		},
	}
	tr := &trial.Trial{Study: "versions", Number: 1, Role: trial.RoleSearch, Config: config, Plan: []int{4}, State: trial.Waiting}
	if err := r.Run(t.Context(), tr); err != nil {
		t.Fatalf("%v; verdict %s", err, tr.Verdict.Text)
	}
	return tr
}

func wrongMonitors(tr *trial.Trial) []string {
	var texts []string
	for _, f := range tr.Verdict.Findings {
		if f.Name == "monitor_wrong" {
			texts = append(texts, f.Text)
		}
	}
	return texts
}

// served reports whether a trial served what was asked of it. A busy machine makes the client late, which its report
// rightly calls invalid; that says nothing about the server.
func served(tr *trial.Trial) bool {
	return tr.Verdict.Outcome == trial.OK || tr.Verdict.Outcome == trial.BenchInvalid && strings.HasPrefix(tr.Verdict.Cause, "client_")
}

// A trial against each version ends well: started, called ready by the right witnesses, measured, and clean.
func TestTrialOfEachVersion(t *testing.T) {
	t.Parallel()
	for _, version := range simulator.Versions() {
		t.Run(version, func(t *testing.T) { // one after the other: each measures
			tr := runTrial(t, version, "", sglang.Config{"mem-fraction-static": 0.88, "enable-hierarchical-cache": true, "hicache-size": 24.0}, patient)
			if !served(tr) || tr.Release != trial.ReleaseVerified || len(tr.Levels) != 1 {
				t.Fatalf("%s %s %s: %s %v", tr.State, tr.Verdict.Outcome, tr.Release, tr.Verdict.Text, tr.Verdict.Findings)
			}
			m := tr.Memory
			if m.Tokens != 159277 || m.BeforeLoadGiB != 94.04 || m.AfterLoadGiB != 21.71 || m.HostPoolGB != 24 || m.TP != 8 || m.GraphGiB <= 0 {
				t.Errorf("the log said %+v", m)
			}
			if !strings.HasPrefix(tr.SGLang, version) {
				t.Errorf("version %q", tr.SGLang)
			}
			if texts := wrongMonitors(tr); len(texts) > 0 {
				t.Errorf("findings %q", texts)
			}
			if rep := tr.Levels[0].Report; tr.Verdict.Outcome == trial.OK && (rep.OutputTokS <= 0 || rep.ServerTokS <= 0) {
				t.Errorf("%.1f tok/s seen, %.1f by the server's own lines", rep.OutputTokS, rep.ServerTokS)
			}
		})
	}
}

// What a trial makes of a server that goes wrong, where versions differ.
func TestTrialOfEachFault(t *testing.T) {
	t.Parallel()
	const ordinary, short = patient, 5 * time.Minute
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, c := range []struct {
		version, fault string
		limit          time.Duration
		outcome        trial.Outcome
		cause          string
		wrong          string // part of a monitor_wrong finding
		slow           bool   // seconds of real time in which nothing may happen
	}{
		{"0.5.23", "health_starting", ordinary, trial.OK, "none", "/health answered 503", false},
		{"0.4.9", "no_ready_line", ordinary, trial.OK, "none", "no ready line", false},
		{"0.4.6", "slow_load:900", short, trial.StartupTimeout, "slow_weight_load", "", false},
		{"0.5.5", "port_taken", ordinary, trial.EnvFault, "port_in_use", "", false},
		{"0.5.10", "watchdog", ordinary, trial.Stuck, "watchdog_timeout", "", false},
		{"0.5.5", "nccl:5", ordinary, trial.Crashed, "nccl_error", "", false},
		{"0.5.10", "load_hang", ordinary, trial.Stuck, "no_progress", "", true},
		{"0.4.9", "hang", ordinary, trial.Stuck, "no_progress", "", true},
		{"0.4.6", "scheduler_killed", ordinary, trial.Stuck, "no_progress", "", true},
	} {
		wg.Go(func() {
			t.Run(c.version+" "+c.fault, func(t *testing.T) {
				if c.slow && testing.Short() {
					t.Skip("waits for seconds of real time; CI runs it in the slow tier")
				}
				config := sglang.Config{"mem-fraction-static": 0.88}
				if c.fault == "watchdog" {
					config["watchdog-timeout"] = 20.0
				}
				tr := runTrial(t, c.version, c.fault, config, c.limit)
				as := tr.Verdict.Outcome == c.outcome && tr.Verdict.Cause == c.cause
				if !as && (c.outcome != trial.OK || !served(tr)) {
					t.Errorf("%s / %s / %s in step %s: %s", tr.Verdict.Outcome, tr.Verdict.Phase, tr.Verdict.Cause, tr.Step, tr.Verdict.Text)
				}
				if texts := wrongMonitors(tr); c.wrong != "" && !slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, c.wrong) }) {
					t.Errorf("findings %q lack %q", texts, c.wrong)
				}
			})
		})
	}
}
