package containers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const study = `study: @NAME
server:
  command: [/sim, sim-server, --sim-profile, kimi-8x96, --sim-time-scale, "20", --sim-seed, "7", --sim-startup, "10"]
  model: /models/Kimi-K2.5
  flags: {tp-size: 8, trust-remote-code: true@PORT}
  baseline: {mem-fraction-static: 0.79, chunked-prefill-size: 512}
  container: {runtime: podman, image: "` + image + `", args: [--memory, 4000m]}
sampler: grid
space:
  mem-fraction-static: {values: [0.79, 0.90]}
  chunked-prefill-size: {values: [512, 8192]}
workload:
  file: @ROWS
  load: {concurrency: [48]}
measure: {window: 400ms, max: 1600ms, canary: 400ms, fill: off}
budget: {trials: 3}
confirm: {launches: 3}
@MORE
`

type night struct {
	t         *testing.T
	name, dir string
}

func newNight(t *testing.T, name, port, more string) *night {
	t.Helper()
	need(t)
	n := &night{t: t, name: name, dir: t.TempDir()}
	rows, err := filepath.Abs("../../examples/quickstart.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("@NAME", name, "@ROWS", rows, "@PORT", port, "@MORE", more).Replace(study)
	if err := os.WriteFile(n.file(), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left := containers(t, ""); left != "" {
			t.Errorf("containers left: %s", left)
			_ = exec.Command(bed.runtime, append([]string{"rm", "-f"}, strings.Fields(left)...)...).Run()
		}
		if left, _ := filepath.Glob(filepath.Join(bed.dir, "state", "sgtune", "*.containers", "*")); len(left) > 0 {
			t.Errorf("folders left: %v", left)
		}
	})
	return n
}

func (n *night) file() string { return filepath.Join(n.dir, "study.yaml") }

func (n *night) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, bed.program, args...)
	cmd.Dir, cmd.Env = n.dir, append(os.Environ(), "NO_COLOR=1")
	return cmd
}

// sgtune runs the program to its end.
func (n *night) sgtune(want int, args ...string) string {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), 8*time.Minute)
	defer cancel()
	out, err := n.command(ctx, args...).CombinedOutput()
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		n.t.Fatal(err)
	}
	if code != want {
		n.t.Fatalf("sgtune %v: exit %d, want %d\n%s", args, code, want, out)
	}
	return string(out)
}

type shown struct {
	State   string
	Verdict struct{ Answer string }
	Trials  []struct{ State, Outcome string }
}

func (n *night) show() shown {
	n.t.Helper()
	var s shown
	if err := json.Unmarshal([]byte(n.sgtune(0, "show", n.name, "--json")), &s); err != nil {
		n.t.Fatal(err)
	}
	return s
}

// tune runs the study to its end. On a busy machine launches may be invalid for want of CPU for the load, and the
// verdict with them; any other failure is one.
func (n *night) tune() {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), 8*time.Minute)
	defer cancel()
	out, err := n.command(ctx, "tune", n.file(), "--web", "off").CombinedOutput()
	if s := n.show(); s.State != "complete" {
		n.t.Fatalf("%s: %v\n%s", s.State, err, out)
	} else if err != nil && s.Verdict.Answer != "not confirmed" || err == nil && s.Verdict.Answer != "better" {
		n.t.Errorf("%v: %s\n%s", err, s.Verdict.Answer, out)
	} else {
		n.judge(s)
	}
}

func (n *night) judge(s shown) {
	n.t.Helper()
	complete := 0
	for i, t := range s.Trials {
		switch t.Outcome {
		case "ok", "degraded":
			complete++
		case "bench_invalid", "aborted":
			n.t.Logf("trial %d is %s", i, t.Outcome)
		default:
			n.t.Errorf("trial %d: %s", i, t.Outcome)
		}
	}
	if complete < 4 {
		n.t.Errorf("%d of %d launches were measured", complete, len(s.Trials))
	}
}

// TestStudy is a whole study in containers: check, tune, export.
func TestStudy(t *testing.T) {
	n := newNight(t, "boxed", "", "")
	checked := n.sgtune(0, "check", n.file())
	for _, want := range []string{"by its memory limit", "Ready to leave alone: yes"} {
		if !strings.Contains(checked, want) {
			t.Errorf("check lacks %q:\n%s", want, checked)
		}
	}
	n.tune()
	log, err := os.ReadFile(filepath.Join(n.dir, "sgtune.files", n.name, "0", "server.log"))
	if err != nil || !bytes.Contains(log, []byte("fired up")) {
		t.Errorf("the baseline's log, %d bytes, %v", len(log), err)
	}
	script := n.sgtune(0, "export", n.name, "--trial", "0")
	for _, want := range []string{"exec podman run", image, "--memory 4000m", "/sim"} {
		if !strings.Contains(script, want) {
			t.Errorf("the exported script lacks %q:\n%s", want, script)
		}
	}
}

// TestStudyKilled: sgtune and then the holder of the container are killed while a trial is measured. The next sgtune
// finds the container by its label, ends it and goes on.
func TestStudyKilled(t *testing.T) {
	n := newNight(t, "killed", "", "")
	cmd := n.command(t.Context(), "tune", n.file(), "--web", "off")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for begin := time.Now(); containers(t, "") == ""; time.Sleep(50 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			t.Fatalf("no container appears\n%s", &out)
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	folders, _ := filepath.Glob(filepath.Join(bed.dir, "state", "sgtune", "*.containers", "*", "holder"))
	for _, f := range folders {
		var id struct{ PID int }
		if b, err := os.ReadFile(f); err == nil && json.Unmarshal(b, &id) == nil && id.PID > 1 {
			_ = syscall.Kill(id.PID, syscall.SIGKILL)
		}
	}
	if len(folders) == 0 || containers(t, "") == "" {
		t.Fatalf("no container outlived sgtune (%d folders)", len(folders))
	}
	n.tune()
}

// TestStudyLeavesAServer: the server that stays is a container that the runtime keeps running.
func TestStudyLeavesAServer(t *testing.T) {
	if need(t); !bed.real {
		t.Skip("the fake runtime restarts nothing")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := ln.Addr().(*net.TCPAddr).Port
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	n := newNight(t, "served", fmt.Sprint(", port: ", port), "finish: {launch: baseline}")
	t.Cleanup(func() { _ = exec.Command(bed.runtime, "rm", "-f", "sgtune-served-served").Run() })
	n.tune()
	inspect := exec.Command(bed.runtime, "inspect", "--format", "{{.State.Status}} {{.HostConfig.RestartPolicy.Name}} {{index .Config.Labels \"sgtune.trial\"}}", "sgtune-served-served")
	state, err := inspect.Output()
	if got := strings.TrimSpace(string(state)); got != "running unless-stopped" || err != nil {
		t.Errorf("the server that stays: %q, %v", got, err)
	}
	c, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
	if err != nil {
		t.Errorf("nobody listens on its port: %v", err)
	} else if err := c.Close(); err != nil {
		t.Error(err)
	}
}
