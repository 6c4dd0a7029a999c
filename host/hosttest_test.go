package host_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"sgtune/host"
)

// The conformance suite: every kind of host must pass it.

func TestLocalConforms(t *testing.T)     { t.Parallel(); conform(t, "local") }
func TestSimulatedConforms(t *testing.T) { t.Parallel(); conform(t, "simulated") }

func conform(t *testing.T, kind string) {
	for _, c := range []struct {
		name string
		test func(*testing.T, fixture)
	}{
		{"exit facts", exitFacts},
		{"a program that does not exist", noProgram},
		{"argv arrives intact", argvIntact},
		{"environment", environment},
		{"log by offset", logOffset},
		{"log is appended and starts at this process", logAppend},
		{"started process is found by its marker", foundByMarker},
		{"renamed process is found by its sister", renamed},
		{"sgtune itself is never found", neverSelf},
		{"grace lets it end by itself", graceful},
		{"stop ends the group and marked strangers", stopTree},
		{"TERM ignored then killed", termIgnored},
		{"children of a dead leader", orphans},
		{"left by a dead sgtune", deadController},
		{"stop is bounded by its context", stopBounded},
		{"stop twice", stopTwice},
		{"identity", identity},
		{"port", port},
		{"lease is exclusive", leaseExclusive},
		{"usage", usage},
		{"run", run},
		{"run too long", runTooLong},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c.test(t, fixture{Host: newHost(kind, dir), kind: kind, dir: dir, marker: newMarker()})
		})
	}
}

var markers atomic.Int64

func newMarker() string { return fmt.Sprintf("hosttest-%d-%d", os.Getpid(), markers.Add(1)) }

type fixture struct {
	host.Host
	kind, dir, marker string
}

// start starts argv, and sees to it that nothing of it outlives the test.
func (f fixture) start(t *testing.T, c host.Command) host.Process {
	t.Helper()
	if c.LogPath == "" {
		c.LogPath = filepath.Join(t.TempDir(), "log")
	}
	p, err := f.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, p, 0) })
	return p
}

func (f fixture) helper(t *testing.T, name string, args ...string) host.Process {
	t.Helper()
	return f.start(t, host.Command{
		Argv: append([]string{os.Args[0]}, args...), Env: map[string]string{helperEnv: name}, Marker: f.marker,
	})
}

func (f fixture) shell(t *testing.T, script string) host.Process {
	t.Helper()
	return f.start(t, host.Command{Argv: []string{"sh", "-c", script}, Marker: f.marker})
}

func stop(t *testing.T, p host.Process, grace time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := p.Stop(ctx, grace); err != nil {
		t.Error(err)
	}
}

func wait(t *testing.T, p host.Process) host.Exit {
	t.Helper()
	select {
	case <-p.Done():
		return p.Exit()
	case <-time.After(20 * time.Second):
		t.Fatal("process did not end")
		return host.Exit{}
	}
}

// firstLine waits for the first complete line of the log.
func firstLine(t *testing.T, p host.Process) string {
	t.Helper()
	for range 2000 {
		b, err := p.Log(t.Context(), 0, 64<<10)
		if err != nil {
			t.Fatal(err)
		}
		if line, _, ok := bytes.Cut(b, []byte("\n")); ok {
			return string(line)
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("nothing in the log")
	return ""
}

// living lists those of the pids that are neither ended nor zombies.
func living(pids ...int) []int {
	return slices.DeleteFunc(slices.Clone(pids), func(pid int) bool {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return err != nil || bytes.Contains(b, []byte(") Z "))
	})
}
