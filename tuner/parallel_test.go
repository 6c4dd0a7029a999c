package tuner_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sgtune/trial"
	"sgtune/tuner"
)

// On three hosts the baseline and each confirmation launch run alone, the search three at a time: no configuration
// twice, the budget kept, every row stored before its launch (the runner looks).
func TestSeveralAtOnce(t *testing.T) {
	t.Parallel()
	r, c := newCluster(t, newStudy())
	v, err := r.loop.Run(t.Context())
	if err != nil || v.Answer != "better" {
		t.Fatalf("%+v, %v", v, err)
	}
	if len(c.beside) > 0 || c.most != 3 || len(c.running()) > 0 {
		t.Errorf("at most %d at once, %d left; %v", c.most, len(c.running()), c.beside)
	}
	h := r.trials(t)
	if n := count(h, func(t *trial.Trial) bool { return t.Role != trial.RoleConfirm }); n != r.study.Budget.Trials {
		t.Errorf("%d launches, want %d", n, r.study.Budget.Trials)
	}
	seen := map[string]int{}
	for _, row := range h.Role(trial.RoleSearch) {
		if other, twice := seen[row.Config.Key()]; twice {
			t.Errorf("trials %d and %d are the same configuration", other, row.Number)
		}
		seen[row.Config.Key()] = row.Number
	}
	var sides []bool
	for _, row := range h.Role(trial.RoleConfirm) {
		sides = append(sides, row.Config.Key() == r.study.Baseline.Key())
	}
	if !slices.Equal(sides, []bool{true, false, false, true, true, false}) {
		t.Errorf("baseline's turns in the confirmation: %v", sides)
	}
}

// The physics sampler is told of what runs: two hosts never get the same proposal.
func TestSeveralAtOncePhysics(t *testing.T) {
	t.Parallel()
	s := newStudy()
	s.Sampler, s.Budget.Trials, s.Confirm = "physics", 7, 3
	r, c := newCluster(t, s)
	if v, err := r.loop.Run(t.Context()); err != nil {
		t.Fatalf("%+v, %v", v, err)
	}
	keys := map[string]bool{}
	for _, row := range r.trials(t).Role(trial.RoleSearch) {
		keys[row.Config.Key()] = true
	}
	if len(keys) != 6 || c.most < 2 {
		t.Errorf("%d configurations, at most %d at once", len(keys), c.most)
	}
}

// A lossy baseline's twin runs alone too: nothing is worth more than what it says.
func TestTwinAlone(t *testing.T) {
	t.Parallel()
	s := newStudy()
	s.Baseline["kv-cache-dtype"] = "fp8_e4m3"
	r, c := newCluster(t, s)
	beside := 0
	c.each = func(_ context.Context, row *trial.Trial) error {
		if row.Sampler == "twin" && len(c.running()) > 1 {
			beside++
		}
		return nil
	}
	if _, err := r.loop.Run(t.Context()); err != nil || beside > 0 || c.most != 3 {
		t.Errorf("%v; %d ran beside the twin, at most %d at once", err, beside, c.most)
	}
}

// once does something when trial 3 and two others run.
func (c *cluster) once(number int, do func()) {
	done := false
	c.each = func(_ context.Context, row *trial.Trial) error {
		if row.Number == number && !done {
			done = true
			do()
		}
		return nil
	}
}

func TestStopSeveral(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind string
		want trial.State
	}{{"stop_after_trial", trial.Complete}, {"stop_now", trial.Cancelled}} {
		t.Run(tt.kind, func(t *testing.T) {
			t.Parallel()
			s := smallStudy()
			s.Space[0].Values = []any{0.86, 0.865, 0.87, 0.875, 0.88, 0.885}
			s.Budget.Trials = 7
			r, c := newCluster(t, s)
			var beside []int
			c.once(1, func() {
				beside = slices.DeleteFunc(c.running(), func(n int) bool { return n == 1 })
				r.store.push(tuner.Command{ID: 1, Kind: tt.kind})
				waitDone(t, tt.kind, func() bool { return len(r.store.texts("command")) > 0 })
			})
			_, err := r.loop.Run(t.Context())
			h := r.trials(t)
			if !errors.Is(err, trial.ErrStopped) || len(c.running()) > 0 || len(beside) == 0 || len(h) > 4 {
				t.Fatalf("%v; %d still run, %v ran beside trial 1, %d trials", err, len(c.running()), beside, len(h))
			}
			for _, n := range beside {
				if h[n].State != tt.want {
					t.Errorf("trial %d is %s, want %s", n, h[n].State, tt.want)
				}
			}
			c.each = nil
			r.restart(t)
			c.hand(r)
			if v, err := r.loop.Run(t.Context()); err != nil || v.Answer != "better" {
				t.Errorf("continued: %+v, %v", v, err)
			}
		})
	}
}

