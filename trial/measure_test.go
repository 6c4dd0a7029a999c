package trial_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"sgtune/benchmark"
	"sgtune/trial"
)

// TestCacheProtocol: canary, one flush, fill, then the levels without a flush; no text twice.
func TestCacheProtocol(t *testing.T) {
	t.Parallel()
	h, store := newFakeHost(t, script{log: startLog, refusals: 2}), &fakeStore{}
	r, tr := newRunner(t, h, store), newTrial(2, 4)
	r.Load.Workload = workload(3000, 128, 8)
	r.Load.Fill, r.Load.FillHostPoolGB = 5*time.Minute, 28 // 5,005 tokens of 5.59 MB
	if err := r.Run(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	c := tr.Cache
	if !c.Flushed || c.FillWanted < 5000 || c.FillWanted > 5010 || c.FillAdmitted < c.FillWanted || !c.Full || c.FillPasses != 1 {
		t.Errorf("cache %+v", c)
	}
	events := h.happened()
	flush := slices.Index(events, "flush")
	if flush < 0 || slices.Contains(events[flush+1:], "flush") {
		t.Fatalf("flushed other than once: %v", flush)
	}
	if n := count(events, "flush refused"); n != 2 {
		t.Errorf("%d refused flushes, want 2", n)
	}
	canary, after := prompts(events[:flush]), prompts(events[flush:])
	if len(canary) == 0 || len(after) < 5000/128 {
		t.Errorf("%d canary prompts, %d after the flush", len(canary), len(after))
	}
	seen := map[string]bool{}
	for _, p := range canary {
		if seen[p] {
			t.Errorf("canary text %q was sent twice", p)
		}
		seen[p] = true
	}
	for _, p := range after {
		if seen[p] {
			t.Errorf("canary text %q came again after the flush", p)
		}
	}
	for _, l := range tr.Levels {
		if !l.Report.CacheFull {
			t.Errorf("level %d: the report says the cache was not full", l.Concurrency)
		}
	}
}

func TestNoFill(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*trial.Load)
		note   string
	}{
		{"no hicache knob", func(l *trial.Load) { l.FillHostPoolGB = 0 }, "no hierarchical cache in the space"},
		{"nothing shared", func(l *trial.Load) { l.Workload.Reuse = 0.019 }, "1.9%"},
		{"switched off", func(l *trial.Load) { l.Fill = 0 }, "switched off"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h, store := newFakeHost(t, script{log: startLog}), &fakeStore{}
			r, tr := newRunner(t, h, store), newTrial(2)
			r.Load.Canary, r.Load.Fill, r.Load.FillHostPoolGB = 0, time.Minute, 28
			c.change(&r.Load)
			if err := r.Run(t.Context(), tr); err != nil {
				t.Fatal(err)
			}
			if !tr.Cache.Flushed || tr.Cache.FillWanted != 0 || !strings.Contains(tr.Cache.Note, c.note) {
				t.Errorf("cache %+v", tr.Cache)
			}
		})
	}
}

