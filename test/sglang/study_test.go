package sglang_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sgtune/host"
	"sgtune/sglang"
)

// TestStudy tunes the real engine over six trials and one confirmation pair, then starts the exported profile
// and compares its /server_info with the trial's own.
func TestStudy(t *testing.T) {
	dir := engine(t)
	bin, file := program(t), studyFile(t, dir)
	db := filepath.Join(filepath.Dir(file), "sgtune.db")
	start := time.Now()
	stdout, stderr, code := sgtune(t, bin, "tune", file, "--db", db, "--web", "off")
	t.Logf("tune took %s, exit %d\n%s%s", time.Since(start).Round(time.Second), code, stdout, stderr)
	if code != 1 || !strings.Contains(strings.ToLower(stdout), "not confirmed") {
		t.Fatalf("exit %d, want 1 and \"not confirmed\": one launch each proves nothing", code)
	}
	shown, _, _ := sgtune(t, bin, "show", "sglang-cpu", "--db", db, "--json")
	var s struct {
		Simulated bool
		State     string
		Verdict   struct{ Trial int }
		Trials    []struct {
			Number               int
			Role, State, Outcome string
			Value                *float64
			Config               sglang.Config
		}
	}
	if err := json.Unmarshal([]byte(shown), &s); err != nil {
		t.Fatalf("show --json: %v\n%s", err, shown)
	}
	roles, complete := map[string]int{}, map[string]int{}
	for _, tr := range s.Trials {
		roles[tr.Role]++
		if tr.State == "complete" || tr.State == "pruned" {
			complete[tr.Role]++
		}
		if tr.Outcome == "ok" && (tr.Value == nil || *tr.Value <= 0) {
			t.Errorf("trial %d ended ok without a value", tr.Number)
		}
		// Server and load generator share two cores: a level whose client came too late is thrown away and run again.
		if tr.State == "failed" && tr.Outcome != "bench_invalid" {
			t.Errorf("trial %d failed: %s", tr.Number, tr.Outcome)
		}
	}
	if s.Simulated || s.State != "complete" || roles["baseline"]+roles["search"] != 6 || complete["baseline"]+complete["search"] < 4 || complete["confirm"] != 2 {
		t.Errorf("simulated %v, state %s, roles %v, complete %v; want a real, complete study of 6 trials and one pair", s.Simulated, s.State, roles, complete)
	}
	h := host.NewLocal(host.LocalOptions{StateDir: t.TempDir()})
	noneLeft(t, h, "")
	profile(t, bin, db, dir, s.Verdict.Trial)
}

// profile starts the exported sglang-yaml and compares the running server with the trial it came from.
func profile(t *testing.T, bin, db, dir string, number int) {
	t.Helper()
	yaml, stderr, code := sgtune(t, bin, "export", "sglang-cpu", "--db", db, "--trial", fmt.Sprint(number), "--format", "sglang-yaml")
	if code != 0 || !strings.Contains(yaml, "UNCONFIRMED") {
		t.Fatalf("export: exit %d, want 0 and UNCONFIRMED\n%s%s", code, yaml, stderr)
	}
	file := filepath.Join(t.TempDir(), "profile.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	const port = 31777
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(filepath.Join(dir, "serve"), "--config", file, "--port", fmt.Sprint(port))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("%s\n%s", yaml, text)
		}
	}()
	got := ready(t, port)

	text, err := os.ReadFile(filepath.Join(filepath.Dir(db), "sgtune.files", "sglang-cpu", fmt.Sprint(number), "server_info.json"))
	if err != nil {
		t.Fatalf("the trial's own /server_info: %v", err)
	}
	var want map[string]any
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	for _, diff := range sglang.ServerInfoEqual(want, got, nil) {
		t.Errorf("the exported profile's server differs: %s", diff)
	}
}