// Voiding one of several ends that one; the others go on, and its configuration is launched again.
func TestVoidOneOfSeveral(t *testing.T) {
	t.Parallel()
	r, c := newCluster(t, newStudy())
	voided := -1
	c.once(1, func() {
		for _, n := range c.running() {
			if n != 1 {
				voided = n
			}
		}
		r.store.push(tuner.Command{ID: 1, Kind: "void", Trial: voided, Text: "a neighbour"})
		waitDone(t, "void", func() bool { return len(r.store.texts("command")) > 0 })
	})
	if _, err := r.loop.Run(t.Context()); err != nil || voided < 0 {
		t.Fatalf("%v; trial %d was made void", err, voided)
	}
	h := r.trials(t)
	if h[voided].Void == "" || h[1].Void != "" || h[1].Verdict.Outcome == trial.Aborted {
		t.Errorf("trial %d: void %q; trial 1: void %q, %s", voided, h[voided].Void, h[1].Void, h[1].Verdict.Outcome)
	}
	again := func(row *trial.Trial) bool {
		return row.Config.Key() == h[voided].Config.Key() && row.Void == "" && strings.HasPrefix(row.Why, fmt.Sprintf("again: trial %d ", voided))
	}
	if count(h, again) != 1 {
		t.Errorf("the configuration of trial %d was not launched again", voided)
	}
}

// A dirty host stops the study. What runs on other hosts is measured to its end and stored, and nothing new
// begins.
func TestDirtyHostBesideOthers(t *testing.T) {
	t.Parallel()
	r, c := newCluster(t, newStudy())
	var beside []int
	c.each = func(_ context.Context, row *trial.Trial) error {
		if row.Number != 1 {
			return nil
		}
		beside = slices.DeleteFunc(c.running(), func(n int) bool { return n == 1 })
		return fmt.Errorf("trial 1: %w: pid 99 holds 12 GB of GPU 3", trial.ErrDirtyHost)
	}
	_, err := r.loop.Run(t.Context())
	h, record := r.trials(t), r.store.Record()
	if !errors.Is(err, trial.ErrDirtyHost) || len(c.running()) > 0 || len(beside) == 0 || len(h) != 2+len(beside) {
		t.Fatalf("%v; %d still run, %v ran beside trial 1, %d trials", err, len(c.running()), beside, len(h))
	}
	for _, n := range beside {
		if h[n].State == trial.Running || h[n].State == trial.Cancelled {
			t.Errorf("trial %d beside the dirty host is %s", n, h[n].State)
		}
	}
	if slices.Contains(r.host.ran, "start-service") || !record.AfterDue || !strings.HasPrefix(record.Releases, "dirty") {
		t.Errorf("after: ran %v, due %v; releases %q", r.host.ran, record.AfterDue, record.Releases)
	}
}

// The study's last minute ends all that run.
func TestDeadlineOfSeveral(t *testing.T) {
	t.Parallel()
	s := newStudy()
	s.Budget = tuner.Budget{Wall: 10 * time.Minute}
	r, c := newCluster(t, s)
	c.takes = func(row *trial.Trial) time.Duration {
		if row.Number > 3 {
			return time.Hour
		}
		return 30 * time.Second
	}
	begun := r.clock.Now()
	_, err := r.loop.Run(t.Context())
	cut := count(r.trials(t), func(row *trial.Trial) bool {
		return row.State == trial.Failed && row.Verdict.Outcome == trial.Aborted && !row.EndedAt.After(begun.Add(s.Budget.Wall+time.Minute))
	})
	if cut != 3 || len(c.running()) > 0 {
		t.Errorf("%v; %d were ended, want 3; %d still run", err, cut, len(c.running()))
	}
}

// Each running trial is pruned by what was best when it was launched, its own figures beside it.
func TestPruneSeveral(t *testing.T) {
	t.Parallel()
	r, c := newCluster(t, newStudy())
	pruned := make(chan bool, 100)
	c.each = func(_ context.Context, row *trial.Trial) error {
		if row.Role == trial.RoleSearch {
			pruned <- c.loop().Prune(row, []float64{1, 1, 1, 1, 1, 1})
		}
		return nil
	}
	if _, err := r.loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(pruned)
	for p := range pruned {
		if !p {
			t.Error("a hopeless trial was not given up")
		}
	}
}

// A study that was killed while three trials ran goes on: rows that had ended are kept (the store sees to it), the
// budget too.
func TestKilledWhileSeveralRun(t *testing.T) {
	t.Parallel()
	for _, at := range []int{14, 19, 27} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			s := newStudy()
			s.Budget.Trials = 9
			r, c := newCluster(t, s)
			r.store.killAt, r.store.dead = at, true
			_, killed, err := r.runUntilKilled(t)
			if !killed {
				t.Fatalf("it was not killed: %v", err)
			}
			defer waitDone(t, "the killed study's runners", func() bool { return len(c.running()) == 0 })
			next, hosts := newCluster(t, s)
			hosts.takeOver(t, next, r)
			v, err := next.loop.Run(t.Context())
			if err != nil || v.Answer != "better" {
				t.Fatalf("continued: %+v, %v", v, err)
			}
			h := next.trials(t)
			if n := h.Launches(); n != s.Budget.Trials || slices.ContainsFunc(h, func(row *trial.Trial) bool { return !row.State.Finished() }) {
				t.Errorf("%d launches of %d, or some that did not end", n, s.Budget.Trials)
			}
		})
	}
}
