package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

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
	failed := r.strays(ctx, study, running) // first: what they hold is no fault of a row
	for _, t := range running {
		if t.State != Running || errors.Is(failed, ErrLeft) {
			continue
		}
		if err := r.recover(ctx, t); err != nil {
			failed = errors.Join(failed, err)
		}
		if t.State.Finished() {
			recovered = append(recovered, t)
		}
	}
	return recovered, errors.Join(failed, r.others(ctx, study))
}

func (r *Runner) recover(ctx context.Context, t *Trial) error {
	r, giveBack, err := r.resettled(ctx, t)
	if err != nil {
		return err
	}
	p := premises{host: r.Host, clock: r.Clock, marker: t.Marker, launched: touched(t), port: t.Port, before: t.GPUBaseline}
	found := p.prove(ctx)
	if found.left != nil {
		return leftBehind(t, found.left)
	}
	end := r.guardsWords(ctx, t.Marker) + r.lastWords(ctx, t)
	r.forget(t.Marker)
	if err := giveBack(ctx); err != nil {
		return fmt.Errorf("recover trial %d: %w", t.Number, err)
	}
	v := Verdict{
		Outcome: Aborted, Phase: sglang.PhaseLaunch, Cause: causeUnknown, Blames: BlameNo, Advice: []string{adviceRerun},
		Text: fmt.Sprintf("sgtune ended during step %s and left this trial unfinished; its configuration is innocent%s", t.Step, end),
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

// lastWords is how the server of a trial ended, where the host remembers it: by itself while no sgtune was there, or
// just now by our hand. Then the host forgets it.
func (r *Runner) lastWords(ctx context.Context, t *Trial) string {
	h, ok := r.Host.(interface {
		Attach(ctx context.Context, id host.ID) (host.Process, error)
	})
	if !ok || t.Process.PID == 0 {
		return ""
	}
	ctx, cancel := r.within(ctx, stopTime, stopTimeReal)
	defer cancel()
	p, err := h.Attach(ctx, t.Process)
	if err != nil { // ErrNoProcess: started before a reboot, or cleaned up since
		return ""
	}
	text := ""
	select {
	case <-p.Done():
		if exit := p.Exit(); exit.Known && exit.Signal != killSignal {
			text = fmt.Sprintf("; its server had ended by itself at %s (exit status %d, signal %d)", exit.At.Format(time.RFC3339), exit.Code, exit.Signal)
		}
	case <-ctx.Done():
		return ""
	}
	if err := host.Forget(ctx, p); err != nil {
		r.notice("finding", fmt.Sprintf("trial %d: the host still keeps the server's unmasked log: %v", t.Number, err))
	}
	return text
}

// killSignal is how Reclaim ends a server.
const killSignal = 9

// touched reports whether a trial may have started something.
func touched(t *Trial) bool {
	return !t.StartedAt.IsZero() || t.Step != "" && t.Step != StepAdmit
}

// strays kills marked processes of the study that no row names, for example after a database was
// thrown away.
func (r *Runner) strays(ctx context.Context, study string, rows []*Trial) error {
	list, err := r.Host.Find(ctx, "")
	if errors.Is(err, host.ErrGivenUp) {
		return fmt.Errorf("%w: %w", ErrLeft, err)
	}
	if err != nil {
		return fmt.Errorf("look for processes of dead trials: %w", err)
	}
	done := map[string]bool{}
	for _, t := range rows {
		done[t.Marker] = true
	}
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
		_ = r.guardsWords(ctx, marker) // it is waited for; there is no row that could tell them
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
