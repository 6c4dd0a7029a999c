package host_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/host"
	"sgtune/internal/hosttest"
)

const testImage = "localhost/helper:1"

// box is a host with a fake container runtime whose image holds the helper programs and a shell.
type box struct {
	host.Host
	dir, runtime, marker string
	container            host.Container
}

// newBox makes one of a kind, local or remote.
func newBox(t *testing.T, kind string) box {
	t.Helper()
	dir := t.TempDir()
	path, containers, err := hosttest.FakeRuntime(dir, testImage, map[string]string{"/helper": os.Args[0], "sh": "/bin/sh"})
	if err != nil {
		t.Fatal(err)
	}
	b := box{dir: dir, runtime: containers, marker: hosttest.NewMarker(), container: host.Container{Runtime: filepath.Join(path, "docker"), Image: testImage}}
	b.Host = b.open(t, kind)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		for _, p := range b.find(ctx, t) {
			if err := p.Stop(ctx, 0); err != nil {
				t.Error(err)
			}
		}
		if left, _ := filepath.Glob(filepath.Join(containers, "c-*")); len(left) > 0 {
			t.Errorf("containers left: %v", left)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*.containers", "*")); len(left) > 0 {
			t.Errorf("folders left: %v", left)
		}
	})
	return b
}

// eachKind runs a test for a local host and for one behind an agent; the short tests have the local one alone.
func eachKind(t *testing.T, test func(t *testing.T, b box, kind string)) {
	t.Parallel()
	for _, kind := range []string{"local", "remote"} {
		t.Run(kind, func(t *testing.T) {
			if kind == "remote" && testing.Short() {
				t.Skip("a second time over an agent: the long tests do that")
			}
			t.Parallel()
			test(t, newBox(t, kind), kind)
		})
	}
}

func (b box) open(t *testing.T, kind string) host.Host {
	if kind == "remote" {
		r := newRemote(b.dir)
		t.Cleanup(func() { _ = r.Close() })
		return r
	}
	return host.NewLocal(host.LocalOptions{StateDir: b.dir, Self: hosttest.ContainSelf(b.dir)})
}

func (b box) find(ctx context.Context, t *testing.T) []host.Process {
	t.Helper()
	list, err := b.Find(ctx, b.marker)
	if err != nil {
		t.Error(err)
	}
	return list
}

func (b box) command(argv ...string) host.Command {
	return host.Command{Argv: argv, Marker: b.marker, Container: &b.container}
}

func (b box) start(t *testing.T, c host.Command) host.Process {
	t.Helper()
	if c.LogPath == "" {
		c.LogPath = filepath.Join(t.TempDir(), "log")
	}
	p, err := b.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hosttest.Stop(t, p, 0) })
	return p
}

func (b box) helper(t *testing.T, name string) host.Process {
	t.Helper()
	c := b.command("/helper")
	c.Env = map[string]string{hosttest.HelperEnv: name}
	return b.start(t, c)
}

// said lists what the runtime was told, each without the container's name.
func (b box) said(t *testing.T) [][]string {
	t.Helper()
	f, err := os.ReadFile(filepath.Join(b.runtime, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	var all [][]string
	for line := range bytes.Lines(f) {
		var words []string
		if err := json.Unmarshal(line, &words); err != nil {
			t.Fatal(err)
		}
		all = append(all, words)
	}
	return all
}

// long leaves a test to the long ones: a container takes a dozen programs, each of them this big one.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("seconds of real processes: the long tests do that")
	}
}

