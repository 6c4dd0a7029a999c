package tuner_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"sgtune/trial"
	"sgtune/tuner"
)

// adoptingRunner leaves its host in trial 2, as a sgtune that was killed, and can go on with it unless refused says no.
type adoptingRunner struct {
	leavingRunner
	refused error
}

func (r adoptingRunner) Adopt(_ context.Context, t *trial.Trial) (func(context.Context, *trial.Trial) error, error) {
	if r.refused != nil {
		return nil, r.refused
	}
	return func(ctx context.Context, t *trial.Trial) error {
		t.Adopted = true
		return r.fakeRunner.Run(ctx, t)
	}, nil
}

// TestAdoptInAStudy: with recover: adopt the next run finishes the trial that was left, before it takes the host over; in any
// other case the trial is reclaimed and its configuration launched again.
func TestAdoptInAStudy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		recover string
		refused error
		adopted bool
		event   string // of the host, "" = none about an adoption
	}{
		{"adopted", tuner.RecoverAdopt, nil, true, "adopted the server that an earlier run left in trial 2"},
		{"not proven", tuner.RecoverAdopt, errors.New("not adopted: pid 7 is gone"), false, "the server that an earlier run left in trial 2 is reclaimed, not adopted: pid 7 is gone"},
		{"not asked for", tuner.RecoverReclaim, nil, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := smallStudy()
			s.Recover = c.recover
			r := newRig(t, s)
			runner := adoptingRunner{leavingRunner{r.runner, 2}, c.refused}
			r.loop.Runner = runner
			if _, err := r.loop.Run(t.Context()); !errors.Is(err, trial.ErrLeft) {
				t.Fatalf("error %v", err)
			}
			left := r.trials(t)[2]
			r.restart(t)
			runner.at = -1
			r.loop.Runner = runner
			if v, err := r.loop.Run(t.Context()); err != nil || v.Answer != "better" {
				t.Fatalf("resumed: %+v, %v", v, err)
			}
			h := r.trials(t)
			if got := h[2]; got.Adopted != c.adopted || (got.State == trial.Complete) != c.adopted || (got.Verdict.Outcome == trial.Aborted) == c.adopted {
				t.Errorf("trial 2: %s, adopted %v, %s", got.State, got.Adopted, got.Verdict.Outcome)
			}
			again := slices.ContainsFunc(h[3:], func(t *trial.Trial) bool {
				return t.Role == trial.RoleSearch && t.Config.Key() == left.Config.Key()
			})
			if again == c.adopted {
				t.Errorf("launched again: %v", again)
			}
			told := strings.Join(r.store.texts("host"), "\n")
			if c.event == "" && strings.Contains(told, "the server that an earlier run left") || !strings.Contains(told, c.event) {
				t.Errorf("events: %s", told)
			}
		})
	}
}

// TestAdoptMoreThanOne: two trials that were left are more than a host runs; none of them is gone on with.
func TestAdoptMoreThanOne(t *testing.T) {
	t.Parallel()
	s := smallStudy()
	s.Recover = tuner.RecoverAdopt
	r := newRig(t, s)
	for n := range 2 {
		row := &trial.Trial{Study: "night", Number: n, Role: trial.RoleSearch, State: trial.Running, Config: s.Baseline}
		if err := r.store.SaveTrial(t.Context(), row); err != nil {
			t.Fatal(err)
		}
	}
	r.loop.Runner = adoptingRunner{leavingRunner{r.runner, -1}, nil}
	if _, err := r.loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	h, told := r.trials(t), strings.Join(r.store.texts("host"), "\n")
	if h[0].Adopted || h[1].Adopted || !strings.Contains(told, "left in trials 0, 1 is reclaimed, not adopted: a host has one") {
		t.Errorf("adopted %v, %v; %s", h[0].Adopted, h[1].Adopted, told)
	}
}

// TestRecoverKey: the default is to reclaim, and the key may change when a study is continued.
func TestRecoverKey(t *testing.T) {
	t.Parallel()
	plain, adopt := mustParse(t, minimal), mustParse(t, minimal+"recover: adopt\n")
	if plain.Recover != tuner.RecoverReclaim || adopt.Recover != tuner.RecoverAdopt {
		t.Errorf("recover %q and %q", plain.Recover, adopt.Recover)
	}
	if d := tuner.DiffIdentity(plain.Identity(), adopt.Identity()); len(d) > 0 {
		t.Errorf("another study: %v", d)
	}
}