func TestFillCapped(t *testing.T) {
	t.Parallel()
	h, store := newFakeHost(t, script{log: startLog}), &fakeStore{}
	r, tr := newRunner(t, h, store), newTrial()
	tr.Plan = []int{2}
	r.Load.Canary, r.Load.Fill, r.Load.FillHostPoolGB = 0, time.Minute, 1e6
	if err := r.Run(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	if c := tr.Cache; c.Full || c.FillAdmitted == 0 || !strings.Contains(c.Note, "lower bound") {
		t.Errorf("cache %+v", c)
	}
}

// TestLevelsAreStoredAsTheyEnd: a crash during the second level loses that one only.
func TestLevelsAreStoredAsTheyEnd(t *testing.T) {
	t.Parallel()
	h, store := newFakeHost(t, script{log: startLog}), &fakeStore{}
	r, tr := newRunner(t, h, store), newTrial(2, 4)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	r.Progress = func(p trial.Progress) {
		if p.Level == 4 && p.Window != nil {
			cancel(trial.ErrStopped)
		}
	}
	if err := r.Run(ctx, tr); err != nil {
		t.Fatal(err)
	}
	if tr.State != trial.Cancelled || tr.Step != trial.StepMeasure || len(tr.Levels) != 1 || tr.Levels[0].Concurrency != 2 {
		t.Errorf("state %s in %s, %d levels", tr.State, tr.Step, len(tr.Levels))
	}
	stored := slices.ContainsFunc(store.saves, func(row trial.Trial) bool {
		return row.State == trial.Running && row.Step == trial.StepMeasure && len(row.Levels) == 1
	})
	if !stored {
		t.Error("the first level was not stored before the second ended")
	}
}

// TestHopelessLevels: a level that is stopped early ends the trial only where the rest is hopeless too; a trial
// with one level in full is complete, one without is pruned.
func TestHopelessLevels(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		prune    map[int]bool // by level
		hopeless bool         // asked after the first one
		state    trial.State
		levels   int
		best     int
	}{
		{"the trial with it", map[int]bool{2: true}, true, trial.Pruned, 1, 2},
		{"the rest may be better", map[int]bool{2: true}, false, trial.Complete, 2, 4},
		{"the rest is not", map[int]bool{2: true, 4: true}, false, trial.Pruned, 2, 0},
		{"one level in full", map[int]bool{4: true}, true, trial.Complete, 2, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h, store := newFakeHost(t, script{log: startLog}), &fakeStore{}
			r, tr := newRunner(t, h, store), newTrial(2, 4)
			r.Load.Cap, r.Load.Canary, tr.Plan = 5*time.Minute, 0, []int{2, 4}
			r.Score = func(levels []trial.Level) (value float64, clients int, ok bool) {
				for _, l := range levels { // the last one measured in full, else the first
					if !ok || !l.Report.Pruned {
						value, clients, ok = l.Report.OutputTokS, l.Concurrency, true
					}
				}
				return value, clients, ok
			}
			r.Prune = func(row *trial.Trial, windows []float64) bool {
				return c.prune[row.Plan[len(row.Levels)]] && len(windows) >= 2
			}
			r.Hopeless = func(*trial.Trial) bool { return c.hopeless }
			if err := r.Run(t.Context(), tr); err != nil {
				t.Fatal(err)
			}
			if tr.State != c.state || len(tr.Levels) != c.levels || tr.Value == nil || c.best > 0 && tr.Best != c.best {
				t.Errorf("state %s, %d levels, value %v at %d: %s", tr.State, len(tr.Levels), tr.Value, tr.Best, tr.Verdict.Text)
			}
		})
	}
}

// TestFurtherLevels: the plan grows while More names a level.
func TestFurtherLevels(t *testing.T) {
	t.Parallel()
	h, store := newFakeHost(t, script{log: startLog}), &fakeStore{}
	r, tr := newRunner(t, h, store), newTrial(4)
	r.Load.Canary = 0
	plan := tr.Plan
	r.More = func(row *trial.Trial) (int, bool) { return 2, len(row.Levels) < 2 }
	if err := r.Run(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	if tr.State != trial.Complete || !slices.Equal(tr.Plan, []int{4, 2}) || len(tr.Levels) != 2 || tr.Levels[1].Concurrency != 2 || len(plan) != 1 {
		t.Errorf("state %s, plan %v, %d levels", tr.State, tr.Plan, len(tr.Levels))
	}
}

func TestPruneKeepsThePartialResult(t *testing.T) {
	t.Parallel()
	h, store := newFakeHost(t, script{log: startLog}), &fakeStore{}
	r, tr := newRunner(t, h, store), newTrial(2, 4)
	r.Load.Cap, r.Load.Canary = 5*time.Minute, 0
	r.Prune = func(row *trial.Trial, windows []float64) bool { return row.Number == 7 && len(windows) >= 2 }
	if err := r.Run(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	if tr.State != trial.Pruned || len(tr.Levels) != 1 || !tr.Levels[0].Report.Pruned || tr.Value == nil {
		t.Errorf("state %s, %d levels, value %v: %s", tr.State, len(tr.Levels), tr.Value, tr.Verdict.Text)
	}
}

// TestCancelMidStep: the end of work never waits for the step to end by itself.
func TestCancelMidStep(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		script script
		step   trial.Step
	}{
		{"loading", script{log: startLog, load: time.Hour}, trial.StepWait},
		{"waiting for a token", script{log: startLog, noToken: true}, trial.StepWait},
		{"canary hangs", script{log: startLog, hangAfter: 3}, trial.StepCanary},
		{"flush refused", script{log: startLog, refusals: 1e6}, trial.StepWarmup},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h, store := newFakeHost(t, c.script), &fakeStore{}
			r, tr := newRunner(t, h, store), newTrial(2)
			ctx, cancel := context.WithCancelCause(t.Context())
			store.at = func(row *trial.Trial) error {
				if row.Step == c.step && row.State == trial.Running {
					time.AfterFunc(60*time.Millisecond, func() { cancel(trial.ErrStopped) })
				}
				return nil
			}
			if err := r.Run(ctx, tr); err != nil {
				t.Fatal(err)
			}
			if tr.State != trial.Cancelled || tr.Step != c.step || h.alive() != 0 || tr.Verdict.Cause != "operator_signal" {
				t.Errorf("state %s in %s, %d processes, verdict %+v", tr.State, tr.Step, h.alive(), tr.Verdict)
			}
			loading := c.step == trial.StepWait
			if term := slices.ContainsFunc(h.happened(), func(e string) bool { return strings.HasPrefix(e, "term") }); term == loading {
				t.Errorf("SIGTERM %t while loading %t: %v", term, loading, h.happened())
			}
		})
	}
}

