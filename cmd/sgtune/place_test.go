package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

func TestHolderText(t *testing.T) {
	t.Parallel()
	me := os.Getpid()
	comm, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	const nobody = 1 << 30
	for _, tt := range []struct{ name, got, want string }{
		{"named", holderText(nobody, "python3", "71.2 GB", ""), fmt.Sprintf("pid %d (python3) 71.2 GB", nobody)},
		{"unknown", holderText(nobody, "", "", ""), fmt.Sprintf("pid %d", nobody)},
		{"looked up", holderText(me, (&place{}).nameOf(me, ""), "1 GB", ""), fmt.Sprintf("pid %d (%s) 1 GB", me, strings.TrimSpace(string(comm)))},
		{"ours", holderText(nobody, "python3", "", "night"), fmt.Sprintf("pid %d (python3) launched by sgtune when study night ended", nobody)},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, tt.got, tt.want)
		}
	}
}

// simulatedPlace is a simulated host under a folder of the test.
func simulatedPlace(t *testing.T, s *tuner.Study) *place {
	t.Helper()
	s.Name, s.Host = "night", tuner.HostSpec{Kind: tuner.HostSimulated, Profile: "kimi-8x96", TimeScale: 100, RAMBytes: 449e9}
	p, err := newPlace(s, filepath.Join(t.TempDir(), "x.db"), evening)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPlaceFacts(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	s := &tuner.Study{Port: listener.Addr().(*net.TCPAddr).Port}
	p := simulatedPlace(t, s)
	f, err := p.facts(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if f.Name != "simulated kimi-8x96" || len(f.GPUs) != 8 || f.MemTotal != 449e9 {
		t.Errorf("facts %+v", f)
	}
	want := fmt.Sprintf("port %d: pid %d", s.Port, os.Getpid())
	if len(f.PortHolders) != 1 || !strings.HasPrefix(f.PortHolders[0], want) {
		t.Errorf("port holders %q, want one that begins with %q", f.PortHolders, want)
	}
	if now := p.clock.Now(); now.Before(evening) || now.After(evening.Add(time.Hour)) {
		t.Errorf("the clock shows %s, it should have begun at %s", now, evening)
	}
}

func TestPlaceRuns(t *testing.T) {
	t.Parallel()
	p := simulatedPlace(t, &tuner.Study{})
	for _, tt := range []struct{ name, script, want string }{
		{"well", "echo hello", ""},
		{"badly", "echo first; echo password=hunter2hunter2 >&2; exit 7", "exit status 7: password=***"},
		{"silently badly", "exit 3", "exit status 3"},
		{"killed", "kill -9 $$", "ended by signal 9"},
	} {
		got := ""
		if err := p.run(t.Context(), []string{"sh", "-c", tt.script}); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	if log, err := os.ReadFile(filepath.Join(p.files, "commands.log")); err != nil || !strings.Contains(string(log), "hello") {
		t.Errorf("commands.log holds %q (%v)", log, err)
	}
}

func TestLatest(t *testing.T) {
	t.Parallel()
	later := evening.Add(time.Hour)
	if got := latest(&tuner.Record{CreatedAt: evening, EndedAt: later}, evening); !got.Equal(later) {
		t.Errorf("got %s", got)
	}
	if got := latest(nil); !got.IsZero() {
		t.Errorf("of nothing: %s", got)
	}
}

func TestBiggestHostPool(t *testing.T) {
	t.Parallel()
	space := tuner.Space{{Name: "mem-fraction-static", Values: []any{99.0}}, {Name: "hicache-size", Values: []any{0.0, 48.0, 16.0}}}
	if got := biggestHostPool(space); got != 48 {
		t.Errorf("got %g, want 48", got)
	}
}

func TestSampleFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "3"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "3", "level-40.samples.jsonl"), []byte("{}\n{}\n{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := sampleFiles(dir, &trial.Trial{Number: 3, Levels: []trial.Level{{Concurrency: 40}, {Concurrency: 80}}})
	if len(got) != 1 || got[0].File != "3/level-40.samples.jsonl" || got[0].Concurrency != 40 || got[0].Count != 3 || got[0].Bytes != 9 {
		t.Errorf("got %+v, want the one file there is", got)
	}
}

func TestSimCommand(t *testing.T) {
	t.Parallel()
	s := &tuner.Study{Host: tuner.HostSpec{Profile: "kimi-8x96", TimeScale: 150, Seed: 7, Startup: 90 * time.Second, Faults: []string{"hang:5", "sticky"}}}
	want := sglang.Server{Command: []string{
		"sgtune", "sim-server", "--sim-profile", "kimi-8x96", "--sim-time-scale", "150", "--sim-seed", "7", "--sim-startup", "90", "--sim-fault", "hang:5,sticky",
	}}
	if diff := cmp.Diff(want.Command, simCommand(s, "sgtune")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
