package tuner_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// late is a runner whose trials finish while a command arrives: there is no work left to end.
type late struct {
	*fakeRunner
	after func(t *trial.Trial)
}

func (r late) Run(ctx context.Context, t *trial.Trial) error {
	err := r.fakeRunner.Run(ctx, t)
	r.after(t)
	return err
}

// A trial that is made void while its host is being reclaimed is void all the same.
func TestVoidDuringReclaim(t *testing.T) {
	t.Parallel()
	r := newRig(t, smallStudy())
	r.study.Budget.Trials = 6
	r.push(t, 1, "void")
	if v, err := r.loop.Run(t.Context()); err != nil || v.Answer != "better" {
		t.Fatalf("%+v, %v", v, err)
	}
	h := r.trials(t)
	again := count(h, func(o *trial.Trial) bool {
		return o.Role == trial.RoleSearch && o.Config.Key() == h[1].Config.Key() && o.Void == ""
	})
	if h[1].State != trial.Complete || h[1].Void != "somebody compiled a kernel" || again != 1 {
		t.Errorf("trial 1 is %s, void %q, launched again %d times", h[1].State, h[1].Void, again)
	}
}

// push gives a command about trial number after its work is over and waits until it was obeyed.
func (r *rig) push(t *testing.T, number int, kind string) {
	t.Helper()
	r.loop.Runner = late{r.runner, func(row *trial.Trial) {
		if row.Number == number {
			r.store.push(tuner.Command{ID: 1, Kind: kind, Trial: number, Text: "somebody compiled a kernel"})
			waitDone(t, kind, func() bool { return len(r.store.texts("command")) > 0 })
		}
	}}
}

// An interrupt while the host is cleaned of an earlier run's remains does not leave half of them behind for after:.
func TestInterruptDuringRecovery(t *testing.T) {
	t.Parallel()
	r := newRig(t, smallStudy())
	ctx, stop := context.WithCancelCause(t.Context())
	if err := r.store.SaveTrial(ctx, &trial.Trial{Study: "night", State: trial.Running}); err != nil {
		t.Fatal(err)
	}
	r.loop.Store = cutStore{r.store}
	r.loop.Host = recovering{r.host, func(during context.Context) {
		stop(trial.ErrStopped)
		if during.Err() != nil {
			t.Error("the recovery was cut short")
		}
	}}
	if _, err := r.loop.Run(ctx); !errors.Is(err, trial.ErrStopped) {
		t.Errorf("error %v, want stopped by a person", err)
	}
}

// cutStore is a store that ends with its context, as SQLite does.
type cutStore struct{ *memStore }

func (s cutStore) AddEvent(ctx context.Context, study string, e tuner.Event) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.memStore.AddEvent(ctx, study, e)
}

type recovering struct {
	*fakeHost
	check func(context.Context)
}

func (h recovering) Recover(ctx context.Context, running []*trial.Trial) error {
	h.check(ctx)
	return h.fakeHost.Recover(ctx, running)
}

// A driver that once does not answer in time is no other host, and a GPU that goes missing meanwhile is still noticed.
func TestGPUsUnreadForOnce(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]bool{"all come back": false, "one is missing afterwards": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, smallStudy())
			all := r.host.facts.GPUs
			r.runner.during = func(_ context.Context, row *trial.Trial) {
				switch row.Number {
				case 1:
					r.host.facts.GPUs, r.host.facts.GPUNote = nil, "no GPU facts: the NVIDIA driver did not answer within 5s"
				case 2:
					r.host.facts.GPUs, r.host.facts.GPUNote = all, ""
					if lost {
						r.host.facts.GPUs = all[:7]
					}
				}
			}
			v, err := r.loop.Run(t.Context())
			switch {
			case !lost && (err != nil || v.Answer != "better"):
				t.Errorf("%+v, %v", v, err)
			case lost && (err == nil || !strings.Contains(err.Error(), "8 GPUs and has 7")):
				t.Errorf("error %v after %d trials", err, len(r.trials(t)))
			}
		})
	}
}

