package tuner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/trial"
)

// Errors that Run's error wraps, for what a caller branches on. trial.ErrStopped and
// trial.ErrDirtyHost are wrapped too.
var (
	// ErrHeld: somebody else's processes hold the GPUs or the port; nothing was started.
	ErrHeld = errors.New("the host is held by somebody else")
	// ErrBreaker: going on makes no sense; Stopped.Reason says why.
	ErrBreaker = errors.New("the circuit breaker stopped the study")
	// ErrHandOver: a before: program failed.
	ErrHandOver = errors.New("the hand-over failed")
)

// Stopped is Run's error when a study ended without a verdict. It can be continued by running it
// again.
type Stopped struct {
	Reason string // one sentence for a person, says what to do
	Cause  error  // what errors.Is finds
}

// Error is the reason.
func (s *Stopped) Error() string { return s.Reason }

// Unwrap gives the cause.
func (s *Stopped) Unwrap() error { return s.Cause }

// mayGoOn reads the history once the clock is right and the host is still the one the study was begun on. Its
// error is the reason to stop.
func (l *Loop) mayGoOn(ctx context.Context) (History, error) {
	if len(l.running.of) == 0 {
		if err := l.wakeUp(ctx); err != nil {
			return nil, err
		}
	}
	if l.Study.atOnce() == 1 { // else each trial has a host of its own
		if err := l.sameHost(ctx); err != nil {
			return nil, err
		}
	}
	h, err := l.history(ctx)
	if err != nil {
		return nil, err
	}
	l.setDeadline(h)
	if err := breaker(h, l.first); err != nil {
		return nil, err
	}
	return h, l.sameServer(ctx, h)
}

// breakerStrikes is how often the same failure may come before any success.
const breakerStrikes = 3

// deadStrikes is how many launches in a row may end without a way to their server: the way is broken then,
// whatever is launched, and each try costs a load. So many may also fail to start through no fault of theirs, as on
// a full disk: the next ones would fail in seconds until the budget is used up.
const deadStrikes = 2

// breaker looks for a reason to give up among the trials of this run of the program (numbers from
// first on: a person who repaired something and starts again gets a new chance). nil = go on.
func breaker(h History, first int) error {
	strikes := map[string]int{}
	succeeded, dead, unborn := false, 0, 0
	for _, t := range h.Finished() {
		succeeded = succeeded || counts(t)
		if t.Number < first {
			continue
		}
		if why := noToken(t); why != "" {
			return tripped("trial %d %s; look at its log in %s, then run the study again", t.Number, why, t.Dir)
		}
		switch {
		case interrupted(t):
		case t.Verdict.Outcome == trial.EnvFault && t.Verdict.Phase == sglang.PhaseLaunch:
			if unborn++; unborn >= deadStrikes {
				return tripped("%d launches in a row failed before there was a server: %s; repair that, then run the study again", unborn, t.Verdict.Text)
			}
		case t.Verdict.Outcome == trial.Unreachable:
			if dead++; dead >= deadStrikes {
				return tripped("the server of %d launches in a row could not be reached: %s; repair the way to it, then run the study again", dead, t.Verdict.Text)
			}
		default:
			dead, unborn = 0, 0
		}
		if t.State != trial.Failed || interrupted(t) || succeeded {
			continue
		}
		failure := fmt.Sprintf("%s / %s / %s", t.Verdict.Outcome, t.Verdict.Phase, t.Verdict.Cause)
		if strikes[failure]++; strikes[failure] >= breakerStrikes {
			return tripped("the same failure came %d times before anything ran: %s (%s); repair that, then run the study again",
				breakerStrikes, failure, t.Verdict.Text)
		}
	}
	return nil
}

// tripped is the error of a study that the circuit breaker stops.
func tripped(format string, args ...any) error {
	return &Stopped{Cause: ErrBreaker, Reason: "stopped: " + fmt.Sprintf(format, args...)}
}

// noToken says of a replay that sent requests and got no token what came instead, "" for all others: an
// endpoint that is dead is told from one that answers nothing of use. A load generator that stood still
// says nothing about the server.
func noToken(t *trial.Trial) string {
	if t.Void != "" || interrupted(t) {
		return ""
	}
	for _, l := range t.Levels {
		r := l.Report
		if r == nil || r.StoodS > 0 || r.Requests.Sent == 0 || r.Tokens.Got > 0 || slices.ContainsFunc(r.Windows, func(w benchmark.Window) bool { return w.Output > 0 }) {
			continue
		}
		unanswered := r.Requests.Failed["refused"] + r.Requests.Failed["reset"] + r.Requests.Failed["timeout"]
		if unanswered == r.Requests.Sent {
			return fmt.Sprintf("sent %d requests to a dead endpoint: none was answered", r.Requests.Sent)
		}
		return "answered requests without a single token"
	}
	return ""
}

// otherVersion finds a launch of this run whose server was of another SGLang version than the study's first
// one: nil when there is none. A void one is known already.
func otherVersion(h History, first int) (odd *trial.Trial, was string) {
	for _, t := range h {
		switch {
		case t.SGLang == "" || t.Void != "":
		case was == "":
			was = t.SGLang
		case t.SGLang != was && t.Number >= first && t.State.Finished():
			return t, was
		}
	}
	return nil, was
}

// sameHost looks at the host between two trials: one that changed, or was restarted, stops the study.
func (l *Loop) sameHost(ctx context.Context) error {
	before := l.facts
	if err := l.look(ctx); err != nil {
		return err
	}
	if before.BootID != l.facts.BootID && before.BootID != "" && l.facts.BootID != "" {
		return tripped("the host was restarted between two trials, so what before: did there is undone; nothing finished is lost: run the study again to go on")
	}
	return nil
}

// sameServer looks for a launch of another SGLang than the study's first one. Its figures cannot be compared
// with the others', so it is made void.
func (l *Loop) sameServer(ctx context.Context, h History) error {
	odd, was := otherVersion(h, l.first)
	if odd == nil {
		return nil
	}
	if err := l.Store.VoidTrial(ctx, l.Study.Name, odd.Number, fmt.Sprintf("it ran on SGLang %s and the study on %s", odd.SGLang, was)); err != nil {
		return err
	}
	return tripped("SGLang was changed during the study: it was %s and is %s since trial %d, which is void; put %s back and run the study again, or use a new study name",
		was, odd.SGLang, odd.Number, was)
}
