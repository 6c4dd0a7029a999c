package trial_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sgtune/benchmark"
	"sgtune/host"
	"sgtune/sglang"
	"sgtune/trial"
)

// fakeStore keeps every save and may do something at one of them.
type fakeStore struct {
	mu       sync.Mutex
	saves    []trial.Trial
	finished int
	at       func(t *trial.Trial) error // called before a save counts
}

func (s *fakeStore) SaveTrial(ctx context.Context, t *trial.Trial) error {
	if s.at != nil {
		if err := s.at(t); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	row := *t
	row.Levels = slices.Clone(t.Levels)
	s.saves = append(s.saves, row)
	if t.State.Finished() {
		s.finished++
	}
	return nil
}

func (s *fakeStore) steps() []trial.Step {
	s.mu.Lock()
	defer s.mu.Unlock()
	var steps []trial.Step
	for _, row := range s.saves {
		if len(steps) == 0 || steps[len(steps)-1] != row.Step {
			steps = append(steps, row.Step)
		}
	}
	return steps
}

// workload is n rows of input tokens each; the first block of 64 is shared by neighbours.
func workload(n, input, output int) *benchmark.Workload {
	var rows []benchmark.Row
	for i := range n {
		r := benchmark.Row{Number: i, InputTokens: input, OutputTokens: output}
		for b := range (input + 63) / 64 {
			r.HashIDs = append(r.HashIDs, int64(b*10000+i/(3*(b+1))))
		}
		rows = append(rows, r)
	}
	w := benchmark.NewWorkload(rows, 64)
	w.Reuse = 0.4
	return w
}

// newRunner is a runner whose trials take about a second of real time.
func newRunner(t *testing.T, h *fakeHost, store *fakeStore) *trial.Runner {
	t.Helper()
	return &trial.Runner{
		Host: h, Store: store, Clock: h.clock,
		Server: sglang.Server{Command: []string{"python3", "-m", "sglang.launch_server"}, Model: "m", Flags: sglang.Config{"tp-size": 2.0}},
		Load: trial.Load{
			Workload: workload(60, 128, 8), Levels: []int{2, 4}, Window: 10 * time.Second, Cap: 30 * time.Second, Warmup: 10 * time.Second,
			Target: 0, Canary: 20 * time.Second, Salt: "night",
		},
		Files: t.TempDir(), Scratch: t.TempDir(), ReadyTimeout: 25 * time.Minute, Grace: 30 * time.Second,
		Score: func(levels []trial.Level) (float64, int, bool) {
			if len(levels) == 0 {
				return 0, 0, false
			}
			return levels[0].Report.OutputTokS, levels[0].Concurrency, true
		},
	}
}

func newTrial(plan ...int) *trial.Trial {
	return &trial.Trial{Study: "night", Number: 7, Role: trial.RoleSearch, Config: sglang.Config{"mem-fraction-static": 0.88}, Plan: plan, State: trial.Waiting}
}

func TestMain(m *testing.M) {
	trial.SetPatience(0.2)
	m.Run()
}

func TestRunToTheEnd(t *testing.T) {
	t.Parallel()
	var h *fakeHost
	var store *fakeStore
	var r *trial.Runner
	var tr *trial.Trial
	var mu sync.Mutex
	var progress []trial.Progress
	for range 5 { // a busy machine makes the client late, which the report rightly calls invalid
		h, store = newFakeHost(t, script{log: startLog, load: 50 * time.Millisecond}), &fakeStore{}
		r, tr = newRunner(t, h, store), newTrial(2, 4)
		r.Server.Flags["api-key"] = "TOPSECRET"
		r.Progress = func(p trial.Progress) { mu.Lock(); progress = append(progress, p); mu.Unlock() }
		if err := r.Run(t.Context(), tr); err != nil {
			t.Fatal(err)
		}
		if tr.Verdict.Outcome != trial.BenchInvalid {
			break
		}
	}
	if tr.State != trial.Complete || tr.Verdict.Outcome != trial.OK || tr.Release != trial.ReleaseVerified {
		t.Errorf("state %s, verdict %+v, release %s", tr.State, tr.Verdict, tr.Release)
	}
	if tr.Value == nil || *tr.Value <= 0 || tr.Best != 2 || len(tr.Levels) != 2 {
		t.Errorf("value %v at %d, %d levels", tr.Value, tr.Best, len(tr.Levels))
	}
	want := []trial.Step{trial.StepAdmit, trial.StepLaunch, trial.StepWait, trial.StepCanary, trial.StepWarmup, trial.StepMeasure, trial.StepStop, trial.StepReclaim, trial.StepSave}
	if got := store.steps(); !slices.Equal(got, want) {
		t.Errorf("steps stored: %v, want %v", got, want)
	}
	if tr.Startup <= 0 || tr.Memory.Tokens != 2000 || tr.LowWater != 5*gib || tr.OwnRAM < 0 || tr.MinRAM != 424e9 || tr.Process.PID == 0 {
		t.Errorf("facts of the row: %+v", tr)
	}
	if h.alive() != 0 {
		t.Errorf("%d processes left", h.alive())
	}
	if len(progress) == 0 {
		t.Error("no progress was shown")
	}
	checkEvidence(t, r, tr)
	checkLaunch(t, store)
	checkStop(t, h)
}

// checkEvidence: the files of the trial are there, and the secret is in none of them.
func checkEvidence(t *testing.T, r *trial.Runner, tr *trial.Trial) {
	t.Helper()
	for _, name := range []string{"server.log", "level-2.samples.jsonl", "level-4.samples.jsonl"} {
		b, err := os.ReadFile(filepath.Join(r.Files, tr.Dir, name))
		if err != nil || len(b) == 0 {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
		if strings.Contains(string(b), "TOPSECRET") {
			t.Errorf("%s holds the secret", name)
		}
	}
	if row := fmt.Sprintf("%+v", *tr); strings.Contains(row, "TOPSECRET") {
		t.Errorf("the row holds the secret: %s", row)
	}
	if left, _ := os.ReadDir(r.Scratch); len(left) != 0 {
		t.Errorf("the raw log is still there: %v", left)
	}
}

// checkLaunch: the marker was stored before the launch and the identity right after it.
func checkLaunch(t *testing.T, store *fakeStore) {
	t.Helper()
	for _, row := range store.saves {
		if row.Step == trial.StepLaunch {
			if row.Marker == "" {
				t.Error("launched before the marker was stored")
			}
			break
		}
	}
	for _, row := range store.saves {
		if row.Step == trial.StepWait && row.Process.PID == 0 {
			t.Error("waiting, and the process is not stored")
		}
	}
}

// checkStop: a ready server is asked before it is killed.
func checkStop(t *testing.T, h *fakeHost) {
	t.Helper()
	events := h.happened()
	term := slices.IndexFunc(events, func(e string) bool { return strings.HasPrefix(e, "term") })
	if term < 1 || events[term-1] != "abort all" {
		t.Errorf("stopped without abort all and SIGTERM: %v", events[max(0, len(events)-5):])
	}
}

func TestEndsOfAServer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		script script
		change func(*trial.Runner, *fakeHost)
		step   trial.Step
		want   string // outcome / phase / cause, blames
		text   string
	}{
		{
			"refused flag",
			script{dies: "usage: launch_server.py [-h]\nlaunch_server.py: error: argument --page-size: invalid int value: 'x'\n", exit: host.Exit{Code: 2, Known: true}},
			nil, trial.StepWait, "config_rejected / launch / bad_value, yes", "--page-size",
		},
		{
			"out of memory in prefill, under load",
			script{log: startLog, oomAfter: 15, oom: prefillOOM, exit: host.Exit{Code: -1, Signal: 9, Known: true}},
			nil, "", "gpu_oom / prefill / prefill_activation, yes", "it wanted 1.75 GiB, 0.82 GiB was free",
		},
		{
			"kernel kills it",
			script{log: startLog + hostPoolLine, dies: "RuntimeError: Rank 1 scheduler died during initialization (exit code: -9).\n", exit: host.Exit{Code: 1, Known: true}, kernelOOM: true},
			nil, trial.StepWait, "host_oom / host_pool / hicache_oversubscribed, yes", "600 GB",
		},
		{"silent death", script{log: startLog, dies: "\n", exit: host.Exit{Code: 3, Known: true}}, nil, trial.StepWait, "crashed / kv_pool / silent_exit, partly", "exit status 3"},
		{"hangs under load", script{log: startLog, hangAfter: 40}, nil, "", "stuck / decode / no_progress, partly", "nothing moved"},
		{"never ready", script{log: startLog, silent: true}, nil, trial.StepWait, "stuck / kv_pool / no_progress, partly", "stopped advancing"},
		{
			"slow start",
			script{log: startLog, load: time.Minute},
			func(r *trial.Runner, _ *fakeHost) { r.ReadyTimeout = time.Minute }, trial.StepWait,
			"startup_timeout / kv_pool / unknown, no", "ready_timeout",
		},
		{"no token", script{log: startLog, noToken: true}, nil, trial.StepWait, "stuck / ready / no_progress, partly", "gives no token"},
		{"no such program", script{}, func(r *trial.Runner, _ *fakeHost) { r.Server.Command = []string{"missing"} }, trial.StepLaunch, "env_fault / launch / unknown, no", "executable file not found"},
		{"host lost", script{}, func(_ *trial.Runner, h *fakeHost) { h.lost = true }, trial.StepAdmit, "env_fault / launch / unknown, no", "no route"},
		{"cache cannot be flushed", script{log: startLog, refusals: 1e6}, nil, trial.StepWarmup, "bench_invalid / bench / unknown, no", "flush"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h, store := newFakeHost(t, c.script), &fakeStore{}
			r, tr := newRunner(t, h, store), newTrial(2, 4)
			if c.change != nil {
				c.change(r, h)
			}
			if err := r.Run(t.Context(), tr); err != nil {
				t.Fatal(err)
			}
			v := tr.Verdict
			if got := fmt.Sprintf("%s / %s / %s, %s", v.Outcome, v.Phase, v.Cause, v.Blames); got != c.want {
				t.Errorf("verdict %s, want %s\n%s", got, c.want, v.Text)
			}
			if !strings.Contains(v.Text, c.text) {
				t.Errorf("text %q lacks %q", v.Text, c.text)
			}
			if c.step != "" && tr.Step != c.step {
				t.Errorf("ended in step %s, want %s", tr.Step, c.step)
			}
			if tr.State != trial.Failed || tr.Value != nil || h.alive() != 0 || store.finished != 1 {
				t.Errorf("state %s, value %v, %d processes, %d finished rows", tr.State, tr.Value, h.alive(), store.finished)
			}
		})
	}
}

const hostPoolLine = "[2026-01-01 22:01:06 TP0] Allocating kv hierarchical KV host pool: 4269128 tokens, 300.00 GB host memory.\n"

func TestPortTaken(t *testing.T) {
	t.Parallel()
	h, store := newFakeHost(t, script{}), &fakeStore{}
	r, tr := newRunner(t, h, store), newTrial(2)
	r.Port = occupy(t, h)
	if err := r.Run(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	if v := tr.Verdict; v.Outcome != trial.EnvFault || v.Cause != "port_in_use" || v.Blames != trial.BlameNo || !strings.Contains(v.Text, "pid 4242") {
		t.Errorf("verdict %+v", v)
	}
	for _, e := range h.happened() {
		if strings.HasPrefix(e, "start") {
			t.Error("launched on a taken port")
		}
	}
}

// occupy lets somebody else listen on a port.
func occupy(t *testing.T, h *fakeHost) int {
	t.Helper()
	e, err := h.Reach(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if h.port, err = listen(e.Port); err != nil {
		t.Fatal(err)
	}
	return e.Port
}
