package host_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sgtune/host"
	"sgtune/internal/hosttest"
)

// lookAfter is KeepGuarded.
func lookAfter(t *testing.T, p host.Process) (string, error) {
	t.Helper()
	g, ok := p.(interface {
		KeepGuarded(ctx context.Context) (string, error)
	})
	if !ok {
		t.Fatalf("%T does not look after its guard", p)
	}
	return g.KeepGuarded(t.Context())
}

// lookUntil is lookAfter until it tells something: a killed process takes a moment to be gone.
func lookUntil(t *testing.T, p host.Process) (lost string, err error) {
	t.Helper()
	for range 500 {
		if lost, err = lookAfter(t, p); lost != "" || err != nil {
			return lost, err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return lost, err
}

// kill sends a signal to the only process of a list.
func kill(t *testing.T, pids []int, sig syscall.Signal) int {
	t.Helper()
	if len(pids) != 1 {
		t.Fatalf("%d processes, want 1", len(pids))
	}
	if err := syscall.Kill(pids[0], sig); err != nil {
		t.Fatal(err)
	}
	return pids[0]
}

// TestGuardIsReplaced: another guard takes over from one that was killed. It counts the time from the beginning, and goes
// on with the evidence; so it does when the first had written a decision and died before the kill.
func TestGuardIsReplaced(t *testing.T) {
	t.Parallel()
	for _, decided := range []bool{false, true} {
		dir := t.TempDir()
		log, evidence := filepath.Join(dir, "log"), filepath.Join(dir, "evidence.jsonl")
		begin := time.Now()
		p, err := guardedHost(os.Args[0]).Start(t.Context(), host.Command{
			Argv: []string{"sleep", "60"}, LogPath: log, Marker: hosttest.NewMarker(),
			Guard: &host.GuardLimits{MinFree: -1, TimeLimit: 2500 * time.Millisecond, Evidence: evidence},
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(200 * time.Millisecond)
		if lost, err := lookAfter(t, p); lost != "" || err != nil {
			t.Errorf("as long as it lives: %q, %v", lost, err)
		}
		first := kill(t, guardsIn(t, dir), syscall.SIGKILL)
		if decided {
			if err := os.WriteFile(filepath.Join(dir, "log.guard", "guard"), []byte(`{"reason": "memory_available"}`), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		noGuard(t, dir)
		before := lines(t, evidence)
		if lost, err := lookUntil(t, p); err != nil || !strings.Contains(lost, "has died; another one watches it now") {
			t.Errorf("%q, %v", lost, err)
		}
		if now := guardsIn(t, dir); len(now) != 1 || now[0] == first {
			t.Errorf("guards %v after %d", now, first)
		}
		if lost, err := lookAfter(t, p); lost != "" || err != nil {
			t.Errorf("the second lives: %q, %v", lost, err)
		}
		hosttest.Wait(t, p)
		if ran := time.Since(begin); ran < 2*time.Second || ran > 20*time.Second {
			t.Errorf("it was ended after %s", ran)
		}
		v, err := verdictOf(t, p)
		if err != nil || v == nil || v.Reason != host.GuardTimeLimit || v.Started.Sub(begin) > time.Second || v.Ended.IsZero() {
			t.Errorf("%+v, %v", v, err)
		}
		if after := lines(t, evidence); after <= before || before < 1 {
			t.Errorf("%d lines of evidence, then %d", before, after)
		}
		if lost, err := lookAfter(t, p); lost != "" || err != nil {
			t.Errorf("when all is over: %q, %v", lost, err)
		}
	}
}

func lines(t *testing.T, path string) int {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(b, []byte("\n"))
}

// TestGuardIsStopped: one that got SIGSTOP goes on.
func TestGuardIsStopped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, err := guardedHost(os.Args[0]).Start(t.Context(), host.Command{
		Argv: []string{"sleep", "60"}, LogPath: filepath.Join(dir, "log"), Marker: hosttest.NewMarker(), Guard: &host.GuardLimits{MinFree: -1, TimeLimit: time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	first := kill(t, guardsIn(t, dir), syscall.SIGSTOP)
	if lost, err := lookUntil(t, p); err != nil || !strings.Contains(lost, "was stopped by a signal and goes on") {
		t.Errorf("%q, %v", lost, err)
	}
	if now := guardsIn(t, dir); len(now) != 1 || now[0] != first {
		t.Errorf("guards %v, the first was %d", now, first)
	}
	hosttest.Wait(t, p)
	if v, err := verdictOf(t, p); err != nil || v == nil || v.Reason != host.GuardTimeLimit {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestGuardCannotBeReplaced: it is told, and the process is left to its caller.
func TestGuardCannotBeReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program, broken := filepath.Join(dir, "guard.sh"), filepath.Join(dir, "broken")
	if err := os.WriteFile(program, []byte("#!/bin/sh\ntest ! -e "+broken+" || { echo no more processes >&2; exit 4; }\nexec "+os.Args[0]+" guard-job\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	p, err := host.NewLocal(host.LocalOptions{Guard: []string{program}}).Start(t.Context(), host.Command{
		Argv: []string{"sleep", "60"}, LogPath: filepath.Join(dir, "log"), Marker: hosttest.NewMarker(), Guard: &host.GuardLimits{MinFree: -1},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(broken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	kill(t, guardsIn(t, dir), syscall.SIGKILL)
	noGuard(t, dir)
	for range 2 {
		lost, err := lookUntil(t, p)
		if lost != "" || !errors.Is(err, host.ErrUnguarded) || !strings.Contains(err.Error(), "no more processes") {
			t.Errorf("%q, %v", lost, err)
		}
	}
	if err := p.Stop(t.Context(), 0); err != nil {
		t.Error(err)
	}
	if lost, err := lookAfter(t, p); lost != "" || err != nil {
		t.Errorf("when it is over: %q, %v", lost, err)
	}
}

// TestKeeperIsReplaced: on a machine over a link the keeper is the guard. Of one that was killed the status is lost, but
// not the watch; one that was stopped goes on.
func TestKeeperIsReplaced(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		sig   syscall.Signal
		want  string
		known bool
	}{
		{"killed", syscall.SIGKILL, "has died; another one watches it now", false},
		{"stopped", syscall.SIGSTOP, "was stopped by a signal and goes on", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := remote(t)
			p, err := f.Host.Start(t.Context(), host.Command{
				Argv: []string{"sleep", "60"}, Marker: f.Marker, Guard: &host.GuardLimits{MinFree: -1, TimeLimit: 2 * time.Second},
			})
			if err != nil {
				t.Fatal(err)
			}
			if lost, err := lookAfter(t, p); lost != "" || err != nil {
				t.Errorf("as long as it lives: %q, %v", lost, err)
			}
			kill(t, agents(t, f.Dir, "keep"), c.sig)
			if lost, err := lookUntil(t, p); err != nil || !strings.Contains(lost, c.want) {
				t.Errorf("%q, %v", lost, err)
			}
			if n := len(agents(t, f.Dir, "keep")); n != 1 {
				t.Errorf("%d keepers", n)
			}
			if lost, err := lookAfter(t, p); lost != "" || err != nil {
				t.Errorf("afterwards: %q, %v", lost, err)
			}
			if e := hosttest.Wait(t, p); e.Known != c.known {
				t.Errorf("%+v", e)
			}
			if v, err := verdictOf(t, p); err != nil || v == nil || v.Reason != host.GuardTimeLimit {
				t.Errorf("%+v, %v", v, err)
			}
			if lost, err := lookAfter(t, p); lost != "" || err != nil {
				t.Errorf("when all is over: %q, %v", lost, err)
			}
			if err := host.Forget(t.Context(), p); err != nil {
				t.Error(err)
			}
		})
	}
}

// noGuard waits until a killed guard is gone.
func noGuard(t *testing.T, dir string) {
	t.Helper()
	for range 500 {
		if len(guardsIn(t, dir)) == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("a guard that was killed is there after 5 s")
}
