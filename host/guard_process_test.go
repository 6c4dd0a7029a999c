package host_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sgtune/host"
	"sgtune/internal/hosttest"
)

// guardRole makes the test binary a guard, or a sgtune that starts a guarded sleeper and waits; nil for neither.
func guardRole() func() int {
	if len(os.Args) < 2 {
		return nil
	}
	switch os.Args[1] {
	case "guard-job":
		return func() int {
			if err := host.GuardMain(context.Background(), host.NewLocal(host.LocalOptions{}), os.Stdin, os.Stdout); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
			return 0
		}
	case "guarded-tuner": // log, marker
		return func() int {
			p, err := guardedHost(os.Args[0]).Start(context.Background(), host.Command{
				Argv: []string{"sleep", "60"}, LogPath: os.Args[2], Marker: os.Args[3],
				Guard: &host.GuardLimits{MinFree: -1, Absence: 1500 * time.Millisecond},
			})
			fmt.Println(p.ID().PID, err)
			time.Sleep(time.Minute)
			return 0
		}
	}
	return nil
}

func guardedHost(program ...string) *host.Local {
	return host.NewLocal(host.LocalOptions{Guard: append(program, "guard-job")})
}

// verdictOf is what the guard of an ended process says.
func verdictOf(t *testing.T, p host.Process) (*host.GuardVerdict, error) {
	t.Helper()
	g, ok := p.(interface {
		Guarded(ctx context.Context) (*host.GuardVerdict, error)
	})
	if !ok {
		t.Fatalf("%T tells nothing of a guard", p)
	}
	return g.Guarded(t.Context())
}

// TestGuardBesideALocal: the guard of a local command ends it in time and says why; without a reason it says that too. It
// is nothing that a sweep for the trial's processes finds, and it is gone when the trial is.
func TestGuardBesideALocal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		script string
		limits host.GuardLimits
		want   host.GuardReason
	}{
		{"time", "sleep 60", host.GuardLimits{MinFree: -1, TimeLimit: 300 * time.Millisecond}, host.GuardTimeLimit},
		{"memory", "sleep 60", host.GuardLimits{MinFree: 1 << 50}, host.GuardMemory},
		{"by itself", "sleep 0.3", host.GuardLimits{MinFree: -1, Absence: time.Minute}, host.GuardOver},
		{"before the first look", "exit 3", host.GuardLimits{MinFree: -1}, host.GuardOver},
		{"a setsid child stays", "setsid sleep 60 & sleep 0.2", host.GuardLimits{MinFree: -1, TimeLimit: 1500 * time.Millisecond}, host.GuardTimeLimit},
		{"the heartbeat is touched", "sleep 2", host.GuardLimits{MinFree: -1, Absence: time.Second}, host.GuardOver},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, marker := t.TempDir(), hosttest.NewMarker()
			l := guardedHost(os.Args[0])
			c.limits.Evidence = filepath.Join(dir, "evidence.jsonl")
			log := filepath.Join(dir, "log")
			p, err := l.Start(t.Context(), host.Command{Argv: []string{"sh", "-c", c.script}, LogPath: log, Marker: marker, Guard: &c.limits})
			if err != nil {
				t.Fatal(err)
			}
			found, err := l.Find(t.Context(), marker)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range found {
				if strings.Contains(strings.Join(f.ID().Argv, " "), "guard-job") {
					t.Errorf("the guard counts as one of the trial: %v", f.ID())
				}
			}
			hosttest.Wait(t, p)
			v, err := verdictOf(t, p)
			if err != nil || v == nil {
				t.Fatal(v, err)
			}
			if v.Reason != c.want || v.PID != p.ID().PID || v.Marker != marker || v.Ended.IsZero() {
				t.Errorf("%+v", v)
			}
			if left, err := l.Find(t.Context(), marker); err != nil || len(left) > 0 {
				t.Errorf("left: %d, %v", len(left), err)
			}
			b, err := os.ReadFile(c.limits.Evidence)
			if c.name == "before the first look" && (err == nil || errors.Is(err, fs.ErrNotExist)) {
				return // it may have had one
			}
			if lines := bytes.Count(b, []byte("\n")); err != nil || lines < 1 {
				t.Errorf("%d lines of evidence, %v", lines, err)
			}
			if again, err := host.LeftGuard(t.Context(), log); err != nil || again == nil || again.Reason != c.want {
				t.Errorf("read by another: %+v, %v", again, err)
			}
		})
	}
}

