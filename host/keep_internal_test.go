package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// runOf writes a run folder as start does.
func runOf(t *testing.T, argv ...string) runFolder {
	t.Helper()
	f := runFolder(t.TempDir())
	if err := f.write("command", packCommand(Command{Argv: argv})); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestKeepOnce(t *testing.T) {
	t.Parallel()
	l := NewLocal(LocalOptions{})
	f := runOf(t, "sh", "-c", "echo once; exit 3")
	for range 3 {
		if err := KeepMain(t.Context(), l, string(f)); err != nil {
			t.Fatal(err)
		}
	}
	k, err := openRun(l, f)
	if err != nil {
		t.Fatal(err)
	}
	if e, ok := k.ended(); !ok || e.Exit.Code != 3 || !e.Exit.Known || !e.GroupGone {
		t.Errorf("%+v, %v", e, ok)
	}
	if b, err := k.readLog(0, 100); string(b) != "once\n" || err != nil {
		t.Errorf("log %q, %v", b, err)
	}
	files, err := filepath.Glob(string(f) + "/.*")
	if err != nil || len(files) != 0 {
		t.Errorf("left: %v, %v", files, err)
	}
}

// What cannot be started says why, and is not tried again.
func TestKeepFails(t *testing.T) {
	t.Parallel()
	l := NewLocal(LocalOptions{})
	half := runOf(t, "true")
	if err := os.WriteFile(half.path("begun"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	broken := runOf(t, "true")
	if err := os.WriteFile(broken.path("command"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, want string
		f          runFolder
	}{
		{"no program", "no-such-program", runOf(t, "no-such-program")},
		{"nothing asked", "no command", runOf(t)},
		{"its keeper died", "whether it runs is not known", half},
		{"unreadable", "unexpected end of JSON", broken},
	} {
		for range 2 {
			if err := KeepMain(t.Context(), l, string(c.f)); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		if b, err := os.ReadFile(c.f.path("failed")); err != nil || !strings.Contains(string(b), c.want) {
			t.Errorf("%s: %q, %v", c.name, b, err)
		}
		if c.f.has("id") {
			t.Errorf("%s: it runs", c.name)
		}
	}
	if err := KeepMain(t.Context(), l, filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("no folder is no error")
	}
}

// A pid that belongs to another process by now, or to another boot, is neither waited for nor signalled.
func TestKeptOfAnotherTime(t *testing.T) {
	t.Parallel()
	l := NewLocal(LocalOptions{})
	stranger := sleeper(t)
	for _, c := range []struct {
		name string
		id   ID
	}{
		{"pid reused", ID{BootID: l.boot, PID: stranger.pid, PGID: stranger.pid, StartTicks: stranger.startTicks - 1}},
		{"rebooted", ID{BootID: "another", PID: stranger.pid, PGID: stranger.pid, StartTicks: stranger.startTicks}},
	} {
		f := runOf(t, "true")
		if err := f.write("id", c.id); err != nil {
			t.Fatal(err)
		}
		k, err := openRun(l, f)
		if err != nil {
			t.Fatal(err)
		}
		e, err := k.wait(t.Context())
		if diff := cmp.Diff(Exit{Code: -1, At: e.At}, e); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", c.name, err, diff)
		}
		if err := k.stop(t.Context(), time.Minute); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if !lives(t, stranger) {
			t.Fatalf("%s: the stranger was killed", c.name)
		}
	}
}

// The keeper of a marked command stays until its group is empty, and then says so.
func TestKeeperLingers(t *testing.T) {
	t.Parallel()
	l := NewLocal(LocalOptions{})
	f := runFolder(t.TempDir())
	c := Command{Argv: []string{"sh", "-c", "sleep 0.5 & exit 0"}, Marker: "linger-test"}
	if err := f.write("command", packCommand(c)); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- KeepMain(t.Context(), l, string(f)) }()
	for range 500 {
		if f.has("rc") {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	var e keptExit
	if err := f.read("rc", &e); err != nil || e.GroupGone {
		t.Errorf("right after the end: %+v, %v", e, err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := f.read("rc", &e); err != nil || !e.GroupGone || !e.Exit.Known {
		t.Errorf("when all are gone: %+v, %v", e, err)
	}
}

func TestRunNames(t *testing.T) {
	t.Parallel()
	for key, good := range map[string]bool{
		"0123abcd": true, "": false, ".": false, "..": false, "../x": false, "a/b": false, "a\x00": false, strings.Repeat("a", 101): false,
	} {
		if f, err := folderOf("/w", key); (err == nil) != good || good && f != runFolder("/w/run/"+runFolder(key)) {
			t.Errorf("%q: %q, %v", key, f, err)
		}
	}
}

// A command comes out of the protocol as it went in, also what is not UTF-8.
func TestWireCommand(t *testing.T) {
	t.Parallel()
	c := Command{
		Argv: []string{"a b", "\xff\xfe", "", "ü\n"}, Env: map[string]string{"A": "\x80", "B": ""}, Dir: "/x\xff", Marker: "m", LogPath: "/log",
	}
	f := runFolder(t.TempDir())
	if err := f.write("command", packCommand(c)); err != nil {
		t.Fatal(err)
	}
	var w wireCommand
	if err := f.read("command", &w); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, w.command("/log")); diff != "" {
		t.Errorf("(-sent +got)\n%s", diff)
	}
}
