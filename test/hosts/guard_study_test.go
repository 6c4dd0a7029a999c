package hosts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sgtune/host"
	"sgtune/internal/hosttest"
)

// guardedStudy is one on this machine itself. Its server takes all memory with 0.9, and serves with other values.
const guardedStudy = `study: @NAME
server:
  command: [@SCRIPT]
  model: /models/any
  flags: {tp-size: 8}
  baseline: {mem-fraction-static: 0.8}
host: {kind: local, tuner_gone: 3s}
sampler: grid
space: {mem-fraction-static: {values: [0.8, 0.9, 0.82]}}
workload: {file: @ROWS, load: {concurrency: [8]}}
measure: {window: 3s, max: 9s, canary: 1s, fill: off}
budget: {trials: 7} # the list has three; a launch that others on the machine made void is made again
confirm: {launches: 1}
finish: {launch: none}
`

// guardedServer is that server; @BEFORE is what it does first. Its answers take so long that a busy machine sends
// nothing too late for them.
const guardedServer = `#!/bin/sh
@BEFORE
case "$*" in *"--mem-fraction-static 0.9"*) @EATER;; esac
exec @PROGRAM sim-server --sim-profile kimi-8x96 --sim-time-scale 4 --sim-startup 4 "$@"
`

// localNight is a study on this machine.
type localNight struct {
	t             *testing.T
	program       string
	dir, name, db string
}

