package host

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func readSamples(t *testing.T, path string) []GuardSample {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var list []GuardSample
	for line := range bytes.Lines(b) {
		var s GuardSample
		if err := json.Unmarshal(line, &s); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		list = append(list, s)
	}
	return list
}

func TestEvidenceStaysSmallAndWhole(t *testing.T) {
	t.Parallel()
	const limit, total = 20_000, 2000
	e := &evidenceFile{path: filepath.Join(t.TempDir(), "guard.jsonl"), limit: limit}
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i := range total {
		s := GuardSample{At: start.Add(time.Duration(i) * time.Second), Lowest: 1000}
		if i == 777 { // one low and one stranger must survive every thinning
			s.Lowest, s.ForeignCPU = 7, []GuardForeign{{PID: 42, Name: "make", GPU: -1, Cores: 3}}
		}
		if err := e.add(s); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(e.path); err == nil && info.Size() > limit {
			t.Fatalf("%d bytes after %d samples", info.Size(), i+1)
		}
	}
	if err := e.close(); err != nil {
		t.Fatal(err)
	}
	list := readSamples(t, e.path)
	lowest, strangers := int64(1000), 0
	for _, s := range list {
		lowest, strangers = min(lowest, s.Lowest), strangers+len(s.ForeignCPU)
	}
	if len(list) < 10 || lowest != 7 || strangers != 1 {
		t.Errorf("%d lines, lowest %d, %d strangers", len(list), lowest, strangers)
	}
	if last := list[len(list)-1].At; !last.Equal(start.Add((total - 1) * time.Second)) {
		t.Errorf("the last line is of %s", last)
	}
	if first := list[0].At.Sub(start); first > total/5*time.Second {
		t.Errorf("the first line is of second %s", first)
	}
}