// Host RAM is asked for before each launch, those of the confirmation too: somebody may have filled the host since.
func TestConfirmationWantsItsRAM(t *testing.T) {
	t.Parallel()
	s := smallStudy()
	s.Space = append(s.Space[:1:1], s.Space[0])
	s.Space[1].Name, s.Space[1].Values = "hicache-size", []any{48.0}
	s.Space[0].Values = []any{0.86}
	s.Budget.Trials = 2
	r := newRig(t, s)
	r.runner.during = func(_ context.Context, row *trial.Trial) {
		if row.Role == trial.RoleConfirm {
			r.host.facts.MemAvailable = 200e9
		}
	}
	v, err := r.loop.Run(t.Context())
	h := r.trials(t)
	if err != nil || v.Answer != "not confirmed" || len(h) != 3 || h[2].Role != trial.RoleConfirm {
		t.Fatalf("%+v, %v, %d trials", v, err, len(h))
	}
	told := func(text string) bool {
		return strings.Contains(text, "host RAM") && strings.Contains(text, "384.0 GB")
	}
	if !slices.ContainsFunc(r.store.texts("plan"), told) {
		t.Errorf("no event says why: %v", r.store.texts("plan"))
	}
	r.runner.during, r.host.facts.MemAvailable = nil, 440e9
	r.restart(t)
	if v, err := r.loop.Run(t.Context()); err != nil || v.Answer != "better" {
		t.Errorf("with the memory free again: %+v, %v", v, err)
	}
}

// What a dirty trial left still holds the host when the study is run again: after: stays owed until it is gone.
func TestAfterWaitsForACleanHost(t *testing.T) {
	t.Parallel()
	r := newRig(t, smallStudy())
	r.runner.script = func(row *trial.Trial) *trial.Verdict {
		if row.Number != 1 {
			return nil
		}
		row.Release = trial.ReleaseDirty
		return &trial.Verdict{Outcome: trial.DirtyHost, Cause: "memory_held", Blames: trial.BlameNo, Text: "memory held"}
	}
	if _, err := r.loop.Run(t.Context()); !errors.Is(err, trial.ErrDirtyHost) {
		t.Fatalf("error %v", err)
	}
	r.host.facts.GPUs[0].Used = 90 << 30
	r.restart(t)
	told := r.messages()
	if _, err := r.loop.Run(t.Context()); !errors.Is(err, tuner.ErrHeld) {
		t.Fatalf("error %v", err)
	}
	if len(*told) != 1 || (*told)[0].Kind != tuner.MessageDirty || !strings.HasPrefix((*told)[0].After, "after: not run") {
		t.Errorf("told %+v", *told)
	}
	if rec := r.store.Record(); !rec.AfterDue || slices.Contains(r.host.ran, "start-service") {
		t.Errorf("after: ran on a dirty host: %v, %+v", r.host.ran, rec)
	}
	r.host.facts.GPUs[0].Used = 0
	r.restart(t)
	if v, err := r.loop.Run(t.Context()); err != nil || v.Answer != "better" || times(r.host.ran, "start-service") != 1 {
		t.Errorf("with the host clean: %+v, %v, ran %v", v, err, r.host.ran)
	}
}

func times(list []string, what string) (n int) {
	for _, s := range list {
		if s == what {
			n++
		}
	}
	return n
}

// A candidate that crashes in every second launch is not better, however fast the others are.
func TestUnstableCandidateIsNotBetter(t *testing.T) {
	t.Parallel()
	r := newRig(t, smallStudy())
	r.study.Confirm = 5
	launches := 0
	r.runner.script = func(row *trial.Trial) *trial.Verdict {
		if row.Role != trial.RoleConfirm || row.Config["mem-fraction-static"] == 0.85 {
			return nil
		}
		if launches++; launches%2 == 1 {
			return nil
		}
		return &trial.Verdict{Outcome: trial.Crashed, Phase: sglang.PhaseDecode, Cause: "silent_exit", Blames: trial.BlamePartly, Text: "gone"}
	}
	v, err := r.loop.Run(t.Context())
	if err != nil || v.Answer != "not confirmed" || v.Low != nil || !strings.Contains(v.Text, "3 of the candidate's") {
		t.Errorf("%+v, %v", v, err)
	}
}

// Candidates that ran in the search and die in the confirmation did run: the verdict says how they ended.
func TestNoCandidateSurvives(t *testing.T) {
	t.Parallel()
	r := newRig(t, smallStudy())
	r.runner.script = func(row *trial.Trial) *trial.Verdict {
		if row.Role != trial.RoleConfirm || row.Config["mem-fraction-static"] == 0.85 {
			return nil
		}
		return &trial.Verdict{Outcome: trial.GPUOOM, Phase: sglang.PhasePrefill, Cause: "prefill_activation", Blames: trial.BlameYes, Text: "gone"}
	}
	v, err := r.loop.Run(t.Context())
	if err != nil || v.Answer != "not confirmed" || !strings.Contains(v.Text, "candidates out: 3") || v.Value != v.BaselineValue {
		t.Errorf("%+v, %v", v, err)
	}
}