func newLocalNight(t *testing.T, name, before string) localNight {
	t.Helper()
	need(t)
	program, err := sgtuneProgram()
	if err != nil {
		t.Fatal(err)
	}
	rows, err := filepath.Abs("../../examples/quickstart.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	n := localNight{t: t, program: program, dir: t.TempDir(), name: name}
	n.db = filepath.Join(n.dir, "sgtune.db")
	script := filepath.Join(n.dir, "serve")
	words := strings.NewReplacer("@NAME", name, "@SCRIPT", script, "@ROWS", rows, "@BEFORE", before, "@EATER", guardEaterEnv+"=1 exec "+os.Args[0], "@PROGRAM", program)
	if err := errors.Join(
		os.WriteFile(script, []byte(words.Replace(guardedServer)), 0o700),
		os.WriteFile(n.study(), []byte(words.Replace(guardedStudy)), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	return n
}

func (n localNight) study() string { return filepath.Join(n.dir, "study.yaml") }

func (n localNight) command(args ...string) *exec.Cmd {
	cmd := exec.Command(n.program, append(args, "--db", n.db)...)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(n.dir, "state"), "TMPDIR="+n.dir)
	return cmd
}

// run runs the program to its end. The verdict of so small a study is "not confirmed", so the status says little.
func (n localNight) run(args ...string) string {
	n.t.Helper()
	out, err := n.command(args...).CombinedOutput()
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) {
		n.t.Fatal(err)
	}
	return string(out)
}

func (n localNight) shown() hosttest.Shown {
	n.t.Helper()
	var s hosttest.Shown
	if text := n.run("show", n.name, "--json"); json.Unmarshal([]byte(text), &s) != nil {
		n.t.Fatalf("show: %s", text)
	}
	return s
}

// evidence is what the guard of a trial saw.
func (n localNight) evidence(number int) []host.GuardSample {
	n.t.Helper()
	b, err := os.ReadFile(filepath.Join(n.dir, "sgtune.files", n.name, fmt.Sprint(number), "guard.jsonl"))
	if err != nil {
		n.t.Error(err)
	}
	var list []host.GuardSample
	for line := range bytes.Lines(b) {
		var s host.GuardSample
		if err := json.Unmarshal(line, &s); err != nil {
			n.t.Errorf("evidence of trial %d: %s: %v", number, line, err)
		}
		list = append(list, s)
	}
	return list
}

// guards lists the guards of this study by the lock that each holds.
func (n localNight) guards() []string {
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the pattern is right
	var list []string
	for _, file := range files {
		if to, err := os.Readlink(file); err == nil && strings.HasPrefix(to, n.dir) && strings.HasSuffix(to, ".guard/lock") {
			list = append(list, strings.Split(file, "/")[2])
		}
	}
	return list
}

// TestGuardInAStudy: a server of a local study that takes all the memory of its cgroup is ended by its guard and not by
// the kernel; the trial says so, its evidence is there, and the study goes on.
func TestGuardInAStudy(t *testing.T) {
	need(t)
	group := newGuardGroup(t)
	n := newLocalNight(t, "guarded", "echo $$ >"+group.dir+"/cgroup.procs || exit 7")
	t.Log(n.run("tune", n.study(), "--web", "off"))
	if kills := group.kills(t); kills != 0 {
		t.Errorf("the kernel killed %d times", kills)
	}
	ended, after := 0, 0
	for _, tr := range n.shown().Trials {
		samples := n.evidence(tr.Number)
		// the first sample may be older than the server's move into its group
		if len(samples) < 3 || samples[1].Memory.Limit/4096 != guardLimit/4096 || samples[1].OurProcesses < 1 || samples[1].Cores < 1 {
			t.Errorf("trial %d: %d samples, the first %+v", tr.Number, len(samples), samples[:min(2, len(samples))])
		}
		switch {
		case fmt.Sprint(tr.Config["mem-fraction-static"]) != "0.9":
			if ended > 0 && (tr.State == "complete" || tr.Outcome == "bench_invalid") { // the latter on a machine that is too busy
				after++
			}
			continue
		case tr.State != "failed" || tr.Outcome != "host_oom" || tr.Cause != "cgroup_limit":
			t.Errorf("trial %d: %s, %s / %s", tr.Number, tr.State, tr.Outcome, tr.Cause)
		}
		ended++
		if one := n.run("show", n.name, fmt.Sprint(tr.Number)); !strings.Contains(one, "the guard ended the server before the kernel chose whom to kill") {
			t.Errorf("trial %d is shown as:\n%s", tr.Number, one)
		}
	}
	if ended != 1 || after == 0 {
		t.Errorf("%d trials ended by the guard, and %d that ran after it: want 1, and one more at least", ended, after)
	}
	if left := n.guards(); len(left) > 0 {
		t.Errorf("guards left: %v", left)
	}
}

// TestGuardOfADeadStudy: after kill -9 of sgtune the guard stays with the server and ends it when nobody came back in
// time; the next sgtune says so and goes on. One that comes back earlier finds both, and neither is left.
func TestGuardOfADeadStudy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		early bool
		want  string
	}{
		{"late", false, "its guard had ended the server: no heartbeat of the tuner for"},
		{"early", true, "its configuration is innocent"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			again := filepath.Join(t.TempDir(), "again")
			n := newLocalNight(t, "dead-"+c.name, "test -e "+again+" || sleep 60")
			tune := n.command("tune", n.study(), "--web", "off")
			tune.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if err := tune.Start(); err != nil {
				t.Fatal(err)
			}
			h := host.NewLocal(host.LocalOptions{})
			serving := func() bool {
				list, err := h.Find(t.Context(), "")
				for _, p := range list {
					if strings.HasPrefix(p.ID().Marker, n.name+".") {
						return true
					}
				}
				return err != nil
			}
			eventually(t, "a server with its guard", time.Minute, func() bool { return serving() && len(n.guards()) == 1 })
			if err := syscall.Kill(-tune.Process.Pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			_ = tune.Wait()
			if len(n.guards()) != 1 || !serving() {
				t.Errorf("right after the kill: guards %v, serving %v", n.guards(), serving())
			}
			if !c.early {
				eventually(t, "the end of the server and its guard", 30*time.Second, func() bool { return !serving() && len(n.guards()) == 0 })
			}
			if err := os.WriteFile(again, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			out := n.run("tune", n.study(), "--web", "off", "--trials", "2")
			if serving() || len(n.guards()) > 0 {
				t.Errorf("left: guards %v, serving %v", n.guards(), serving())
			}
			s := n.shown()
			if len(s.Trials) < 2 || s.Trials[0].Outcome != "aborted" || s.Trials[1].Outcome != "ok" && s.Trials[1].Outcome != "bench_invalid" {
				t.Fatalf("%+v\n%s", s, out)
			}
			if one := n.run("show", n.name, "0"); !strings.Contains(one, c.want) || c.early && strings.Contains(one, "had ended") {
				t.Errorf("trial 0 is shown as:\n%s", one)
			}
		})
	}
}
