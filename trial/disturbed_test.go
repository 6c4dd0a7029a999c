package trial_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sgtune/benchmark"
	"sgtune/trial"
)

// TestSleepDiscardsTheLevel: a level during which this machine slept, or sgtune was stopped, is measured anew under
// the same launch; one that is disturbed each time says nothing about its configuration.
func TestSleepDiscardsTheLevel(t *testing.T) {
	t.Parallel()
	const hours = 2 * time.Hour
	for _, c := range []struct {
		name     string
		sleep    func(times int) time.Duration // in the first window of the level of 2 clients, when measured for the nth time
		pause    func(times int) time.Duration // sgtune stands still so long, real time
		runs     int                           // of that level
		state    trial.State
		verdict  string
		findings int
		says     string
	}{
		{"awake", nil, nil, 1, trial.Complete, "ok / none", 0, ""},
		{"a step of the clock", func(int) time.Duration { return time.Second }, nil, 1, trial.Complete, "ok / none", 0, ""},
		{"put back", func(int) time.Duration { return -hours }, nil, 1, trial.Complete, "ok / none", 0, ""},
		{"slept once", onlyAt(1, hours), nil, 2, trial.Complete, "ok / none", 1, "asleep for 2h0m0s while 2 clients were measured"},
		{"slept each time", func(int) time.Duration { return hours }, nil, 3, trial.Failed, "bench_invalid / client_hung", 2, "asleep for 2h0m0s"},
		{"stopped once", nil, onlyAt(1, 600*time.Millisecond), 2, trial.Complete, "ok / none", 1, "sgtune stood still for"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, tr, told, runs := disturbed(t, c.sleep, c.pause)
			for range 4 { // a busy machine makes the client late, which is nobody's fault
				if tr.Verdict.Cause != "client_limited" {
					break
				}
				r, tr, told, runs = disturbed(t, c.sleep, c.pause)
			}
			if got := string(tr.Verdict.Outcome) + " / " + tr.Verdict.Cause; tr.State != c.state || got != c.verdict || runs != c.runs || tr.Void != "" {
				t.Errorf("state %s, verdict %s (%s), measured %d times, void %q", tr.State, got, tr.Verdict.Text, runs, tr.Void)
			}
			found := slices.DeleteFunc(slices.Clone(tr.Verdict.Findings), func(f trial.Finding) bool { return f.Name != "level_discarded" })
			if len(found) != c.findings || c.findings > 0 && !strings.Contains(found[0].Text+strings.Join(told, "; ")+tr.Verdict.Text, c.says) {
				t.Errorf("findings %+v, told %v", found, told)
			}
			if c.state == trial.Complete && (len(tr.Levels) != 2 || !measured(tr.Levels[0].Report) || tr.Levels[0].Concurrency != 2) {
				t.Errorf("levels %+v", tr.Levels)
			}
			text, err := os.ReadFile(filepath.Join(r.Files, tr.Dir, "level-2.samples.jsonl"))
			if n, want := bytes.Count(text, []byte("\n")), tr.Levels[0].Report.Requests; err != nil || n < want.Sent || n > want.Sent+tr.Levels[0].Report.Warmup+8 {
				t.Errorf("%d samples of a level with %d requests, %v", n, want.Sent, err)
			}
		})
	}
}

// disturbed runs a trial whose machine sleeps, or whose sgtune stands still, in the run of its first level of that number,
// nil for never. It returns what was told, and how often that level was run.
func disturbed(t *testing.T, sleep, pause func(run int) time.Duration) (r *trial.Runner, tr *trial.Trial, told []string, runs int) {
	t.Helper()
	r, tr = newRunner(t, newFakeHost(t, script{log: startLog}), &fakeStore{}), newTrial(2, 4)
	r.Load.Canary = 0
	var slept atomic.Int64
	r.Asleep = func() time.Duration { return time.Duration(slept.Load()) }
	r.Notice = func(kind, text string) { told = append(told, kind+": "+text) }
	var last time.Time
	r.Progress = func(p trial.Progress) {
		if p.Window == nil || p.Level != 2 {
			return
		}
		begins := !p.Window.Start.Equal(last.Add(r.Load.Window)) // the windows of one run follow each other
		if last = p.Window.Start; !begins {
			return
		}
		runs++
		if sleep != nil {
			slept.Add(int64(sleep(runs)))
		}
		if pause != nil {
			time.Sleep(pause(runs))
		}
	}
	if err := r.Run(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	return r, tr, told, runs
}

// measured reports whether nothing but this machine's own load spoils a report.
func measured(r *benchmark.Report) bool {
	return r.Valid || r.Invalid == benchmark.InvalidClientLimited
}

func onlyAt(n int, d time.Duration) func(int) time.Duration {
	return func(times int) time.Duration {
		if times == n {
			return d
		}
		return 0
	}
}

// TestSleepVoidsAFailure: a server that dies after this machine slept is not blamed for it.
func TestSleepVoidsAFailure(t *testing.T) {
	t.Parallel()
	for name, sleeps := range map[string]time.Duration{"slept": 3 * time.Hour, "awake": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, store := newFakeHost(t, script{log: startLog, oomAfter: 6, oom: prefillOOM}), &fakeStore{}
			r, tr := newRunner(t, h, store), newTrial(2)
			var slept atomic.Int64
			r.Asleep = func() time.Duration { return time.Duration(slept.Load()) }
			store.at = func(row *trial.Trial) error {
				if row.Step == trial.StepCanary {
					slept.Store(int64(sleeps))
				}
				return nil
			}
			if err := r.Run(t.Context(), tr); err != nil {
				t.Fatal(err)
			}
			if tr.State != trial.Failed || (tr.Void != "") != (sleeps > 0) || sleeps > 0 && tr.Void != "this machine was asleep for 3h0m0s while it ran" {
				t.Errorf("state %s, verdict %s, void %q", tr.State, tr.Verdict.Outcome, tr.Void)
			}
		})
	}
}
