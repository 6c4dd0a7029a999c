package tuner_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// waitDone waits in real time until the loop has obeyed a command given during a trial.
func waitDone(t *testing.T, what string, done func() bool) {
	t.Helper()
	for range 2000 {
		if done() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%s: not obeyed within 2 s", what)
}

func TestStopAfterTrial(t *testing.T) {
	t.Parallel()
	r := newRig(t, smallStudy())
	r.runner.during = func(_ context.Context, row *trial.Trial) {
		if row.Number == 2 {
			r.store.push(tuner.Command{ID: 1, Kind: "stop_after_trial"})
			waitDone(t, "stop_after_trial", func() bool { return len(r.store.texts("command")) > 0 })
		}
	}
	_, err := r.loop.Run(t.Context())
	h := r.trials(t)
	if !errors.Is(err, trial.ErrStopped) || len(h) != 3 || h[2].State != trial.Complete || !slices.Contains(r.host.ran, "start-service") {
		t.Errorf("error %v, %d trials, ran %v", err, len(h), r.host.ran)
	}
	r.runner.during = nil
	r.restart(t)
	if v, err := r.loop.Run(t.Context()); err != nil || v.Answer != "better" {
		t.Errorf("continued: %+v, %v", v, err)
	}
}

func TestStopNow(t *testing.T) {
	t.Parallel()
	r := newRig(t, smallStudy())
	r.runner.during = func(ctx context.Context, row *trial.Trial) {
		if row.Number == 2 {
			r.store.push(tuner.Command{ID: 1, Kind: "stop_now"})
			<-ctx.Done()
		}
	}
	_, err := r.loop.Run(t.Context())
	h := r.trials(t)
	if !errors.Is(err, trial.ErrStopped) || len(h) != 3 || h[2].State != trial.Cancelled {
		t.Fatalf("error %v, %d trials", err, len(h))
	}
	r.runner.during = nil
	r.restart(t)
	v, err := r.loop.Run(t.Context())
	if err != nil || v.Answer != "better" {
		t.Fatalf("continued: %+v, %v", v, err)
	}
	if again := r.trials(t).Numbered(3); again.Config.Key() != h[2].Config.Key() || !strings.HasPrefix(again.Why, "again: trial 2") {
		t.Errorf("the interrupted configuration was not queued again: %+v", again)
	}
}

// Ctrl-C ends the running trial and the study; after: still runs.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	r := newRig(t, smallStudy())
	ctx, stop := context.WithCancelCause(t.Context())
	r.runner.during = func(_ context.Context, row *trial.Trial) {
		if row.Number == 1 {
			stop(trial.ErrStopped)
		}
	}
	_, err := r.loop.Run(ctx)
	h, rec := r.trials(t), r.store.Record()
	if !errors.Is(err, trial.ErrStopped) || h[1].State != trial.Cancelled || rec.State != tuner.StudyStopped || rec.Reason == "" || rec.AfterDue {
		t.Errorf("error %v, trial 1 %s, record %+v", err, h[1].State, rec)
	}
	if !slices.Contains(r.host.ran, "start-service") {
		t.Errorf("after: did not run: %v", r.host.ran)
	}
}

// A void finished trial keeps everything but its rank and is launched again; voiding the running
// one ends it.
func TestVoid(t *testing.T) {
	t.Parallel()
	r := newRig(t, smallStudy())
	r.study.Budget.Trials = 8
	r.runner.during = func(ctx context.Context, row *trial.Trial) {
		switch row.Number {
		case 2:
			r.store.push(tuner.Command{ID: 1, Kind: "void", Trial: 1, Text: "somebody compiled a kernel"})
			waitDone(t, "void", func() bool { return len(r.store.texts("command")) > 0 })
		case 3:
			r.store.push(tuner.Command{ID: 2, Kind: "void", Trial: 3})
			<-ctx.Done()
		}
	}
	v, err := r.loop.Run(t.Context())
	if err != nil || v.Answer != "better" {
		t.Fatalf("%+v, %v", v, err)
	}
	h := r.trials(t)
	if h[1].Void != "somebody compiled a kernel" || h[1].State != trial.Complete || h[1].Value == nil {
		t.Errorf("trial 1: %+v", h[1])
	}
	for _, n := range []int{1, 3} {
		again := count(h, func(t *trial.Trial) bool {
			return t.Role == trial.RoleSearch && t.Config.Key() == h[n].Config.Key() && t.Void == ""
		})
		if h[n].Void == "" || again != 1 {
			t.Errorf("trial %d: void %q, launched again %d times", n, h[n].Void, again)
		}
	}
}

func TestEnqueue(t *testing.T) {
	t.Parallel()
	r := newRig(t, smallStudy())
	for _, c := range []sglang.Config{
		{"mem-fraction-static": 0.87},
		{"mem-fraction-static": 0.88, "hicache-size": 300.0},        // host RAM
		{"mem-fraction-static": 0.88, "kv-cache-dtype": "fp8_e4m3"}, // quality
		{"mem-fraction-static": 0.87},                               // waits already
	} {
		r.store.push(tuner.Command{Kind: "enqueue", Config: c, Text: "a hunch"})
	}
	if _, err := r.loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := r.trials(t)
	if h[0].Sampler != "person" || h[0].Config["mem-fraction-static"] != 0.87 || h[0].Config["kv-cache-dtype"] != "bf16" {
		t.Errorf("first row: %+v", h[0])
	}
	rejects := strings.Join(r.store.texts("reject"), "\n")
	for _, want := range []string{"host RAM", "2400.0 GB", "quality", "fp8_e4m3", "waits to be"} {
		if !strings.Contains(rejects, want) {
			t.Errorf("rejections do not say %q:\n%s", want, rejects)
		}
	}
	if h.Launches() != 5 {
		t.Errorf("%d launches, the budget is 5", h.Launches())
	}
}

// The hour ends the study: a running trial is ended at the deadline, the verdict says that it is
// not confirmed, and what is owed is done.
func TestDeadlineEndsRunningTrial(t *testing.T) {
	t.Parallel()
	s := smallStudy()
	s.Budget = tuner.Budget{Until: "23:00"}
	r := newRig(t, s)
	r.runner.during = func(ctx context.Context, row *trial.Trial) {
		if row.Number == 1 {
			r.clock.advance(2 * time.Hour)
			<-ctx.Done()
		}
	}
	v, err := r.loop.Run(t.Context())
	h := r.trials(t)
	if err != nil || v.Answer != "not confirmed" || len(h) != 2 || h[1].Verdict.Outcome != trial.Aborted {
		t.Errorf("%+v, %v, %d trials", v, err, len(h))
	}
	if !slices.Contains(r.host.ran, "start-service") {
		t.Errorf("after: did not run: %v", r.host.ran)
	}
}
