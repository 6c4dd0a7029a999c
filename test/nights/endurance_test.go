package nights_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// enduring is a study of many short trials: 2,000 simulated seconds in a real one, one load level of one window.
const enduring = `study: endurance
server:
  model: /models/Kimi-K2.5
  flags: {tp-size: 8, trust-remote-code: true}
  baseline: {mem-fraction-static: 0.85}
  ready_timeout: 24h
host: {kind: simulated, profile: kimi-8x96, time_scale: 2000, startup: 60s}
space:
  mem-fraction-static: {min: 0.80, max: 0.93, step: 0.005}
  hicache-size: {values: [0, 16, 24, 32, 40, 48]}
  chunked-prefill-size: {values: [2048, 4096, 8192, 16384]}
  schedule-conservativeness: {min: 0.3, max: 1.3, step: 0.1}
workload: {file: quickstart.jsonl, load: {concurrency: [48]}}
measure: {window: 240s, max: 240s, canary: off, fill: off}
sampler: %s
budget: {trials: %d}
confirm: {launches: 3}
`

// TestEndurance runs many trials in one process: a hundred of them, SGTUNE_TRIALS where it is set
// (make test-long: 1,000), by each sampler of SGTUNE_SAMPLERS. Memory, open files, goroutines and threads of the last
// quarter must be those of the second, and nothing may be left behind.
func TestEndurance(t *testing.T) {
	if testing.Short() {
		t.Skip("a hundred trials: a minute, in make test-nights")
	}
	n, err := strconv.Atoi(os.Getenv("SGTUNE_TRIALS"))
	if err != nil {
		n = 100
	}
	samplers := strings.Fields(os.Getenv("SGTUNE_SAMPLERS"))
	if len(samplers) == 0 {
		samplers = []string{"random"}
	}
	for _, sampler := range samplers {
		t.Run(sampler, func(t *testing.T) { endure(t, sampler, n) })
	}
}

func endure(t *testing.T, sampler string, n int) {
	study, db := copyStudy(t, "quickstart.yaml", func(string) string { return fmt.Sprintf(enduring, sampler, n) })
	scratch, state := t.TempDir(), stateDir(t)
	var w watched
	var s shown
	for range 5 {
		w = watch(t, scratch, time.Duration(n)*10*time.Second, "tune", study, "--web", "off")
		if s = show(t, db, "endurance"); s.State == "complete" || len(s.Trials) > 20 {
			break
		} // a machine that was too busy at the start for figures of a baseline: the study goes on in another process
	}
	finished := 0
	for _, row := range s.Trials {
		if row.State != "waiting" && row.State != "running" {
			finished++
		}
	}
	if s.State != "complete" || finished < n || finished != len(s.Trials) {
		t.Fatalf("%v: the study is %s, %d of %d trials ended, want %d\n%s", w.err, s.State, finished, len(s.Trials), n, w.stdout[max(0, len(w.stdout)-2000):])
	}
	t.Logf("%d trials by %s in %s, %.2f s each", finished, sampler, w.took.Round(time.Second), w.took.Seconds()/float64(finished))
	steady(t, "memory, MB", column(w.samples, func(f footprint) float64 { return f.rss / 1e6 }), 0.25, 8)
	steady(t, "open files", column(w.samples, func(f footprint) float64 { return f.files }), 0, 4)
	steady(t, "threads", column(w.samples, func(f footprint) float64 { return f.threads }), 0, 4)
	steady(t, "goroutines", goroutines(w.trace), 0, 4)
	if found := leftovers(t, "endurance"); len(found) > 0 {
		t.Errorf("processes of trials that still run: %v", found)
	}
	for _, dir := range []string{scratch, state} {
		if left := filesIn(dir); len(left) > 0 {
			t.Errorf("left in %s: %v", filepath.Base(dir), left)
		}
	}
}

// watched is a run of the program, and what it held while it ran.
type watched struct {
	err           error
	stdout, trace string
	took          time.Duration
	samples       []footprint
}

// watch runs the program to its end and looks at it twice a second. The Go runtime itself prints each goroutine with
// its state five times in two seconds: the program needs no door for that.
func watch(t *testing.T, scratch string, limit time.Duration, args ...string) (w watched) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(environ(t), "TMPDIR="+scratch, "GODEBUG=schedtrace=400,scheddetail=1")
	var stdout, trace bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &trace
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case w.err = <-ended:
			w.stdout, w.trace, w.took = stdout.String(), trace.String(), time.Since(begun)
			return w
		case <-time.After(500 * time.Millisecond):
			if f, ok := footprintOf(cmd.Process.Pid); ok {
				w.samples = append(w.samples, f)
			}
		}
	}
}

// footprint is what a process holds at one instant.
type footprint struct{ rss, threads, files float64 }

func footprintOf(pid int) (f footprint, ok bool) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return f, false
	}
	for line := range strings.Lines(string(status)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		v, _ := strconv.ParseFloat(fields[1], 64)
		switch fields[0] {
		case "VmRSS:":
			f.rss = v * 1024
		case "Threads:":
			f.threads = v
		}
	}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	f.files = float64(len(files))
	return f, err == nil && f.rss > 0
}

func column(samples []footprint, of func(footprint) float64) []float64 {
	var out []float64
	for _, f := range samples {
		out = append(out, of(f))
	}
	return out
}

var goroutine = regexp.MustCompile(`(?m)^  G\d+: status=(\d+)`)

// goroutines counts the living ones of each of the runtime's reports; 6 is a dead one that waits to be used again.
func goroutines(trace string) []float64 {
	var out []float64
	for _, report := range strings.Split(trace, "SCHED ")[1:] {
		alive := 0.0
		for _, g := range goroutine.FindAllStringSubmatch(report, -1) {
			if g[1] != "6" {
				alive++
			}
		}
		out = append(out, alive)
	}
	return out
}

// steady compares the least of the second quarter with the least of the last, which may be larger by the given share
// and amount. What a trial holds while it runs goes up and down (its 48 clients come and go); what grows with trials
// does not come back, not even between two of them.
func steady(t *testing.T, what string, v []float64, share, amount float64) {
	t.Helper()
	if len(v) < 8 {
		t.Errorf("%s: only %d samples", what, len(v))
		return
	}
	q := len(v) / 4
	before, after := slices.Min(v[q:2*q]), slices.Min(v[3*q:])
	t.Logf("%-11s least by quarters %.0f %.0f %.0f %.0f, most %.0f", what, slices.Min(v[:q]), before, slices.Min(v[2*q:3*q]), after, slices.Max(v))
	if after > before*(1+share)+amount {
		t.Errorf("%s grew from %.0f to %.0f", what, before, after)
	}
}

// filesIn are the files below a folder.
func filesIn(dir string) []string {
	var out []string
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out = append(out, path)
		}
		return nil
	})
	return out
}
