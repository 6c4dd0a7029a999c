package sglang_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sgtune/benchmark"
	"sgtune/host"
	"sgtune/sglang"
	"sgtune/trial"
)

// engine is the folder with the installed server: `serve` starts it, `model` is its tiny model.
func engine(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("slow tier: make test-sglang runs it")
	}
	dir := os.Getenv("SGTUNE_SGLANG_CPU")
	switch {
	case dir != "":
		return dir
	case os.Getenv("CI") != "":
		t.Fatal("SGTUNE_SGLANG_CPU is not set: CI must run this tier (make test-sglang)")
	}
	t.Skip("needs the real SGLang server: make test-sglang installs it and sets SGTUNE_SGLANG_CPU")
	return ""
}

// server is the launch of a study on the real engine. Every start of a trial goes through `serve`,
// which adds the flags that a CPU needs.
func server(dir, model string) sglang.Server {
	return sglang.Server{Command: []string{filepath.Join(dir, "serve")}, Model: model, Flags: sglang.Config{}}
}

// saver keeps the last saved row; it stands for the store.
type saver struct{ last trial.Trial }

func (s *saver) SaveTrial(_ context.Context, t *trial.Trial) error {
	s.last = *t
	return nil
}

func runner(t *testing.T, srv sglang.Server) *trial.Runner {
	t.Helper()
	state := t.TempDir()
	clock := host.NewClock(time.Now(), 1)
	return &trial.Runner{
		Host:  host.NewLocal(host.LocalOptions{StateDir: state, Clock: clock}),
		Store: &saver{}, Clock: clock, Server: srv, InstrumentEnv: sglang.InstrumentEnv(nil),
		Files: filepath.Join(state, "files"), ReadyTimeout: 6 * time.Minute, Grace: 30 * time.Second,
		Score: func([]trial.Level) (float64, int, bool) { return 0, 0, false },
	}
}

// TestRealFailures launches three configurations that really fail, without admission, and expects the
// right verdict of each and no process left.
func TestRealFailures(t *testing.T) {
	dir := engine(t)
	big := bigModel(t, dir)
	for _, c := range []struct {
		name    string
		model   string
		config  sglang.Config
		outcome trial.Outcome
		phase   sglang.Phase
		cause   string
	}{
		{
			"a bad value", filepath.Join(dir, "model"),
			sglang.Config{"mem-fraction-static": "plenty"},
			trial.ConfigRejected, sglang.PhaseLaunch, "bad_value",
		},
		{
			"hicache without a GPU", filepath.Join(dir, "model"),
			sglang.Config{"mem-fraction-static": 0.02, "hicache-size": 1.0},
			trial.EnvFault, sglang.PhaseHostPool, "no_gpu",
		},
		{
			"weights of 1 GB at fraction 0.001", big,
			sglang.Config{"mem-fraction-static": 0.001},
			trial.GPUOOM, sglang.PhaseKVPool, "kv_pool_nonpositive",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := runner(t, server(dir, c.model))
			tr := &trial.Trial{Study: "real-failures", Number: 1, Role: trial.RoleSearch, Config: c.config, State: trial.Waiting, CreatedAt: time.Now()}
			if err := r.Run(t.Context(), tr); err != nil {
				t.Fatalf("Run: %v", err)
			}
			v := tr.Verdict
			if v.Outcome != c.outcome || v.Phase != c.phase || v.Cause != c.cause {
				t.Errorf("verdict %s / %s / %s, want %s / %s / %s\n%s\n%s", v.Outcome, v.Phase, v.Cause, c.outcome, c.phase, c.cause, v.Text, v.Evidence)
			}
			if tr.State != trial.Failed {
				t.Errorf("state %s, want failed", tr.State)
			}
			if tr.Release != trial.ReleaseUnverified {
				t.Errorf("release %q, want %q: there are no GPU facts here", tr.Release, trial.ReleaseUnverified)
			}
			t.Logf("%s (evidence: %s)", v.Text, v.Evidence)
			noneLeft(t, r.Host, tr.Marker)
		})
	}
}

func noneLeft(t *testing.T, h host.Host, marker string) {
	t.Helper()
	left, err := h.Find(context.WithoutCancel(t.Context()), marker)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range left {
		t.Errorf("process left: pid %d %v", p.ID().PID, p.ID().Argv)
	}
}

// bigModel makes a model of more than 1 GB of (dummy) weights.
func bigModel(t *testing.T, dir string) string {
	t.Helper()
	model := filepath.Join(t.TempDir(), "big")
	cmd := exec.Command(filepath.Join(dir, "venv/bin/python"), "../sglang-cpu/mkmodel.py", model,
		"--layers", "160", "--kv-heads", "32", "--head-dim", "512")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("mkmodel.py: %v\n%s", err, out)
	}
	return model
}

// program builds sgtune once a test.
func program(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "sgtune")
	if out, err := exec.Command("go", "build", "-o", bin, "sgtune/cmd/sgtune").CombinedOutput(); err != nil {
		t.Fatalf("build sgtune: %v\n%s", err, out)
	}
	return bin
}

func sgtune(t *testing.T, bin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 28*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(filepath.Dir(bin), "state"), "NO_COLOR=1")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatalf("sgtune %v: %v", args, err)
	}
	return out.String(), errs.String(), code
}

// ready waits for the server's own /server_info.
func ready(t *testing.T, port int) map[string]any {
	t.Helper()
	target := benchmark.Target{URL: fmt.Sprintf("http://127.0.0.1:%d", port)}
	deadline := time.Now().Add(6 * time.Minute)
	for time.Now().Before(deadline) {
		if target.OneToken(t.Context()) == nil {
			info, err := target.ServerInfo(t.Context())
			if err != nil {
				t.Fatalf("/server_info: %v", err)
			}
			return info
		}
		time.Sleep(500 * time.Millisecond)
	}
	t.Fatal("the server of the exported profile did not come up in six minutes")
	return nil
}

func studyFile(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile("../../examples/sglang-cpu.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := os.ReadFile("../../examples/sglang-cpu.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	place := t.TempDir()
	edited := strings.ReplaceAll(string(text), "../.cache/sglang-cpu", dir)
	file := filepath.Join(place, "sglang-cpu.yaml")
	for path, b := range map[string][]byte{file: []byte(edited), filepath.Join(place, "sglang-cpu.jsonl"): rows} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return file
}
