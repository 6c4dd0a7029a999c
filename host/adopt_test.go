package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sgtune/host"
	"sgtune/internal/hosttest"
)

// orphaned starts a shell with a child, and returns what a sgtune stores of it.
func orphaned(t *testing.T, log string) host.ID {
	t.Helper()
	p, err := host.NewLocal(host.LocalOptions{}).Start(t.Context(), host.Command{
		Argv: []string{"sh", "-c", "trap 'echo asked; exit' TERM; echo hello; sleep 60 & wait"}, LogPath: log, Marker: hosttest.NewMarker(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		last, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := p.Stop(last, 0); err != nil {
			t.Error(err)
		}
	})
	return p.ID()
}

// TestAdopt: a process that is proven to be the one that was stored is followed and stopped as one that was started here.
func TestAdopt(t *testing.T) {
	t.Parallel()
	l := host.NewLocal(host.LocalOptions{})
	log := filepath.Join(t.TempDir(), "log")
	id := orphaned(t, log)
	stored := id
	stored.Argv = nil // the caller's to compare
	p, err := l.Adopt(t.Context(), stored, log, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.ID(); got.PID != id.PID || !slices.Equal(got.Argv, id.Argv) || got.Marker != id.Marker {
		t.Errorf("identity %+v, want %+v", got, id)
	}
	select {
	case <-p.Done():
		t.Fatal("it lives and is done")
	default:
	}
	waitUntil(t, "the process has printed", func() bool {
		b, err := p.Log(t.Context(), 0, 100)
		return err == nil && string(b) == "hello\n"
	})
	if err := p.Stop(t.Context(), 5*time.Second); err != nil {
		t.Fatal(err)
	}
	if exit := p.Exit(); exit.Known || exit.At.IsZero() {
		t.Errorf("exit %+v: nobody can know it", exit)
	}
	if b, err := p.Log(t.Context(), 6, 100); err != nil || string(b) != "asked\n" {
		t.Errorf("it was not asked to end: %q, %v", b, err)
	}
	if left, err := l.Find(t.Context(), id.Marker); err != nil || len(left) > 0 {
		t.Errorf("%d processes of its group are left, %v", len(left), err)
	}
}

// TestAdoptNotProven: with one fact of the identity missing or wrong nothing is adopted, and the process goes on.
func TestAdoptNotProven(t *testing.T) {
	t.Parallel()
	l := host.NewLocal(host.LocalOptions{})
	log := filepath.Join(t.TempDir(), "log")
	id := orphaned(t, log)
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change func(id *host.ID)
		limits *host.GuardLimits
		want   string // the error
	}{
		{"another boot", func(id *host.ID) { id.BootID = "earlier" }, nil, "started anew"},
		{"no boot", func(id *host.ID) { id.BootID = "" }, nil, "not stored in full"},
		{"pid is gone", func(id *host.ID) { id.PID = gone.Process.Pid }, nil, "is gone"},
		{"pid reused", func(id *host.ID) { id.StartTicks++ }, nil, "was given to another process"},
		{"start not stored", func(id *host.ID) { id.StartTicks = 0 }, nil, "not stored in full"},
		{"another group", func(id *host.ID) { id.PGID = 1 }, nil, "process group"},
		{"another marker", func(id *host.ID) { id.Marker += "1" }, nil, "does not carry the trial's marker"},
		{"no marker", func(id *host.ID) { id.Marker = "" }, nil, "not stored in full"},
		{"no guard", func(*host.ID) {}, &host.GuardLimits{}, "no guard: none was started"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wrong := id
			c.change(&wrong)
			sentinel := host.ErrNotProven
			if c.limits != nil {
				sentinel = host.ErrUnguarded
			}
			if _, err := l.Adopt(t.Context(), wrong, log, c.limits); !errors.Is(err, sentinel) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
	if _, err := l.Adopt(t.Context(), id, log+".moved", nil); !errors.Is(err, host.ErrNotProven) || !strings.Contains(err.Error(), "its log is not where it was") {
		t.Errorf("without its log: %v", err)
	}
	other := host.NewSimulated(host.SimulatedOptions{Dir: t.TempDir()})
	if _, err := other.Adopt(t.Context(), id, log, nil); !errors.Is(err, host.ErrNotProven) || !strings.Contains(err.Error(), "another host") {
		t.Errorf("of another host: %v", err)
	}
	if err := syscall.Kill(id.PID, 0); err != nil {
		t.Errorf("the process: %v", err)
	}
}

// TestAdoptGuard: the guard of a dead sgtune hears the one that adopts, beyond its limit of absence; one that is gone
// proves nothing.
func TestAdoptGuard(t *testing.T) {
	t.Parallel()
	l := guardedHost(os.Args[0])
	log, marker := filepath.Join(t.TempDir(), "log"), hosttest.NewMarker()
	limits := &host.GuardLimits{MinFree: -1, Absence: 1500 * time.Millisecond} // as guarded-tuner has them
	tuner := exec.Command(os.Args[0], "guarded-tuner", log, marker)
	if err := tuner.Start(); err != nil {
		t.Fatal(err)
	}
	var id host.ID
	waitUntil(t, "the sleeper is there", func() bool {
		list, err := l.Find(t.Context(), marker)
		if err == nil && len(list) == 1 && slices.Equal(list[0].ID().Argv, []string{"sleep", "60"}) {
			id = list[0].ID()
		}
		return id.PID != 0
	})
	time.Sleep(300 * time.Millisecond) // its guard watches it
	_ = tuner.Process.Kill()
	_ = tuner.Wait()
	p, err := l.Adopt(t.Context(), id, log, limits)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Done():
		v, err := verdictOf(t, p)
		t.Fatalf("its guard did not hear the one that adopted: %+v, %v", v, err)
	case <-time.After(3 * time.Second):
	}
	if err := p.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if v, err := verdictOf(t, p); err != nil || v == nil || v.Reason != host.GuardOver {
		t.Errorf("the guard's verdict: %+v, %v", v, err)
	}
	if _, err := l.Adopt(t.Context(), id, log, limits); !errors.Is(err, host.ErrNotProven) {
		t.Errorf("of a dead process: %v", err)
	}
}

// TestAdoptWithoutItsGuard: a server whose guard was killed is not adopted.
func TestAdoptWithoutItsGuard(t *testing.T) {
	t.Parallel()
	l := guardedHost(os.Args[0])
	log, limits := filepath.Join(t.TempDir(), "log"), &host.GuardLimits{MinFree: -1}
	p, err := l.Start(t.Context(), host.Command{Argv: []string{"sleep", "60"}, LogPath: log, Marker: hosttest.NewMarker(), Guard: limits})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Stop(context.WithoutCancel(t.Context()), 0) }()
	if _, err := l.Adopt(t.Context(), p.ID(), log, limits); err != nil {
		t.Fatalf("while its guard lives: %v", err)
	}
	var guard host.ID
	b, err := os.ReadFile(filepath.Join(log+".guard", "watcher"))
	if err := errors.Join(err, json.Unmarshal(b, &guard), syscall.Kill(guard.PID, syscall.SIGKILL)); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the guard is gone", func() bool {
		_, err = l.Adopt(t.Context(), p.ID(), log, limits)
		return err != nil
	})
	if !errors.Is(err, host.ErrUnguarded) || !strings.Contains(err.Error(), "it is gone") {
		t.Errorf("error %v", err)
	}
}

// waitUntil polls for what must come within seconds.
func waitUntil(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not seen within 10 seconds: %s", what)
		}
	}
}
