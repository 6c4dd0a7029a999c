package host_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sgtune/host"
	"sgtune/internal/hosttest"
)

// remainer is a host that knows what its processes leave.
type remainer interface {
	Remains(ctx context.Context, marker string) ([]host.RemainsOf, error)
	RemoveRemains(ctx context.Context, marker string) ([]host.RemainsOf, error)
}

// scene is a killed server and the files around it.
type scene struct {
	hosttest.Fixture
	made, odd, lent, used, socket, reused string
}

// shm is a path in shared memory that is gone after the test.
func shm(t *testing.T, name string) string {
	t.Helper()
	path := "/dev/shm/" + name
	t.Cleanup(func() { _ = os.Remove(path) })
	return path
}

func newScene(t *testing.T, kind string) scene {
	t.Helper()
	f := hosttest.NewFixture(t, suite(kind))
	dir, err := os.MkdirTemp("", "sg") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := scene{
		Fixture: f,
		made:    shm(t, "psm_"+f.Marker), odd: shm(t, "models_"+f.Marker), lent: shm(t, "psm_lent_"+f.Marker), used: shm(t, "sglang_loads_"+f.Marker+".shm"),
		socket: filepath.Join(dir, "tmpa"), reused: filepath.Join(dir, "tmpb"),
	}
	if err := os.WriteFile(s.lent, []byte("another program's"), 0o600); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond) // starts are told in hundredths of a second
	return s
}

// run starts the server with its files, and kills it.
func (s scene) run(t *testing.T) {
	t.Helper()
	p := s.Launch(t, host.Command{
		Argv: []string{
			os.Args[0], "make=" + s.made, "make=" + s.odd, "open=" + s.lent, "make=" + s.used, "listen=" + s.socket, "listen=" + s.reused,
		},
		Env: map[string]string{hosttest.HelperEnv: "files"}, Marker: s.Marker,
	})
	hosttest.FirstLine(t, p)
	if left := s.remains(t, s.Marker); len(left) != 0 {
		t.Errorf("files of a living server: %+v", left)
	}
	if err := p.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
}

func (s scene) remains(t *testing.T, marker string) []host.RemainsOf {
	t.Helper()
	list, err := s.Host.(remainer).Remains(t.Context(), marker)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func (s scene) remove(t *testing.T, marker string) (removed, left []string) {
	t.Helper()
	list, err := s.Host.(remainer).RemoveRemains(t.Context(), marker)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		if f.Why == "" {
			removed = append(removed, f.Path)
		} else {
			left = append(left, f.Path+": "+f.Why)
		}
	}
	slices.Sort(removed)
	return removed, left
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// TestRemains: shared memory and sockets of a killed server are removed, and nothing of anybody else: neither what was
// there before it, nor what it made under a name of its own, nor what somebody uses, nor what came to a path since.
func TestRemains(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"local", "simulated", "remote"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, kind)
			s.run(t)
			user, err := os.Open(s.used) // a program of somebody else
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(s.reused); err != nil {
				t.Fatal(err)
			}
			ln, err := net.Listen("unix", s.reused)
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()

			shown := s.remains(t, "")
			removed, left := s.remove(t, s.Marker)
			if want := []string{s.made, s.socket}; !slices.Equal(removed, want) || len(shown) != 3 {
				t.Errorf("removed %v, want %v; shown before %+v", removed, want, shown)
			}
			if len(left) != 1 || !strings.HasPrefix(left[0], s.used+": in use by pid") {
				t.Errorf("left: %v", left)
			}
			for path, there := range map[string]bool{s.made: false, s.socket: false, s.odd: true, s.lent: true, s.used: true, s.reused: true} {
				if exists(path) != there {
					t.Errorf("%s exists: %v, want %v", path, !there, there)
				}
			}
			if err := user.Close(); err != nil {
				t.Fatal(err)
			}
			if removed, left := s.remove(t, ""); !slices.Equal(removed, []string{s.used}) || len(left) != 0 {
				t.Errorf("once nobody uses it: removed %v, left %v", removed, left)
			}
			if removed, left := s.remove(t, ""); len(removed)+len(left) != 0 {
				t.Errorf("again: removed %v, left %v", removed, left)
			}
		})
	}
}

// TestRemainsAfterACrash: another sgtune, which has seen nothing of the server, kills what is left of it.
func TestRemainsAfterACrash(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"local", "remote"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, kind)
			p := s.Launch(t, host.Command{
				Argv: []string{os.Args[0], "make=" + s.made, "listen=" + s.socket}, Env: map[string]string{hosttest.HelperEnv: "files"}, Marker: s.Marker,
			})
			hosttest.FirstLine(t, p)
			next := scene{Fixture: hosttest.Fixture{Host: newHost(kind, s.Dir)}}
			if c, ok := next.Host.(*host.Remote); ok {
				defer c.Close()
			}
			list, err := next.Host.Find(t.Context(), s.Marker)
			if err != nil || len(list) != 1 {
				t.Fatal(list, err)
			}
			if err := list[0].Stop(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			if removed, left := next.remove(t, s.Marker); !slices.Equal(removed, []string{s.made, s.socket}) || len(left) != 0 {
				t.Errorf("removed %v, left %v", removed, left)
			}
		})
	}
}
