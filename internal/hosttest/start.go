package hosttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/host"
)

func exitFacts(t *testing.T, f Fixture) {
	for _, c := range []struct {
		script       string
		code, signal int
	}{{"exit 0", 0, 0}, {"exit 7", 7, 0}, {"kill -9 $$", -1, 9}, {"kill -15 $$", -1, 15}} {
		p := f.Shell(t, c.script)
		e := Wait(t, p)
		if e.At.IsZero() {
			t.Errorf("%s: no time of exit", c.script)
		}
		e.At = time.Time{}
		if diff := cmp.Diff(host.Exit{Code: c.code, Signal: c.signal, Known: true}, e); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", c.script, diff)
		}
	}
}

func noProgram(t *testing.T, f Fixture) {
	for _, argv := range [][]string{nil, {""}, {"no-such-program-anywhere"}, {"/no/such/program"}} {
		if p, err := f.Start(t.Context(), host.Command{Argv: argv, Marker: f.Marker}); err == nil {
			t.Errorf("%q started as %v", argv, p.ID())
		} else if len(argv) > 0 && !strings.Contains(err.Error(), argv[0]) {
			t.Errorf("error does not name the program: %v", err)
		}
	}
}

func argvIntact(t *testing.T, f Fixture) {
	args := []string{
		"two words", `it's "quoted" $HOME \n`, "new\nline\ttab", "ünïcödé 🚀", "", "-flag", "*?[a]", `{"json": [1]}`, ";&|<>`x`",
	}
	p := f.Helper(t, "argv", args...)
	Wait(t, p)
	var got struct {
		Argv           []string
		Marker, Claims string
	}
	if err := json.Unmarshal([]byte(FirstLine(t, p)), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(args, got.Argv); diff != "" {
		t.Errorf("argv (-want +got)\n%s", diff)
	}
	if got.Marker != f.Marker {
		t.Errorf("marker %q, want %q", got.Marker, f.Marker)
	}
	if want := f.Kind == "simulated"; (got.Claims == f.Dir) != want {
		t.Errorf("claims folder %q on a %s host", got.Claims, f.Kind)
	}
}

func environment(t *testing.T, f Fixture) {
	dir := t.TempDir()
	p := f.Launch(t, host.Command{
		Argv: []string{"sh", "-c", `echo "$A|${` + host.MarkerEnv + `-none}|$SPT_NOENV|$(pwd)"; echo err >&2; read x || echo eof`},
		Env:  map[string]string{"A": "b c", host.MarkerEnv: "not this way"}, Dir: dir,
	})
	Wait(t, p)
	b, err := p.Log(t.Context(), 0, 1000)
	if want := "b c|none||" + dir + "\nerr\neof\n"; string(b) != want || err != nil {
		t.Errorf("got %q, %v; want %q", b, err, want)
	}
	p = f.Shell(t, "echo $SPT_NOENV") // else setproctitle erases the marker
	if got := FirstLine(t, p); got != "1" {
		t.Errorf("SPT_NOENV is %q beside a marker", got)
	}
}

// logFollow reads a log while it is written: what is there is seen at once, and in the end there is no hole.
func logFollow(t *testing.T, f Fixture) {
	const lines = 50
	p := f.Shell(t, numbers(lines))
	done := p.Done()
	if FirstLine(t, p) != "0" || closed(done) {
		t.Error("the first line was seen only after the end")
	}
	whole(t, follow(t, p, nil), lines)
}

func logOffset(t *testing.T, f Fixture) {
	p := f.Shell(t, "printf 0123456789")
	Wait(t, p)
	for _, c := range []struct {
		offset int64
		limit  int
		want   string
	}{{0, 4, "0123"}, {4, 4, "4567"}, {8, 4, "89"}, {10, 4, ""}, {99, 4, ""}, {0, 0, ""}} {
		if b, err := p.Log(t.Context(), c.offset, c.limit); string(b) != c.want || err != nil {
			t.Errorf("Log(%d, %d) = %q, %v; want %q", c.offset, c.limit, b, err, c.want)
		}
	}
}

func logAppend(t *testing.T, f Fixture) {
	path := filepath.Join(t.TempDir(), "new folder", "log")
	for _, word := range []string{"first", "second"} {
		p := f.Launch(t, host.Command{Argv: []string{"echo", word}, LogPath: path})
		Wait(t, p)
		if got := FirstLine(t, p); got != word {
			t.Errorf("log of the %s process starts with %q", word, got)
		}
	}
	if b, err := os.ReadFile(path); string(b) != "first\nsecond\n" || err != nil {
		t.Errorf("file holds %q, %v", b, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("log may be read by others: %v, %v", info.Mode(), err)
	}
}

func foundByMarker(t *testing.T, f Fixture) {
	p := f.Helper(t, "sleep")
	list, err := f.Find(t.Context(), f.Marker)
	if err != nil || len(list) != 1 {
		t.Fatalf("found %d processes, %v; want 1", len(list), err)
	}
	if diff := cmp.Diff(p.ID(), list[0].ID()); diff != "" {
		t.Errorf("identity (-started +found)\n%s", diff)
	}
	if other, err := f.Find(t.Context(), f.Marker+"0"); err != nil || len(other) != 0 {
		t.Errorf("another marker finds %d, %v", len(other), err)
	}
	every, err := f.Find(t.Context(), "")
	if err != nil || !slices.ContainsFunc(every, func(q host.Process) bool { return q.ID().PID == p.ID().PID }) {
		t.Errorf("not among all marked ones: %v", err)
	}
	elsewhere := host.NewSimulated(host.SimulatedOptions{Dir: t.TempDir()})
	if every, err = elsewhere.Find(t.Context(), ""); err != nil || len(every) != 0 {
		t.Errorf("another simulated host finds %d processes, %v", len(every), err)
	}
	FirstLine(t, p)
	if b, err := list[0].Log(t.Context(), 0, 100); (string(b) == "ready\n") != f.Kept || len(b) != 0 && !f.Kept || err != nil {
		t.Errorf("log of a found process: %q, %v", b, err)
	}
	Stop(t, list[0], 0)
	if e := Wait(t, p); e.Signal != 9 {
		t.Errorf("stop of the found process: %+v", e)
	}
	if e := Wait(t, list[0]); e.Known != f.Kept || e.Signal != 0 && !f.Kept {
		t.Errorf("exit status of a found process: %+v", e)
	}
	if list, err = f.Find(t.Context(), f.Marker); err != nil || len(list) != 0 {
		t.Errorf("found %d afterwards, %v", len(list), err)
	}
}

func renamed(t *testing.T, f Fixture) {
	p := f.Helper(t, "renamed")
	for FirstLine(t, p) == "" || !bytes.Contains(logOf(t, p), []byte("renamed")) {
		time.Sleep(5 * time.Millisecond)
	}
	if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.ID().PID)); err != nil || bytes.Contains(b, []byte(f.Marker)) {
		t.Fatalf("the marker is still there, %v", err)
	}
	list, err := f.Find(t.Context(), f.Marker)
	if err != nil || len(list) != 2 || !slices.ContainsFunc(list, func(q host.Process) bool { return q.ID().PID == p.ID().PID }) {
		t.Errorf("found %d of 2, %v", len(list), err)
	}
}

