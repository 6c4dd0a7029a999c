package host_test

import (
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

// A lease is lost by silence only, and who lost it starts nothing any more.
func TestLeaseBySilence(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for seconds of silence: make test-rest runs it")
	}
	t.Parallel()
	dir := t.TempDir()
	gone := filepath.Join(dir, "gone")
	link := hosttest.AgentLink(dir)
	link.Argv = append([]string{"sh", "-c", "[ ! -e " + gone + ` ] && exec "$@"; echo cut >&2`, "sh"}, link.Argv...)
	first := host.NewRemote(host.RemoteOptions{Link: link, Patience: 2 * time.Second})
	defer first.Close()
	release, err := first.Lease(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	second := newRemote(dir)
	defer second.Close()
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(300 * time.Millisecond) {
		for _, pid := range agents(t, dir, "serve") { // a bad link, but one that comes back
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if _, err := second.Lease(t.Context(), "two"); !errors.Is(err, host.ErrLeased) || !strings.Contains(err.Error(), `"one" (pid`) {
			t.Fatalf("taken from a sgtune that is heard: %v", err)
		}
	}
	if p, err := first.Start(t.Context(), host.Command{Argv: []string{"true"}}); err != nil {
		t.Errorf("the holder cannot start: %v", err)
	} else {
		hosttest.Stop(t, p, 0)
	}

	if err := os.WriteFile(gone, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, pid := range agents(t, dir, "serve") {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	// The second sgtune's link is another one and still there.
	var taken func() error
	begin := time.Now()
	for taken == nil && time.Since(begin) < 20*time.Second {
		if taken, err = second.Lease(t.Context(), "two"); err != nil {
			time.Sleep(50 * time.Millisecond)
		}
	}
	if took := time.Since(begin); taken == nil || took < time.Second {
		t.Fatalf("lease taken after %s: %v", took, err)
	}
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	_, err = first.Start(t.Context(), host.Command{Argv: []string{"true"}})
	if !errors.Is(err, host.ErrLeased) || !strings.Contains(err.Error(), `"two"`) {
		t.Errorf("start without the lease: %v", err)
	}
	if err := release(); err != nil { // not ours any more: nothing to give back, and nobody else's is
		t.Error(err)
	}
	if _, err := newRemote(dir).Lease(t.Context(), "three"); !errors.Is(err, host.ErrLeased) {
		t.Errorf("the other's lease was given back: %v", err)
	}
	if err := taken(); err != nil {
		t.Error(err)
	}
}

// A lease whose holder was killed is taken again at the next renewal; until then nothing is started.
func TestLeaseComesBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := host.NewRemote(host.RemoteOptions{Link: hosttest.AgentLink(dir), Patience: 2 * time.Second})
	defer r.Close()
	release, err := r.Lease(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	holders := agents(t, dir, "hold")
	if len(holders) != 1 || syscall.Kill(holders[0], syscall.SIGKILL) != nil {
		t.Fatalf("holders %v", holders)
	}
	back := func() bool {
		now := agents(t, dir, "hold")
		return len(now) == 1 && now[0] != holders[0]
	}
	for begin := time.Now(); !back(); time.Sleep(20 * time.Millisecond) {
		_, err := r.Start(t.Context(), host.Command{Argv: []string{"true"}})
		if err != nil && (!errors.Is(err, host.ErrLeased) || !strings.Contains(err.Error(), "is lost")) || time.Since(begin) > 20*time.Second {
			t.Fatalf("without a holder: %v", err)
		}
	}
	p, err := r.Start(t.Context(), host.Command{Argv: []string{"true"}})
	for begin := time.Now(); err != nil && time.Since(begin) < 10*time.Second; time.Sleep(20 * time.Millisecond) { // it is about to take it
		p, err = r.Start(t.Context(), host.Command{Argv: []string{"true"}})
	}
	if err != nil {
		t.Fatal(err)
	}
	hosttest.Stop(t, p, 0)
	if err := release(); err != nil {
		t.Error(err)
	}
	if left := agents(t, dir, "hold"); len(left) != 0 {
		t.Errorf("holders %v are left", left)
	}
}

// The machine's own sgtune and one from elsewhere exclude each other.
func TestLeaseIsOneForBoth(t *testing.T) {
	t.Parallel()
	f := remote(t)
	local := host.NewLocal(host.LocalOptions{StateDir: f.Dir})
	release, err := local.Lease(t.Context(), "local night")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Lease(t.Context(), "far night"); !errors.Is(err, host.ErrLeased) || !strings.Contains(err.Error(), `"local night"`) {
		t.Errorf("%v", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if release, err = f.Lease(t.Context(), "far night"); err != nil {
		t.Fatal(err)
	}
	if _, err := local.Lease(t.Context(), "local night"); !errors.Is(err, host.ErrLeased) || !strings.Contains(err.Error(), `"far night"`) {
		t.Errorf("%v", err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Join(f.Dir, "work", "lease")); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
