package host_test

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"sgtune/host"
)

// TestGiveUp: an agent that is frozen, as behind a cut link, is waited for until a person gives up; then all that waits ends
// at once, and nothing is asked any more. What runs there lives.
func TestGiveUp(t *testing.T) {
	t.Parallel()
	f := remote(t)
	r, ok := f.Host.(*host.Remote)
	if !ok {
		t.Fatalf("%T", f.Host)
	}
	if silence, why := r.Silent(); silence != 0 || why != "" {
		t.Errorf("before the first connection: %s, %q", silence, why)
	}
	p, err := r.Start(t.Context(), host.Command{Argv: []string{"sleep", "60"}, Marker: f.Marker}) // stopped by the next one
	if err != nil {
		t.Fatal(err)
	}
	frozen := agents(t, f.Dir, "serve")
	if len(frozen) != 1 {
		t.Fatalf("%d agents", len(frozen))
	}
	if err := syscall.Kill(frozen[0], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(frozen[0], syscall.SIGCONT) })
	if silence, _ := r.Silent(); silence != 0 {
		t.Errorf("heard a moment ago: %s", silence)
	}
	found, stopped := make(chan error, 1), make(chan error, 1)
	go func() { _, err := r.Find(t.Context(), f.Marker); found <- err }()
	go func() { stopped <- p.Stop(t.Context(), 0) }()
	select {
	case err := <-found:
		t.Fatalf("a frozen agent answered: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	if !testing.Short() {
		time.Sleep(9 * time.Second)
		if silence, why := r.Silent(); silence < 8*time.Second || why == "" {
			t.Errorf("silent for %s, %q", silence, why)
		}
	}
	r.GiveUp()
	for name, ended := range map[string]chan error{"find": found, "stop": stopped} {
		select {
		case err := <-ended:
			if !errors.Is(err, host.ErrGivenUp) {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(3 * time.Second):
			t.Errorf("%s still waits", name)
		}
	}
	if _, err := r.Usage(t.Context()); !errors.Is(err, host.ErrGivenUp) {
		t.Errorf("asked afterwards: %v", err)
	}
	if len(living(t, p.ID().PID)) != 1 {
		t.Error("the process did not live on")
	}
	next := newRemote(f.Dir)
	defer next.Close()
	q, err := next.Attach(t.Context(), p.ID())
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Stop(t.Context(), 0); err != nil {
		t.Error(err)
	}
}

// living are the processes of a number that live.
func living(t *testing.T, pid int) []int {
	t.Helper()
	if syscall.Kill(pid, 0) != nil {
		return nil
	}
	return []int{pid}
}
