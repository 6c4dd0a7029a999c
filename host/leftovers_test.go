package host_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sgtune/host"
	"sgtune/internal/hosttest"
)

// TestLeftoversOfTheLiving: the processes of a trial whose sgtune lives name it, those in sessions of their own too, and
// nobody once it is dead. It runs alone: a test that holds a lease would look like such a sgtune to its orphans.
func TestLeftoversOfTheLiving(t *testing.T) {
	f := newFixture(newHost("local", t.TempDir()), "local", t.TempDir())
	cmd := exec.CommandContext(t.Context(), os.Args[0], "local", f.Dir, filepath.Join(t.TempDir(), "log"), f.Marker)
	cmd.Env = append(os.Environ(), hosttest.HelperEnv+"=controller")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 100)); err != nil { // the tree is up
		t.Fatal(err)
	}
	l := f.Host.(*host.Local)
	ours := func() []host.Leftover {
		list, err := l.Leftovers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(list, func(p host.Leftover) bool { return p.ID.Marker != f.Marker })
	}
	living := ours()
	for _, p := range living {
		if !strings.HasPrefix(p.Owner, "pid ") || p.Memory <= 0 || p.Age < 0 || p.Age > time.Minute || len(p.ID.Argv) == 0 {
			t.Errorf("%+v", p)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	orphans := ours()
	if len(living) != 3 || len(orphans) != 3 {
		t.Errorf("%d, then %d of 3", len(living), len(orphans))
	}
	for _, p := range orphans {
		if p.Owner != "" {
			t.Errorf("of a dead sgtune: %+v", p)
		}
	}
	list, err := l.Find(t.Context(), f.Marker)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		hosttest.Stop(t, p, 0)
	}
}

// TestLeftoverPorts: a process names the ports on which it listens.
func TestLeftoverPorts(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"local", "remote"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := hosttest.NewFixture(t, suite(kind))
			p := f.Helper(t, "listen")
			port := strings.TrimSpace(hosttest.FirstLine(t, p))
			list, err := f.Host.(interface {
				Leftovers(ctx context.Context) ([]host.Leftover, error)
			}).Leftovers(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(list, func(o host.Leftover) bool { return o.ID.PID == p.ID().PID })
			if i < 0 || len(list[i].Ports) != 1 || strconv.Itoa(list[i].Ports[0]) != port {
				t.Errorf("port %s: %+v", port, list)
			}
		})
	}
}
