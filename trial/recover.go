package trial

import (
	"context"
	"errors"
	"fmt"
	"os"

	"sgtune/benchmark"
	"sgtune/host"
	"sgtune/sglang"
)

// Recover cleans up after a sgtune that died. The caller holds the host's lease, so every trial of
// running (the rows of study in state running) is an orphan: its processes are found by their marker
// and killed, the host is verified, and the row becomes failed and aborted, innocent. Rows in other
// states are left alone: a waiting one has touched nothing. Marked processes of study without such
// a row are killed too.
//
// It returns the rows it finished; the loop queues their configurations again. The error is
// ErrDirtyHost when something is still held, or says which row could not be stored; all rows are
// tried in either case.
func Recover(ctx context.Context, h host.Host, clock benchmark.Clock, study string, running []*Trial, store Saver) ([]*Trial, error) {
	r := &Runner{Host: h, Clock: clock, Store: store}
	var recovered []*Trial
	var failed error
	for _, t := range running {
		if t.State != Running {
			continue
		}
		if err := r.recover(ctx, t); err != nil {
			failed = errors.Join(failed, err)
		}
		if t.State.Finished() {
			recovered = append(recovered, t)
		}
	}
	return recovered, errors.Join(failed, r.strays(ctx, study))
}

func (r *Runner) recover(ctx context.Context, t *Trial) error {
	p := premises{host: r.Host, clock: r.Clock, marker: t.Marker, launched: touched(t), port: t.Port, before: t.GPUBaseline}
	found := p.prove(ctx)
	r.forget(t.Marker)
	v := Verdict{
		Outcome: Aborted, Phase: sglang.PhaseLaunch, Cause: causeUnknown, Blames: BlameNo, Advice: []string{adviceRerun},
		Text: fmt.Sprintf("sgtune ended during step %s and left this trial unfinished; its configuration is innocent", t.Step),
	}
	done := *t
	done.State, done.EndedAt, done.Release, done.Verdict = Failed, r.Clock.Now(), found.Release, dirty(v, found)
	if err := r.Store.SaveTrial(ctx, &done); err != nil {
		return fmt.Errorf("store recovered trial %d: %w", t.Number, err)
	}
	*t = done
	if found.Release == ReleaseDirty {
		return fmt.Errorf("recover trial %d: %w: %s", t.Number, ErrDirtyHost, found.Text)
	}
	return nil
}

// touched reports whether a trial may have started something.
func touched(t *Trial) bool {
	return !t.StartedAt.IsZero() || t.Step != "" && t.Step != StepAdmit
}

// strays kills marked processes of the study that no row names, for example after a database was
// thrown away.
func (r *Runner) strays(ctx context.Context, study string) error {
	list, err := r.Host.Find(ctx, "")
	if err != nil {
		return fmt.Errorf("look for processes of dead trials: %w", err)
	}
	done := map[string]bool{}
	var failed error
	for _, p := range list {
		marker := p.ID().Marker
		if done[marker] || studyOf(marker) != study {
			continue
		}
		done[marker] = true
		if _, err := Reclaim(ctx, r.Host, r.Clock, marker); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%w: %w", ErrDirtyHost, err))
		}
		r.forget(marker)
	}
	return failed
}

// forget removes the unmasked log of a launch. It may be gone, or on another host.
func (r *Runner) forget(marker string) {
	if marker != "" {
		_ = os.RemoveAll(scratch(r.Scratch, marker))
	}
}
