package tuner_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// The server launched last is the winner only after better, else the baseline.
func TestFinishLaunch(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		launch string
		trials int
		want   float64 // mem-fraction-static, 0 = none
	}{
		{"best after better", "best", 5, 0.9},
		{"best without a candidate", "best", 1, 0.85},
		{"baseline", "baseline", 5, 0.85},
		{"none", "none", 5, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := smallStudy()
			s.After, s.Finish.Launch, s.Budget.Trials = nil, tt.launch, tt.trials
			r := newRig(t, s)
			if _, err := r.loop.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			rec := r.store.Record()
			if tt.want == 0 {
				if len(r.host.started) != 0 || rec.AfterDone != "" {
					t.Errorf("started %v, %q", r.host.started, rec.AfterDone)
				}
				return
			}
			if len(r.host.started) != 1 || r.host.started[0]["mem-fraction-static"] != tt.want || !strings.Contains(rec.AfterDone, "pid 4711") {
				t.Errorf("started %v, %q", r.host.started, rec.AfterDone)
			}
		})
	}
}

// Everybody is told how it ended; a notification that fails is an event, not a failed study.
func TestNotify(t *testing.T) {
	t.Parallel()
	s := smallStudy()
	s.Finish.Notify = []tuner.Notify{{URL: "http://broken"}, {Run: []string{"./notify.sh"}}}
	r := newRig(t, s)
	r.host.fail = map[string]error{"start-service": errors.New("exit status 1")}
	r.store.record = []byte(`{"Simulated": true}`)
	r.restart(t)
	var got tuner.Message
	r.loop.Notify = func(_ context.Context, to tuner.Notify, m tuner.Message) error {
		if to.URL != "" {
			return errors.New("connection refused")
		}
		got = m
		return nil
	}
	if _, err := r.loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"SIMULATED", "study night is complete", "better: trial 4", "after: failed: exit status 1"} {
		if !strings.Contains(got.Text, want) {
			t.Errorf("the message does not say %q: %s", want, got.Text)
		}
	}
	if told := r.store.texts("notify"); len(told) != 1 || !strings.Contains(told[0], "connection refused") {
		t.Errorf("events %v", told)
	}
}

// A lossy baseline runs as the user runs it and is compared with its lossless twin too.
func TestLossyBaseline(t *testing.T) {
	t.Parallel()
	s := smallStudy()
	s.Baseline = sglang.Config{"mem-fraction-static": 0.85, "kv-cache-dtype": "fp8_e4m3"}
	r := newRig(t, s)
	v, err := r.loop.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := r.trials(t)
	if h[0].Config["kv-cache-dtype"] != "fp8_e4m3" || h[1].Config["kv-cache-dtype"] != "bf16" || h[1].Config["mem-fraction-static"] != 0.85 || h[1].Sampler != "twin" {
		t.Errorf("baseline %v, first search trial %v by %s", h[0].Config, h[1].Config, h[1].Sampler)
	}
	for _, row := range h.Role(trial.RoleSearch) {
		if row.Config["kv-cache-dtype"] != "bf16" {
			t.Errorf("trial %d is lossy: %v", row.Number, row.Config)
		}
	}
	if !strings.Contains(v.Text, "lossy") {
		t.Errorf("the verdict does not say that the baseline is lossy: %s", v.Text)
	}
}

// A baseline that never gets through ends the study instead of being launched for ever.
func TestBaselineNeverEnds(t *testing.T) {
	t.Parallel()
	aborted := func(*trial.Trial) *trial.Verdict {
		return &trial.Verdict{Outcome: trial.Aborted, Cause: "operator_signal", Blames: trial.BlameNo, Text: "somebody ended it"}
	}
	tests := []struct {
		name   string
		change func(r *rig)
		want   int
	}{
		{"ended from outside", func(r *rig) { r.runner.script = aborted }, 3},
		{"longer than the night", func(r *rig) {
			r.study.Budget.Until = "23:00"
			r.runner.during = func(ctx context.Context, _ *trial.Trial) {
				r.clock.advance(2 * time.Hour)
				<-ctx.Done()
			}
		}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := smallStudy()
			s.Budget.Trials = 3
			r := newRig(t, s)
			tt.change(r)
			v, err := r.loop.Run(t.Context())
			h := r.trials(t)
			if err != nil || v.Answer != "not confirmed" || len(h) != tt.want {
				t.Errorf("%+v, %v, %d trials", v, err, len(h))
			}
		})
	}
}

// A search trial that is hopeless by its windows is pruned; baseline and confirmation never are.
func TestPruneHook(t *testing.T) {
	t.Parallel()
	r := newRig(t, smallStudy())
	pruned := map[trial.Role]int{}
	r.runner.during = func(_ context.Context, row *trial.Trial) {
		if r.loop.Prune(row, []float64{100, 101, 99, 100, 102}) {
			pruned[row.Role]++
		}
		if r.loop.Prune(row, []float64{2000, 2001, 1999, 2000, 2002}) {
			t.Errorf("trial %d was pruned at 2000 tok/s", row.Number)
		}
		good := &trial.Trial{
			Number: row.Number, Role: row.Role, Plan: append(row.Plan, row.Plan...),
			Levels: []trial.Level{{Concurrency: row.Plan[0], Report: &benchmark.Report{OutputTokS: 1e6}}},
		}
		if r.loop.Hopeless(good) {
			t.Errorf("trial %d is hopeless although its first level is the best of all", row.Number)
		}
	}
	if _, err := r.loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(pruned) != 1 || pruned[trial.RoleSearch] != 4 {
		t.Errorf("pruned %v", pruned)
	}
}

// What the terminal shows: where the study stands at each turn.
func TestStatus(t *testing.T) {
	t.Parallel()
	r := newRig(t, smallStudy())
	var seen []tuner.Status
	r.loop.Show = func(s tuner.Status) { seen = append(seen, s) }
	if _, err := r.loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	last := seen[len(seen)-1]
	if len(seen) != 22 || seen[0].Next == nil || seen[0].Baseline != nil || last.Next != nil ||
		last.Baseline.Number != 0 || last.Best.Number != 4 || last.Failed.Number != 3 || last.Plan.Launches != 5 {
		t.Errorf("%d turns, the last one %+v", len(seen), last)
	}
}