func TestHurryAndDeafServer(t *testing.T) {
	t.Parallel()
	h, store := newFakeHost(t, script{log: startLog, deaf: true}), &fakeStore{}
	r, tr := newRunner(t, h, store), newTrial()
	hurry := make(chan struct{})
	close(hurry)
	r.Hurry = hurry
	if err := r.Run(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(h.happened(), "term ignored") || h.alive() != 0 {
		t.Errorf("in a hurry SIGTERM was still tried: %v", h.happened())
	}
}

// TestReplayFailures: a living server whose answers fail makes the benchmark invalid, not the server dead.
func TestInvalidReplay(t *testing.T) {
	t.Parallel()
	h, store := newFakeHost(t, script{log: startLog}), &fakeStore{}
	r, tr := newRunner(t, h, store), newTrial(2)
	r.Load.Workload = benchmark.NewWorkload([]benchmark.Row{{InputTokens: 8, OutputTokens: 1}}, 0) // one event, two were sent
	r.Load.Canary = 0
	if err := r.Run(t.Context(), tr); err != nil && !errors.Is(err, trial.ErrDirtyHost) {
		t.Fatal(err)
	}
	if len(tr.Levels) != 1 || tr.State != trial.Complete && tr.Verdict.Outcome != trial.BenchInvalid {
		t.Errorf("state %s, %d levels, verdict %+v", tr.State, len(tr.Levels), tr.Verdict)
	}
}

// TestStoodStill: a trial whose client stood still is measured again; it is neither pruned nor worth anything.
func TestStoodStill(t *testing.T) {
	t.Parallel()
	h, store := newFakeHost(t, script{log: startLog}), &fakeStore{}
	r, tr := newRunner(t, h, store), newTrial(2, 4)
	r.Load.Canary = 0
	r.Progress = func(p trial.Progress) {
		if p.Level == 2 && p.Window != nil {
			time.Sleep(600 * time.Millisecond) // two minutes of the host's time
		}
	}
	r.Prune = func(*trial.Trial, []float64) bool { return len(tr.Levels) > 0 }
	if err := r.Run(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	if tr.State != trial.Failed || tr.Verdict.Outcome != trial.BenchInvalid || tr.Verdict.Blames != trial.BlameNo || tr.Value != nil || len(tr.Levels) != 1 {
		t.Errorf("state %s, value %v, %d levels, verdict %+v", tr.State, tr.Value, len(tr.Levels), tr.Verdict)
	}
}

func prompts(events []string) []string {
	var out []string
	for _, e := range events {
		if p, ok := strings.CutPrefix(e, "prompt "); ok {
			out = append(out, p)
		}
	}
	return out
}

func count(events []string, what string) int {
	n := 0
	for _, e := range events {
		if e == what {
			n++
		}
	}
	return n
}

// TestHostPoolIsNotTheServersOwn: RAM that the host pool takes is never booked as the server's own,
// or every configuration with a pool would be refused afterwards.
func TestHostPoolIsNotTheServersOwn(t *testing.T) {
	t.Parallel()
	h, store := newFakeHost(t, script{log: startLog + hostPoolLine}), &fakeStore{}
	r, tr := newRunner(t, h, store), newTrial()
	if err := r.Run(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	if tr.OwnRAM > 16e9 {
		t.Errorf("own RAM %d includes the pool", tr.OwnRAM)
	}
	if tr.MinRAM != 40e9 {
		t.Errorf("least RAM %d, want 40 GB", int64(tr.MinRAM))
	}
}