// set sets a seam of the runtime.
func (b box) set(t *testing.T, seam, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(b.runtime, seam), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func log(t *testing.T, p host.Process) string {
	t.Helper()
	b, err := p.Log(t.Context(), 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestContainerEndsAsItsProgram(t *testing.T) {
	eachKind(t, func(t *testing.T, b box, kind string) {
		for i, c := range []struct {
			script, log string
			want        host.Exit
		}{
			{"echo out; exec 1>&2; sleep 0.05; echo err; exit 0", "out\nerr\n", host.Exit{Known: true}},
			{"printf rest; exit 7", "rest\n", host.Exit{Code: 7, Known: true}},
			{"kill -9 $$", "", host.Exit{Code: -1, Signal: 9, Known: true}},
			{"kill -15 $$", "", host.Exit{Code: -1, Signal: 15, Known: true}},
		} {
			b.marker = fmt.Sprintf("%s-%d", b.marker, i)
			p := b.start(t, b.command("sh", "-c", c.script))
			e := hosttest.Wait(t, p)
			if e.At.IsZero() {
				t.Errorf("%s: no time of exit", c.script)
			}
			e.At = time.Time{}
			if diff := cmp.Diff(c.want, e); diff != "" {
				t.Errorf("%s %s: (-want +got)\n%s", kind, c.script, diff)
			}
			if got := log(t, p); got != c.log {
				t.Errorf("%s %s: log %q, want %q", kind, c.script, got, c.log)
			}
			if list := b.find(t.Context(), t); len(list) > 0 {
				t.Errorf("%s %s: %d are left", kind, c.script, len(list))
			}
		}
	})
}

// TestContainerWords shows what the runtime is told, and in which order: removed is last, and once how it ended was
// saved.
func TestContainerWords(t *testing.T) {
	t.Parallel()
	b := newBox(t, "local")
	b.container.Args = []string{"-v", "/models:/models", "--memory", "900m"}
	args := []string{"two words", `it's "quoted" $HOME \n`, "new\nline", "ünïcödé 🚀", "", "-flag", ";&|<>`x`"}
	c := b.command(append([]string{"/helper"}, args...)...)
	c.Env = map[string]string{hosttest.HelperEnv: "argv", "HF_TOKEN": "hidden word", "PATH": "/odd path"}
	p := b.start(t, c)
	hosttest.Wait(t, p)
	var got struct {
		Argv   []string
		Marker string
	}
	if err := json.Unmarshal([]byte(hosttest.FirstLine(t, p)), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(args, got.Argv); diff != "" || got.Marker != b.marker {
		t.Errorf("marker %q, argv (-want +got)\n%s", got.Marker, diff)
	}
	name := "sgtune-" + b.marker
	said := b.said(t)
	want := append([]string{
		"run", "-d", "--oom-score-adj", "1000", "--pull", "never", "--network", "host", "-v", "/models:/models", "--memory", "900m", "--name", name,
		"--label", "sgtune.trial=" + b.marker, "-e", "HF_TOKEN", "-e", hosttest.HelperEnv, "-e", "PATH=/odd path", "-e", host.MarkerEnv + "=" + b.marker,
		"-e", "SPT_NOENV=1", testImage, "/helper",
	}, args...)
	if diff := cmp.Diff(want, said[0]); diff != "" {
		t.Errorf("run (-want +got)\n%s", diff)
	}
	var words []string
	for _, s := range said {
		words = append(words, s[0])
	}
	inspect, rm := slices.Index(words, "inspect"), slices.Index(words, "rm")
	if inspect < 0 || rm < inspect || slices.Contains(words, "kill") {
		t.Errorf("said %v", words)
	}
	follow := slices.IndexFunc(said, func(s []string) bool { return s[0] == "logs" && s[1] == "-f" && slices.Contains(s, "--since") })
	if follow < 0 {
		t.Errorf("the log was not followed: %v", words)
	}
}

func TestContainerStops(t *testing.T) {
	eachKind(t, func(t *testing.T, b box, kind string) {
		p := b.start(t, b.command("sh", "-c", `trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.02; done`))
		hosttest.FirstLine(t, p)
		hosttest.Stop(t, p, 30*time.Second)
		if e := hosttest.Wait(t, p); e.Code != 5 || e.Signal != 0 {
			t.Errorf("%s: %+v, want exit status 5", kind, e)
		}
		if got := log(t, p); got != "ready\nbye\n" {
			t.Errorf("%s: log %q", kind, got)
		}
		b.marker += "-2"
		p = b.helper(t, "stubborn")
		hosttest.FirstLine(t, p)
		begin := time.Now()
		hosttest.Stop(t, p, 300*time.Millisecond)
		if e := hosttest.Wait(t, p); e.Signal != 9 || time.Since(begin) < 300*time.Millisecond {
			t.Errorf("%s: %+v after %s", kind, e, time.Since(begin))
		}
		if list := b.find(t.Context(), t); len(list) > 0 {
			t.Errorf("%s: %d are left", kind, len(list))
		}
	})
}

func TestContainerOutOfMemory(t *testing.T) {
	long(t)
	t.Parallel()
	b := newBox(t, "local")
	b.container.Args = []string{"--memory=100m"}
	p := b.start(t, b.command("sh", "-c", `x=0123456789; while :; do x=$x$x; done`))
	if e := hosttest.Wait(t, p); !e.OOMKilled || e.Signal != 9 {
		t.Errorf("%+v", e)
	}
}

// TestContainerThatCannotBeMade tells at once, in the runtime's words, and leaves nothing.
func TestContainerThatCannotBeMade(t *testing.T) {
	eachKind(t, func(t *testing.T, b box, kind string) {
		for _, c := range []struct {
			name, want string
			container  host.Container
			argv       []string
		}{
			{"no image", "nothing:1: image not known", host.Container{Runtime: filepath.Join(filepath.Dir(b.container.Runtime), "podman"), Image: "nothing:1"}, []string{"sh"}},
			{"no program", `exec: "gone": no such file`, host.Container{Runtime: filepath.Join(filepath.Dir(b.container.Runtime), "podman"), Image: testImage}, []string{"gone"}},
			{"wrong flag", "unknown flag: --wrong", host.Container{Runtime: b.container.Runtime, Image: testImage, Args: []string{"--wrong"}}, []string{"sh"}},
			{"no runtime", "not found", host.Container{Runtime: "no-such-runtime", Image: testImage}, []string{"sh"}},
		} {
			_, err := b.Start(t.Context(), host.Command{Argv: c.argv, Marker: b.marker, Container: &c.container, LogPath: filepath.Join(t.TempDir(), "log")})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, %s: %v", kind, c.name, err)
			}
		}
		if list := b.find(t.Context(), t); len(list) > 0 {
			t.Errorf("%s: %d are left", kind, len(list))
		}
	})
}

// TestContainerLogAfterBreaks: the runtime breaks the log off again and again; every line is there, once.
func TestContainerLogAfterBreaks(t *testing.T) {
	long(t)
	t.Parallel()
	b := newBox(t, "local")
	b.set(t, hosttest.RuntimeBreak, "40")
	script := `i=0; while [ $i -lt 300 ]; do echo line $i; echo same; i=$((i+1)); [ $((i%20)) = 0 ] && sleep 0.05; done`
	p := b.start(t, b.command("sh", "-c", script))
	if e := hosttest.Wait(t, p); e.Code != 0 {
		t.Errorf("%+v", e)
	}
	var want strings.Builder
	for i := range 300 {
		fmt.Fprintf(&want, "line %d\nsame\n", i)
	}
	if diff := cmp.Diff(want.String(), log(t, p)); diff != "" {
		t.Errorf("log (-want +got)\n%s", diff)
	}
}

// TestContainerWithoutHolder: the holder is killed and the container lives; it is found by its label, killed and removed.
func TestContainerWithoutHolder(t *testing.T) {
	eachKind(t, func(t *testing.T, b box, kind string) {
		p := b.helper(t, "stubborn")
		hosttest.FirstLine(t, p)
		if err := syscall.Kill(-p.ID().PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if e := hosttest.Wait(t, p); e.Signal != 9 {
			t.Errorf("%+v", e)
		}
		second := b.open(t, kind) // another sgtune
		list, err := second.Find(t.Context(), b.marker)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(list, func(p host.Process) bool { return p.ID().Container == "sgtune-"+b.marker })
		if i < 0 || list[i].ID().PID == 0 {
			t.Fatalf("%s: the container is not among the %d found", kind, len(list))
		}
		hosttest.Stop(t, list[i], 0)
		hosttest.Stop(t, list[i], 0) // twice is harmless
		if e := hosttest.Wait(t, list[i]); e.Known && e.Signal != 9 {
			t.Errorf("%+v", e)
		}
		if left := b.find(t.Context(), t); len(left) > 0 {
			t.Errorf("%s: %d are left", kind, len(left))
		}
	})
}

// TestContainerOfADeadSgtune: sgtune is killed while the runtime is still making the container, which appears later.
func TestContainerOfADeadSgtune(t *testing.T) {
	long(t)
	t.Parallel()
	b := newBox(t, "local")
	b.set(t, hosttest.RuntimeDelay, "300ms")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	c := b.command("/helper")
	c.Env, c.LogPath = map[string]string{hosttest.HelperEnv: "stubborn"}, filepath.Join(t.TempDir(), "log")
	if _, err := b.Start(ctx, c); !errors.Is(err, context.Canceled) {
		t.Errorf("start: %v", err)
	}
	if list := b.find(t.Context(), t); len(list) > 0 {
		t.Errorf("%d are left", len(list))
	}
}

// TestContainerWhileTheDaemonIsAway: as long as the runtime gives no answer the container is taken to live.
func TestContainerWhileTheDaemonIsAway(t *testing.T) {
	long(t)
	t.Parallel()
	b := newBox(t, "local")
	p := b.start(t, b.command("sh", "-c", "echo ready; sleep 0.5; exit 4"))
	hosttest.FirstLine(t, p)
	b.set(t, hosttest.RuntimeDown, "")
	time.Sleep(800 * time.Millisecond)
	if _, err := b.Find(t.Context(), b.marker); err == nil {
		t.Error("a runtime that gives no answer was taken for one without containers")
	}
	if err := os.Remove(filepath.Join(b.runtime, hosttest.RuntimeDown)); err != nil {
		t.Fatal(err)
	}
	if e := hosttest.Wait(t, p); e.Code != 4 {
		t.Errorf("%+v", e)
	}
}

func TestServiceAndAskWords(t *testing.T) {
	t.Parallel()
	c := host.Container{Runtime: "podman", Image: "i:1", Args: []string{"--pull=missing", "--network=host", "--memory", "4g"}}
	words, env := c.ServiceWords("night", []string{"python3", "x y"}, map[string]string{"A": "b"})
	want := "podman run -d --restart unless-stopped --pull=missing --network=host --memory 4g --name sgtune-served-night --label sgtune.served=night -e A i:1 python3 x y"
	if got := strings.Join(words, " "); got != want || env["A"] != "b" {
		t.Errorf("service: %s, %v", got, env)
	}
	words, _ = c.AskWords("q", []string{"--help"}, nil)
	if got := strings.Join(words, " "); got != "podman run --rm --name q --pull=missing --network=host --memory 4g i:1 --help" {
		t.Errorf("ask: %s", got)
	}
}
