package trial_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sgtune/trial"
)

// TestStepTable is the proof of reference style 4: at each step, whatever happens, no process is
// left, the right state is stored, and exactly one finished row.
func TestStepTable(t *testing.T) {
	t.Parallel()
	steps := []trial.Step{
		trial.StepAdmit, trial.StepLaunch, trial.StepWait, trial.StepCanary, trial.StepWarmup, trial.StepMeasure,
		trial.StepStop, trial.StepReclaim, trial.StepSave,
	}
	work := 6 // steps that are work; later ones find the work done
	for i, step := range steps {
		for _, what := range []string{"cancel", "deadline", "void", "prune", "store error", "panic"} {
			t.Run(string(step)+"/"+what, func(t *testing.T) {
				t.Parallel()
				runStep(t, step, what, i < work)
			})
		}
	}
}

func runStep(t *testing.T, step trial.Step, what string, work bool) {
	h, store := newFakeHost(t, script{log: startLog}), &fakeStore{}
	r, tr := newRunner(t, h, store), newTrial()
	if work {
		tr.Plan = []int{2}
	}
	r.Load.Cap, r.Load.Canary = 20*time.Second, 10*time.Second
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	causes := map[string]error{"cancel": trial.ErrStopped, "deadline": trial.ErrDeadline, "void": fmt.Errorf("%w: a stranger on the GPUs", trial.ErrVoid), "prune": trial.ErrPruned}
	var once sync.Once
	broken := errors.New("disk full")
	store.at = func(row *trial.Trial) (err error) {
		if row.Step != step {
			return nil
		}
		once.Do(func() {
			switch what {
			case "store error":
				err = broken
			case "panic":
				panic("a bug")
			default:
				cancel(causes[what])
			}
		})
		return err
	}
	err := r.Run(ctx, tr)

	wantState := trial.Complete
	if work {
		wantState = map[string]trial.State{
			"cancel": trial.Cancelled, "deadline": trial.Failed, "void": trial.Failed, "prune": trial.Pruned, "store error": trial.Failed, "panic": trial.Failed,
		}[what]
	}
	if tr.State != wantState {
		t.Errorf("state %s, want %s (%s)", tr.State, wantState, tr.Verdict.Text)
	}
	if h.alive() != 0 {
		t.Errorf("%d processes left", h.alive())
	}
	if store.finished != 1 {
		t.Errorf("%d finished rows stored, want 1", store.finished)
	}
	last := store.saves[len(store.saves)-1]
	if last.State != wantState || last.EndedAt.IsZero() {
		t.Errorf("last row stored: %s, ended %v", last.State, last.EndedAt)
	}
	if (tr.Void != "") != (work && what == "void") {
		t.Errorf("void mark %q", tr.Void)
	}
	stops := what == "store error" && step != trial.StepSave // at the last save it is tried again
	if stops != errors.Is(err, broken) {
		t.Errorf("Run returned %v", err)
	}
	if err != nil && what != "store error" && what != "panic" {
		t.Errorf("Run returned %v", err)
	}
	if work && wantState == trial.Failed && tr.Verdict.Outcome != trial.Aborted {
		t.Errorf("verdict %+v, want aborted", tr.Verdict)
	}
	if work && what != "prune" && tr.Verdict.Blames != trial.BlameNo {
		t.Errorf("the configuration is blamed: %+v", tr.Verdict)
	}
}

func TestStoreStaysBroken(t *testing.T) {
	t.Parallel()
	h, store := newFakeHost(t, script{log: startLog}), &fakeStore{}
	r, tr := newRunner(t, h, store), newTrial(2)
	full := errors.New("no space left on device")
	store.at = func(row *trial.Trial) error {
		if row.Step == trial.StepMeasure || row.State.Finished() {
			return full
		}
		return nil
	}
	err := r.Run(t.Context(), tr)
	if !errors.Is(err, full) || !strings.Contains(err.Error(), "could not be stored") || !strings.Contains(err.Error(), r.Files) {
		t.Errorf("Run returned %v", err)
	}
	if h.alive() != 0 {
		t.Errorf("%d processes left", h.alive())
	}
}

func TestDirtyHost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		script  script
		noGPUs  bool
		cause   string
		text    string
		release trial.Release
	}{
		{"memory held from outside", script{log: startLog, sticky: true}, false, "memory_held", "outside this container or VM", trial.ReleaseDirty},
		{"a child survives", script{log: startLog, immortal: true}, false, "process_left", "pid", trial.ReleaseDirty},
		{"port stays taken", script{log: startLog, squats: true}, false, "port_held", "pid 4242", trial.ReleaseDirty},
		{"no GPU facts", script{log: startLog}, true, "none", "", trial.ReleaseUnverified},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h, store := newFakeHost(t, c.script), &fakeStore{}
			h.gpus = !c.noGPUs
			r, tr := newRunner(t, h, store), newTrial()
			r.Load.Canary = 0
			r.Score = func([]trial.Level) (float64, int, bool) { return 600, 2, true }
			err := r.Run(t.Context(), tr)
			if dirty := c.release == trial.ReleaseDirty; errors.Is(err, trial.ErrDirtyHost) != dirty {
				t.Errorf("Run returned %v", err)
			}
			if tr.Release != c.release || tr.Verdict.Cause != c.cause || !strings.Contains(tr.Verdict.Text, c.text) {
				t.Errorf("release %s, verdict %s / %s: %s", tr.Release, tr.Verdict.Outcome, tr.Verdict.Cause, tr.Verdict.Text)
			}
			if tr.State != trial.Complete || tr.Value == nil {
				t.Errorf("the measurement was lost: state %s, value %v", tr.State, tr.Value)
			}
			own := slices.ContainsFunc(tr.Verdict.Findings, func(f trial.Finding) bool { return f.Name == "ok" })
			if own != (c.release == trial.ReleaseDirty) {
				t.Errorf("the trial's own verdict: %v", tr.Verdict.Findings)
			}
		})
	}
}
