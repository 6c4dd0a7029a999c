package host_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sgtune/host"
)

// settler is a host that servers can be left running on.
type settler interface {
	Settle(ctx context.Context, s host.ResidentSpec) (host.Resident, error)
	Residents(ctx context.Context) ([]host.Resident, error)
	Dismiss(ctx context.Context, name string) error
}

// TestResident: what stays is started again when it dies, with nothing left of the one before, and goes with its keeper.
func TestResident(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(dir string) settler{
		"local":     func(dir string) settler { return host.NewLocal(host.LocalOptions{StateDir: dir}) },
		"simulated": func(dir string) settler { return host.NewSimulated(host.SimulatedOptions{Dir: dir}) },
		"remote":    func(dir string) settler { return newRemote(dir) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			h := make(dir)
			if r, ok := h.(*host.Remote); ok {
				defer func() { _ = r.Close() }()
			}
			spec := host.ResidentSpec{
				Name: "night", Port: 30000, Secrets: []string{"opensesame"}, Keeper: []string{os.Args[0], "hosttest-agent", dir, "stay"},
				Command: host.Command{Argv: []string{"sh", "-c", `echo "it says $WORD"; setsid sleep 100 & exec sleep 200`, "a 'word' \n of \xff more"}, Env: map[string]string{"WORD": "opensesame"}},
			}
			r, err := h.Settle(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := h.Dismiss(context.WithoutCancel(t.Context()), "night"); err != nil {
					t.Error(err)
				}
			}()
			r = awaitResident(t, h, func(r host.Resident) bool { return len(r.PIDs) == 2 && r.Tail != "" })
			if r.Tail != "it says ***\n" || !r.Kept || r.Starts != 1 || r.Port != 30000 {
				t.Errorf("%+v", r)
			}
			private(t, r.Folder)

			if err := syscall.Kill(r.Server.PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			again := awaitResident(t, h, func(now host.Resident) bool {
				return now.Starts == 2 && len(now.PIDs) == 2 && now.Server.PID > 0
			})
			for _, pid := range again.PIDs {
				for _, old := range r.PIDs {
					if pid == old {
						t.Errorf("%d is left of the server before", pid)
					}
				}
			}
			if same, err := h.Settle(t.Context(), spec); err != nil || same.Server.PID != again.Server.PID {
				t.Errorf("the same again: %+v, %v", same, err)
			}
			other := spec
			other.Command.Argv = []string{"sleep", "1"}
			if _, err := h.Settle(t.Context(), other); err == nil || !strings.Contains(err.Error(), "still there") {
				t.Errorf("another one of the name: %v", err)
			}
			// A keeper that is killed takes its server with it; what its children leave is named, and swept.
			if err := syscall.Kill(again.Keeper.PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			orphan := awaitResident(t, h, func(now host.Resident) bool { return !now.Kept && now.Server.PID == 0 })
			if len(orphan.PIDs) != 1 || !strings.HasPrefix(orphan.Stop(), "kill -9 ") {
				t.Errorf("left %+v, to be stopped by %s", orphan, orphan.Stop())
			}
			if err := h.Dismiss(t.Context(), "night"); err != nil {
				t.Error(err)
			}
			if list, err := h.Residents(t.Context()); err != nil || len(list) > 0 {
				t.Errorf("left %+v, %v", list, err)
			}
		})
	}
}

// TestResidentOutlivesItsLink: the agent and its connection go, the server stays.
func TestResidentOutlivesItsLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := newRemote(dir)
	r, err := first.Settle(t.Context(), host.ResidentSpec{Name: "night", Command: host.Command{Argv: []string{"sleep", "300"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(r.Keeper.PID, syscall.SIGHUP); err != nil { // a logout
		t.Fatal(err)
	}
	second := newRemote(dir)
	defer func() { _ = second.Close() }()
	now := awaitResident(t, second, func(host.Resident) bool { return true })
	if now.Server.PID != r.Server.PID || now.Server.StartTicks != r.Server.StartTicks || now.Starts != 1 {
		t.Errorf("it was %+v and is %+v", r, now)
	}
	if err := second.Dismiss(t.Context(), "night"); err != nil {
		t.Error(err)
	}
}

func awaitResident(t *testing.T, h settler, is func(host.Resident) bool) host.Resident {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		list, err := h.Residents(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 1 && is(list[0]) {
			return list[0]
		}
		if time.Since(begin) > 20*time.Second {
			t.Fatalf("never so: %+v", list)
		}
	}
}

// private fails for a folder that others may read: the environment of the server is in it.
func private(t *testing.T, dir string) {
	t.Helper()
	for _, path := range []string{dir, filepath.Join(dir, "order"), filepath.Join(dir, "server.log")} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", filepath.Base(path), info.Mode(), err)
		}
	}
}
