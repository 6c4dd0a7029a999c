package containers

import (
	"context"
	"fmt"
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

// machine is this machine as a host with a folder of its own.
func machine(t *testing.T) (h *host.Local, c func(words ...string) host.Command) {
	t.Helper()
	need(t)
	dir, marker := t.TempDir(), hosttest.NewMarker()
	h = host.NewLocal(host.LocalOptions{StateDir: dir, Self: hosttest.ContainSelf(dir)})
	t.Cleanup(func() {
		if left := containers(t, marker); left != "" {
			t.Errorf("left: %s", left)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*.containers", "*")); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
	return h, func(words ...string) host.Command {
		return host.Command{
			Argv: append([]string{"/sim"}, words...), Marker: marker, LogPath: filepath.Join(t.TempDir(), "log"),
			Container: &host.Container{Runtime: bed.runtime, Image: image},
		}
	}
}

// containers lists the containers with a marker, any when it is empty.
func containers(t *testing.T, marker string) string {
	t.Helper()
	filter := "label=sgtune.trial"
	if marker != "" {
		filter += "=" + marker
	}
	out, err := exec.Command(bed.runtime, "ps", "-a", "--filter", filter, "--format", "{{.ID}}").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func start(t *testing.T, h host.Host, c host.Command) host.Process {
	t.Helper()
	p, err := h.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hosttest.Stop(t, p, 0) })
	return p
}

func TestExits(t *testing.T) {
	h, c := machine(t)
	for _, x := range []struct {
		words []string
		want  host.Exit
	}{
		{[]string{"exit", "0"}, host.Exit{Known: true}},
		{[]string{"exit", "3"}, host.Exit{Known: true, Code: 3}},
		{[]string{"exit", "137"}, host.Exit{Known: true, Code: -1, Signal: 9}}, // a runtime cannot tell them apart
	} {
		e := hosttest.Wait(t, start(t, h, c(x.words...)))
		if e.At = (time.Time{}); e != x.want {
			t.Errorf("%v: %+v, want %+v", x.words, e, x.want)
		}
	}
}

// TestLog: every line of both streams is there, once.
func TestLog(t *testing.T) {
	h, c := machine(t)
	p := start(t, h, c("lines", "2000"))
	hosttest.Wait(t, p)
	b, err := p.Log(t.Context(), 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	var want []string
	for i := range 2000 {
		want = append(want, fmt.Sprint("line ", i))
	}
	want = append(want, "the rest has no line break")
	slices.Sort(got) // the runtime reads two streams
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%d lines, want %d; first difference in %q", len(got), len(want), got[:min(3, len(got))])
	}
}

func TestStops(t *testing.T) {
	h, c := machine(t)
	p := start(t, h, c("polite"))
	hosttest.FirstLine(t, p)
	hosttest.Stop(t, p, 30*time.Second)
	if e := hosttest.Wait(t, p); e.Code != 5 {
		t.Errorf("%+v", e)
	}
	p = start(t, h, c("stubborn"))
	hosttest.FirstLine(t, p)
	hosttest.Stop(t, p, 500*time.Millisecond)
	if e := hosttest.Wait(t, p); e.Signal != 9 {
		t.Errorf("%+v", e)
	}
}

// TestOutOfMemory: the container's own limit kills, and the exit says so.
func TestOutOfMemory(t *testing.T) {
	h, c := machine(t)
	command := c("eat", "1000")
	command.Container.Args = []string{"--memory", "128m"}
	e := hosttest.Wait(t, start(t, h, command))
	if !e.OOMKilled || e.Signal != 9 {
		t.Errorf("%+v", e)
	}
}

// TestHolderKilled: the container outlives its holder, is found by its label, and is killed and removed.
func TestHolderKilled(t *testing.T) {
	h, c := machine(t)
	command := c("stubborn")
	p := start(t, h, command)
	hosttest.FirstLine(t, p)
	if err := syscall.Kill(-p.ID().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	hosttest.Wait(t, p)
	list, err := h.Find(t.Context(), command.Marker)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(list, func(p host.Process) bool { return p.ID().Container != "" }) {
		t.Errorf("no container among the %d found", len(list))
	}
	for _, p := range list {
		hosttest.Stop(t, p, 0)
	}
	if left := containers(t, command.Marker); left != "" {
		t.Errorf("left: %s", left)
	}
}

// TestNotStarted: an image or a program that is not there is told at once, and the container that was made for it is
// removed.
func TestNotStarted(t *testing.T) {
	h, c := machine(t)
	for name, edit := range map[string]func(*host.Command){
		"image":   func(c *host.Command) { c.Container.Image = "localhost/no-such-image:1" },
		"program": func(c *host.Command) { c.Argv[0] = "/no-such-program" },
	} {
		command := c("exit", "0")
		edit(&command)
		if _, err := h.Start(t.Context(), command); err == nil || !strings.Contains(err.Error(), "no-such-"+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRuntimeAway: the process that follows the log is killed again and again; no line is lost or doubled.
func TestRuntimeAway(t *testing.T) {
	h, c := machine(t)
	p := start(t, h, c("lines", "20000"))
	for range 5 {
		time.Sleep(150 * time.Millisecond)
		followers, _ := exec.Command("pgrep", "-g", fmt.Sprint(p.ID().PID), "-f", "logs -f").Output() // none is fine
		for pid := range strings.FieldsSeq(string(followers)) {
			var n int
			if _, err := fmt.Sscan(pid, &n); err == nil {
				_ = syscall.Kill(n, syscall.SIGKILL)
			}
		}
	}
	hosttest.Wait(t, p)
	count := map[string]int{}
	for offset := int64(0); ; {
		b, err := p.Log(context.Background(), offset, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) == 0 {
			break
		}
		end := strings.LastIndexByte(string(b), '\n') + 1
		if end == 0 {
			end = len(b)
		}
		for line := range strings.Lines(string(b[:end])) {
			count[strings.TrimSpace(line)]++
		}
		offset += int64(end)
	}
	for i := range 20000 {
		if line := fmt.Sprint("line ", i); count[line] != 1 {
			var odd []string
			for l := range count {
				if !slices.Contains(strings.Fields(l), "line") || len(strings.Fields(l)) != 2 {
					odd = append(odd, l)
				}
			}
			t.Fatalf("%q is there %d times, of %d lines; odd ones: %q", line, count[line], len(count), odd)
		}
	}
}