func logOf(t *testing.T, p host.Process) []byte {
	t.Helper()
	b, err := p.Log(t.Context(), 0, 64<<10)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// neverSelf runs a sgtune with the marker in its own environment, from a shell that has it too.
func neverSelf(t *testing.T, f Fixture) {
	log := filepath.Join(t.TempDir(), "log")
	cmd := exec.Command("sh", "-c", `"$@"; echo "survived $?"`, "sh", os.Args[0], f.Kind, f.Dir, log, f.Marker)
	cmd.Env = append(os.Environ(), host.MarkerEnv+"="+f.Marker, HelperEnv+"=marked-controller", "SGTUNE_SIMULATED="+simulatedDir(f))
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "found 1, stopped 1\nsurvived 0\n" {
		t.Errorf("%s, %v", out, err)
	}
}

func simulatedDir(f Fixture) string {
	if f.Kind == "simulated" {
		return f.Dir
	}
	return ""
}

func identity(t *testing.T, f Fixture) {
	p := f.Helper(t, "sleep")
	id := p.ID()
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	want := host.ID{
		BootID: strings.TrimSpace(string(b)), PID: id.PID, PGID: id.PID, StartTicks: id.StartTicks,
		Marker: f.Marker, Argv: []string{os.Args[0]},
	}
	if diff := cmp.Diff(want, id); diff != "" || id.StartTicks == 0 {
		t.Errorf("start ticks %d, (-want +got)\n%s", id.StartTicks, diff)
	}
	if pgid, err := syscall.Getpgid(id.PID); pgid != id.PID || err != nil {
		t.Errorf("process group %d, %v", pgid, err)
	}
}