// TestNothingRunsUnguarded: a guard that cannot do its work is told before the command runs, which then never does.
func TestNothingRunsUnguarded(t *testing.T) {
	t.Parallel()
	script := func(t *testing.T, body string) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), "guard.sh")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		name  string
		guard []string
		want  string
	}{
		{"no program", nil, "this host has no program for it"},
		{"not there", []string{"no-such-guard"}, "no-such-guard"},
		{"ends at once", []string{script(t, "echo the disk is broken >&2; exit 4")}, "it gave no answer: EOF: the disk is broken"},
		{"talks nonsense", []string{script(t, "echo hello; sleep 60")}, "it gave no answer: invalid character"},
		{"refuses", []string{script(t, `echo '{"problem": "no /proc"}'; sleep 60`)}, "its guard cannot be: no /proc"},
		{"refuses once the process is there", []string{script(t, `echo '{}'; read a; read b; echo '{"problem": "too late"}'`)}, "ended at once, because its guard does not watch it: too late"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, marker := t.TempDir(), hosttest.NewMarker()
			l := host.NewLocal(host.LocalOptions{Guard: c.guard})
			ran := filepath.Join(dir, "ran")
			p, err := l.Start(t.Context(), host.Command{
				Argv: []string{"sh", "-c", "touch " + ran + "; sleep 60"}, LogPath: filepath.Join(dir, "log"), Marker: marker, Guard: &host.GuardLimits{},
			})
			if err == nil || p != nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if _, err := os.Stat(ran); err == nil && !strings.HasPrefix(c.name, "refuses once") {
				t.Error("the command ran")
			}
			if left, err := l.Find(t.Context(), marker); err != nil || len(left) > 0 {
				t.Errorf("left: %d, %v", len(left), err)
			}
		})
	}
	_, err := guardedHost(os.Args[0]).Start(t.Context(), host.Command{Argv: []string{"true"}, Guard: &host.GuardLimits{}})
	if err == nil || !strings.Contains(err.Error(), "which has none") {
		t.Errorf("without a log: %v", err)
	}
}

// TestGuardOutlivesTheTuner: kill -9 of whoever started it leaves the guard, which ends the server when nobody has
// touched the heartbeat for too long; the next one reads why.
func TestGuardOutlivesTheTuner(t *testing.T) {
	t.Parallel()
	log, marker := filepath.Join(t.TempDir(), "log"), hosttest.NewMarker()
	tuner := exec.Command(os.Args[0], "guarded-tuner", log, marker)
	tuner.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := tuner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := tuner.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	pid, _ := strconv.Atoi(strings.Fields(line + " ?")[0])
	if err != nil || pid == 0 {
		t.Fatalf("%q, %v", line, err)
	}
	time.Sleep(2 * time.Second) // longer than the absence: it is alive, and touches the file
	l := guardedHost(os.Args[0])
	if found, err := l.Find(t.Context(), marker); err != nil || len(found) != 1 || found[0].ID().PID != pid {
		t.Fatalf("while the tuner lives: %d, %v", len(found), err)
	}
	if err := syscall.Kill(-tuner.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = tuner.Wait()
	v, err := host.LeftGuard(t.Context(), log)
	if err != nil || v == nil || v.Reason != host.GuardTunerGone || v.PID != pid {
		t.Errorf("%+v, %v", v, err)
	}
	if found, err := l.Find(t.Context(), marker); err != nil || len(found) != 0 {
		t.Errorf("left: %d, %v", len(found), err)
	}
}

// TestGuardOfATunerThatDiedBetween: it had no time to name the process, so the guard finds it by its marker; where
// nothing was started the guard ends.
func TestGuardOfATunerThatDiedBetween(t *testing.T) {
	t.Parallel()
	for _, started := range []bool{true, false} {
		t.Run(fmt.Sprintf("started %v", started), func(t *testing.T) {
			t.Parallel()
			dir, marker := t.TempDir(), hosttest.NewMarker()
			guard := exec.Command(os.Args[0], "guard-job")
			guard.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			in, err := guard.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := guard.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := guard.Start(); err != nil {
				t.Fatal(err)
			}
			job := map[string]any{"limits": host.GuardLimits{MinFree: -1, Absence: 500 * time.Millisecond}, "marker": marker, "folder": dir, "now": time.Now(), "scale": 1}
			if err := json.NewEncoder(in).Encode(job); err != nil {
				t.Fatal(err)
			}
			answers := bufio.NewReader(out)
			if line, err := answers.ReadString('\n'); err != nil || line != "{}\n" {
				t.Fatalf("%q, %v", line, err)
			}
			var p host.Process
			if started {
				if p, err = host.NewLocal(host.LocalOptions{}).Start(t.Context(), host.Command{Argv: []string{"sleep", "60"}, Marker: marker}); err != nil {
					t.Fatal(err)
				}
			}
			if err := in.Close(); err != nil {
				t.Fatal(err)
			}
			line, _ := answers.ReadString('\n')
			err = guard.Wait()
			if !started {
				if err == nil || !strings.Contains(line, "nothing was started") {
					t.Errorf("%q, %v", line, err)
				}
				return
			}
			hosttest.Wait(t, p)
			if v, read := host.ReadGuardVerdict(filepath.Join(dir, "guard")); err != nil || read != nil || v.Reason != host.GuardTunerGone {
				t.Errorf("%+v, %v, %v", v, err, read)
			}
		})
	}
}

// TestGuardThatWasKilled: it is told that nobody watched.
func TestGuardThatWasKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, err := guardedHost(os.Args[0]).Start(t.Context(), host.Command{
		Argv: []string{"sleep", "60"}, LogPath: filepath.Join(dir, "log"), Marker: hosttest.NewMarker(), Guard: &host.GuardLimits{MinFree: -1},
	})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := verdictOf(t, p); v != nil || err != nil {
		t.Errorf("while it runs: %+v, %v", v, err)
	}
	guards := guardsIn(t, dir)
	if len(guards) != 1 {
		t.Fatalf("%d guards", len(guards))
	}
	if err := syscall.Kill(guards[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if v, err := verdictOf(t, p); err == nil || v != nil || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("%+v, %v", v, err)
	}
}

// guardsIn lists the guards with an open file in a folder.
func guardsIn(t *testing.T, dir string) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, file := range files {
		if to, err := os.Readlink(file); err != nil || to != filepath.Join(dir, "log.guard", "lock") {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(file, "/")[2])
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}
