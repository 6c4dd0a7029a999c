package hosttest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"sgtune/host"
)

// Suite is one kind of host under test.
type Suite struct {
	Kind string // a key of notApplicable
	// New makes a host in a folder; two with one folder are one host, with the BootIDFile and the Clock of that folder.
	// Those that are io.Closers are closed by the test they were made for.
	New func(dir string) host.Host
	// Kept says that processes have a keeper on the host: also found ones have a log and an exit status. It keeps them in
	// the folder "work" of the host's folder.
	Kept bool
	// Elsewhere says that sgtune is not a process of the host, although in this test it runs on the same machine.
	Elsewhere bool
	// Way is what lies between sgtune and the host; the zero value where nothing does.
	Way Way
	// Tell is what a person would ask for after a failure; nil = nothing.
	Tell func() string
}

// Conform runs the conformance suite, which every kind of host must pass.
func Conform(t *testing.T, s Suite) {
	for _, c := range slices.Concat(faults, details) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			Watch(t)
			if why, ok := notApplicable[s.Kind][c.name]; ok {
				t.Skip("n/a: " + why)
			}
			if c.space != shared && !Alone() {
				runAlone(t, c.space)
				return
			}
			c.test(t, newFixture(t, s, c.before))
		})
	}
}

var markers atomic.Int64

// NewMarker is a marker no other test has.
func NewMarker() string { return fmt.Sprintf("hosttest-%d-%d", os.Getpid(), markers.Add(1)) }

// Fixture is a host in a folder of one test.
type Fixture struct {
	host.Host
	Suite
	Dir, Marker string
}

// NewFixture makes a host for a test.
func NewFixture(t *testing.T, s Suite) Fixture { t.Helper(); return newFixture(t, s, nil) }

func newFixture(t *testing.T, s Suite, before func(*testing.T, string)) Fixture {
	t.Helper()
	f := Fixture{Suite: s, Dir: t.TempDir(), Marker: NewMarker()}
	if s.Tell != nil {
		t.Cleanup(func() {
			if t.Failed() {
				t.Log(s.Tell())
			}
		})
	}
	if s.Kept {
		t.Cleanup(func() { removeKept(t, f.Dir) })
	}
	if before != nil {
		before(t, f.Dir)
	}
	f.Host = f.open(t, f.Dir)
	return f
}

// removeKept removes a folder in which keepers may still write a last word about groups that have just ended.
func removeKept(t *testing.T, dir string) {
	t.Helper()
	err := os.RemoveAll(dir)
	for end := time.Now().Add(patience); err != nil && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		err = os.RemoveAll(dir)
	}
	if err != nil {
		t.Error(err)
	}
}

// open makes a host and sees to it that it is closed.
func (f Fixture) open(t *testing.T, dir string) host.Host {
	t.Helper()
	h := f.New(dir)
	if c, ok := h.(io.Closer); ok {
		t.Cleanup(func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return h
}

// Launch starts c, and sees to it that nothing of it outlives the test.
func (f Fixture) Launch(t *testing.T, c host.Command) host.Process {
	t.Helper()
	if c.LogPath == "" {
		c.LogPath = filepath.Join(t.TempDir(), "log")
	}
	p, err := f.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Stop(t, p, 0) })
	return p
}

// Helper starts one of the helper programs.
func (f Fixture) Helper(t *testing.T, name string, args ...string) host.Process {
	t.Helper()
	return f.Launch(t, host.Command{
		Argv: append([]string{os.Args[0]}, args...), Env: map[string]string{HelperEnv: name}, Marker: f.Marker,
	})
}

// Shell starts a script.
func (f Fixture) Shell(t *testing.T, script string) host.Process {
	t.Helper()
	return f.Launch(t, host.Command{Argv: []string{"sh", "-c", script}, Marker: f.Marker})
}

// patience is how long the suite waits for what comes within seconds where all is well: that a machine is busy is no failure.
const patience = time.Minute

// Stop stops a process; an error fails the test.
func Stop(t *testing.T, p host.Process, grace time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := p.Stop(ctx, grace); err != nil {
		t.Error(err)
	}
}

// Wait waits for the end of a process.
func Wait(t *testing.T, p host.Process) host.Exit {
	t.Helper()
	select {
	case <-p.Done():
		return p.Exit()
	case <-time.After(patience):
		t.Fatalf("process did not end within %s", patience)
		return host.Exit{}
	}
}

// FirstLine waits for the first complete line of the log.
func FirstLine(t *testing.T, p host.Process) string {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		b, err := p.Log(t.Context(), 0, 64<<10)
		if err != nil {
			t.Fatal(err)
		}
		if line, _, ok := bytes.Cut(b, []byte("\n")); ok {
			return string(line)
		}
	}
	t.Fatalf("no line in the log within %s", patience)
	return ""
}

// living lists those of the pids that are neither ended nor zombies.
func living(pids ...int) []int {
	return slices.DeleteFunc(slices.Clone(pids), func(pid int) bool {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return err != nil || bytes.Contains(b, []byte(") Z "))
	})
}
