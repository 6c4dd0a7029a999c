package host_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"sgtune/host"
	"sgtune/internal/hosttest"
)

// TestForgetAbandoned: what an earlier lease started and what a dead sgtune started is forgotten once it has ended; what
// runs, and what a living sgtune started without a lease, stays.
func TestForgetAbandoned(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, second := newRemote(dir), newRemote(dir)
	defer first.Close()
	defer second.Close()
	marker := hosttest.NewMarker()
	start := func(r *host.Remote, script string) host.Process {
		t.Helper()
		p, err := r.Start(t.Context(), host.Command{Argv: []string{"sh", "-c", script}, Marker: marker})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	asked := start(first, "exit 1") // no lease, we live
	hosttest.Wait(t, asked)
	release, err := first.Lease(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	hosttest.Wait(t, start(first, "exit 2"))
	running := start(first, "sleep 60")
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if _, err := second.ForgetAbandoned(t.Context()); err == nil {
		t.Error("without a lease, anything may be in use")
	}
	if release, err = second.Lease(t.Context(), "two"); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = release() }()
	mine := start(second, "exit 3")
	hosttest.Wait(t, mine)
	forget := func(what string, want int) {
		t.Helper()
		if n, err := second.ForgetAbandoned(t.Context()); n != want || err != nil {
			t.Errorf("%s: %d forgotten, %v; want %d", what, n, err, want)
		}
	}
	forget("the earlier lease's", 1)
	for what, p := range map[string]host.Process{"the living sgtune's": asked, "the running one": running, "of this lease": mine} {
		if _, err := second.Attach(t.Context(), p.ID()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	hosttest.Stop(t, running, 0)
	forget("it has ended", 1)
	pretendDead(t, dir, asked.ID())
	forget("its sgtune is dead", 1)
}

// pretendDead makes the run of a process one of a sgtune that is no more.
func pretendDead(t *testing.T, dir string, id host.ID) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "run", "*", "id"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		var got host.ID
		readJSON(t, file, &got)
		if got.PID != id.PID {
			continue
		}
		path := filepath.Join(filepath.Dir(file), "command")
		var command map[string]any
		readJSON(t, path, &command)
		client, ok := command["client"].(map[string]any)
		if !ok {
			t.Fatalf("nobody started it: %v", command)
		}
		client["start_ticks"] = 1
		b, err := json.Marshal(command)
		if err == nil {
			err = os.WriteFile(path, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("no run of pid %d in %v", id.PID, files)
}

func readJSON(t *testing.T, path string, v any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}