func TestEvidenceTellsWhyItIsNotWhole(t *testing.T) {
	t.Parallel()
	s := newGuardScript(t)
	r := newRecorder(GuardOptions{Evidence: filepath.Join(t.TempDir(), "no", "folder")}, s.root, s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.run(ctx)
	if !strings.Contains(r.problem(), "write evidence") {
		t.Errorf("problem %q", r.problem())
	}
}

func TestSampleOfTheMachine(t *testing.T) {
	t.Parallel()
	s := newGuardScript(t)
	s.file("proc/loadavg", "12.50 9.70 8.41 1/200 99\n")
	s.file("proc/stat", "cpu  100 50 30 5000 700 1 2 9 0 0\ncpu0 1\n")
	s.file("proc/vmstat", "workingset_refault_file 11\noom_kill 3\n")
	s.file("proc/pressure/memory", "some avg10=1.25 avg60=0.00 avg300=0.00 total=1\nfull avg10=0.50 avg60=0.00 avg300=0.00 total=1\n")
	s.file("proc/pressure/cpu", "some avg10=80.00 avg60=0.00 avg300=0.00 total=1\nfull avg10=9.00 avg60=0.00 avg300=0.00 total=1\n")
	r := newRecorder(GuardOptions{ID: ID{PID: 77}}, s.root, s)
	r.saw(GuardMemoryReading{Available: 9, Headroom: 5})
	r.saw(GuardMemoryReading{Available: 8, Headroom: -1})
	memory := &memoryWatch{root: s.root, pid: 77}
	first := r.sample(t.Context(), memory)
	s.now = s.now.Add(2 * time.Second)
	s.file("proc/stat", "cpu  400 150 30 5000 900 1 2 9 0 0\n")
	second := r.sample(t.Context(), memory)
	want := GuardSample{
		At: s.start, Lowest: 5, PageCache: 7 << 10, Refaults: 11, Load: 12.5, BusyCores: -1, Cores: 1, OOMKills: 3, GroupKills: -1,
		Memory:   GuardMemoryReading{Total: 24 << 30, Available: 20 << 30, Headroom: -1, Limit: -1, Swap: 0},
		Pressure: &GuardPressure{CPUSome: 80, MemorySome: 1.25, MemoryFull: 0.5},
	}
	if d := cmp.Diff(want, first); d != "" {
		t.Error(d)
	}
	if second.BusyCores != 2 || second.Lowest != -1 {
		t.Errorf("busy %g cores, lowest %d", second.BusyCores, second.Lowest)
	}
}

func TestHoldersThatAreNotOurs(t *testing.T) {
	t.Parallel()
	w := &procWatch{ours: map[int]time.Time{5: {}}}
	got := w.holders([]GPU{{Index: 3, Processes: []GPUProcess{{PID: 5, Used: 9}, {PID: 6, Used: 8, Name: "other"}}}})
	if d := cmp.Diff([]GuardForeign{{PID: 6, Name: "other", GPU: 3, Memory: 8}}, got); d != "" {
		t.Error(d)
	}
}

// TestGuardEndsARealTrial: a main process that ignores SIGTERM, a child in its group and one that left group and session.
func TestGuardEndsARealTrial(t *testing.T) {
	t.Parallel()
	score, err := os.ReadFile("/proc/self/oom_score_adj") // other tests' programs inherit it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.WriteFile("/proc/self/oom_score_adj", score, 0) })
	l := NewLocal(LocalOptions{StateDir: t.TempDir()})
	marker := "guard-" + filepath.Base(filepath.Dir(t.TempDir()))
	p, err := l.Start(t.Context(), Command{Marker: marker, Argv: []string{"sh", "-c", `trap "" TERM; setsid sleep 60 & sleep 60 & while :; do :; done`}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop(context.Background(), 0) })
	for range 1000 { // on a slow machine the shell needs its time to start both children
		if all, err := l.Find(t.Context(), marker); err != nil || len(all) >= 3 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	dir := t.TempDir()
	g, err := NewGuard(l, GuardOptions{
		ID: p.ID(), MinFree: -1, TimeLimit: 1500 * time.Millisecond, Grace: 100 * time.Millisecond,
		Verdict: filepath.Join(dir, "v"), Evidence: filepath.Join(dir, "e"),
		GPUs: func(context.Context) ([]GPU, string) {
			return []GPU{{UUID: "GPU-1", Processes: []GPUProcess{{PID: p.ID().PID, Used: 5}, {PID: 1, Used: 6}}}}, ""
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	v, err := g.Run(t.Context())
	if err != nil || v.Reason != GuardTimeLimit || !v.Forced || v.EvidenceProblem != "" {
		t.Errorf("%v %+v", err, v)
	}
	if left, err := l.Find(t.Context(), marker); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
	list := readSamples(t, filepath.Join(dir, "e"))
	most := 0
	for _, s := range list {
		most = max(most, s.OurProcesses)
	}
	last := list[len(list)-1]
	if len(list) < 3 || most < 3 || last.Memory.Available <= 0 || last.BusyCores < 0 {
		t.Errorf("%d samples, %d processes, last %+v", len(list), most, last)
	}
	if d := cmp.Diff([]GuardForeign{{PID: 1, GPU: 0, Memory: 6}}, last.ForeignGPU); d != "" {
		t.Error(d)
	}
}

func TestGuardRaisesTheScoreOfTheTrial(t *testing.T) {
	t.Parallel()
	l := NewLocal(LocalOptions{StateDir: t.TempDir()})
	p, err := l.Start(t.Context(), Command{Argv: []string{"sleep", "60"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop(context.Background(), 0) })
	target := &guardedGroup{process: process{host: l, id: p.ID()}}
	if err := target.protect(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(procPath(p.ID().PID, "oom_score_adj")); err != nil || string(b) != "1000\n" {
		t.Errorf("oom_score_adj %q, %v", b, err)
	}
}

func TestNewGuardRefuses(t *testing.T) {
	t.Parallel()
	l := NewLocal(LocalOptions{StateDir: t.TempDir()})
	self, err := readStat(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		opts GuardOptions
		want string
	}{
		{"no process", GuardOptions{}, "no process id"},
		{"init", GuardOptions{ID: ID{PID: 1}}, "no process id"},
		{"gone", GuardOptions{ID: ID{PID: 1 << 30}}, "no such process"},
		{"another process", GuardOptions{ID: ID{PID: os.Getpid(), StartTicks: self.startTicks + 1}}, "given to another"},
		{"another boot", GuardOptions{ID: ID{PID: os.Getpid(), BootID: "x"}}, "given to another"},
		{"its own group", GuardOptions{ID: ID{PID: os.Getpid()}}, "not the trial's own"},
		{"no heartbeat file", GuardOptions{ID: ID{PID: os.Getpid()}, Absence: time.Hour}, "heartbeat"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, err := NewGuard(l, c.opts); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func BenchmarkGuardLook(b *testing.B) {
	for name, enough := range map[string]int64{"far": 0, "near": exactly} {
		b.Run(name, func(b *testing.B) {
			w := &memoryWatch{root: rootFS, pid: os.Getpid()}
			w.refresh()
			for b.Loop() {
				if _, err := w.read(enough); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(w.groups)), "limits")
		})
	}
}

func BenchmarkGuardSample(b *testing.B) {
	l := NewLocal(LocalOptions{StateDir: b.TempDir()})
	r := newRecorder(GuardOptions{ID: ID{PID: os.Getpid()}}, rootFS, NewClock(time.Now(), 1))
	r.procs = &procWatch{host: l, id: ID{PID: os.Getpid(), PGID: os.Getpid(), Marker: "none"}}
	memory := &memoryWatch{root: rootFS, pid: os.Getpid()}
	for b.Loop() {
		r.sample(b.Context(), memory)
	}
}
