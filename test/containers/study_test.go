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

	"sgtune/internal/freeport"
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

// short makes a study of two launches and one pair that confirms.
func short(text string) string {
	return strings.NewReplacer("trials: 3", "trials: 2", "launches: 3", "launches: 1").Replace(text)
}

type night struct {
	t         *testing.T
	program   string
	name, dir string
}

// newNight writes the study's file; more stands at its end, and edits change its text.
func newNight(t *testing.T, name, port, more string, edits ...func(string) string) *night {
	t.Helper()
	need(t)
	n := &night{t: t, program: bed.program, name: name, dir: t.TempDir()}
	rows, err := filepath.Abs("../../examples/quickstart.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("@NAME", name, "@ROWS", rows, "@PORT", port, "@MORE", more).Replace(study)
	for _, edit := range edits {
		text = edit(text)
	}
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
	cmd := exec.CommandContext(ctx, n.program, args...)
	cmd.Dir, cmd.Env = n.dir, append(os.Environ(), "NO_COLOR=1", "XDG_RUNTIME_DIR="+n.dir)
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
	Trials  []shownTrial
}

type shownTrial struct {
	State, Outcome, Cause string
	Config                map[string]any
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
// verdict with them; any other failure is one. So many launches must have been measured.
func (n *night) tune(measured int) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), 8*time.Minute)
	defer cancel()
	out, err := n.command(ctx, "tune", n.file(), "--web", "off").CombinedOutput()
	if s := n.show(); s.State != "complete" {
		n.t.Fatalf("%s: %v\n%s", s.State, err, out)
	} else if err != nil && s.Verdict.Answer != "not confirmed" || err == nil && s.Verdict.Answer != "better" {
		n.t.Errorf("%v: %s\n%s", err, s.Verdict.Answer, out)
	} else {
		n.judge(s, measured)
	}
}

// log is the log of a trial's server.
func (n *night) log(trial int) string {
	b, _ := os.ReadFile(filepath.Join(n.dir, "sgtune.files", n.name, fmt.Sprint(trial), "server.log")) // "" where there is none
	return string(b)
}

func (n *night) judge(s shown, measured int) {
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
	if complete < measured {
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
	n.tune(4)
	if log := n.log(0); !strings.Contains(log, "fired up") {
		t.Errorf("the baseline's log has %d bytes", len(log))
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
	n.tune(4)
}

// TestStudyLeavesAServer: the server that stays is a container that the runtime keeps running, also after a death, and a
// study that knows of no container is told whose it is.
func TestStudyLeavesAServer(t *testing.T) {
	need(t)
	port := freeport.For(t)
	n := newNight(t, "served", fmt.Sprint(", port: ", port), "finish: {launch: baseline}", short)
	t.Cleanup(func() { _ = exec.Command(bed.runtime, "rm", "-f", "sgtune-served-served").Run() })
	n.tune(2)
	first := n.served()
	if _, marked := first.Config.Labels["sgtune.trial"]; !first.State.Running || marked {
		t.Fatalf("the server that stays: %+v", first)
	}
	if err := syscall.Kill(first.State.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for begin := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		if again := n.served(); again.State.Running && again.State.Pid != first.State.Pid && answers(port) {
			break
		}
		if time.Since(begin) > time.Minute {
			t.Fatalf("it was not started again: %+v", n.served())
		}
	}
	plain := strings.NewReplacer("study: served", "study: plain", "command: [/sim,", "command: ["+bed.program+",", "  container:", "  # ").Replace
	text, err := os.ReadFile(n.file())
	if err = errors.Join(err, os.WriteFile(n.file(), []byte(plain(string(text))), 0o600)); err != nil {
		t.Fatal(err)
	}
	out, _ := n.command(t.Context(), "check", n.file()).CombinedOutput() // it is not ready: the port is held
	if want := fmt.Sprintf("the server on port %d that sgtune launched when study served ended", port); !strings.Contains(string(out), want) {
		t.Errorf("check of another study does not say %q:\n%s", want, out)
	}
}

// served is what the runtime tells of the server that stays.
type served struct {
	State struct {
		Running bool
		Pid     int
	}
	Config struct{ Labels map[string]string }
}

func (n *night) served() served {
	n.t.Helper()
	var all []served
	out, err := exec.Command(bed.runtime, "inspect", "sgtune-served-"+n.name).Output()
	if err := errors.Join(err, json.Unmarshal(out, &all)); err != nil || len(all) != 1 {
		n.t.Fatalf("%v: %.300s", err, out)
	}
	return all[0]
}

// answers reports whether somebody listens on a port.
func answers(port int) bool {
	c, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
	return err == nil && c.Close() == nil
}
