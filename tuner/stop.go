package tuner

import (
	"errors"
	"fmt"

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

// breakerStrikes is how often the same failure may come before any success.
const breakerStrikes = 3

// breaker looks for a reason to give up among the trials of this run of the program (numbers from
// first on: a person who repaired something and starts again gets a new chance). nil = go on.
func breaker(h History, first int) error {
	strikes := map[string]int{}
	succeeded := false
	for _, t := range h.Finished() {
		succeeded = succeeded || counts(t)
		if t.Number < first {
			continue
		}
		if silent(t) {
			return &Stopped{Cause: ErrBreaker, Reason: fmt.Sprintf(
				"stopped: trial %d answered requests without a single token; look at its log in %s, then run the study again", t.Number, t.Dir)}
		}
		if t.State != trial.Failed || interrupted(t) || succeeded {
			continue
		}
		failure := fmt.Sprintf("%s / %s / %s", t.Verdict.Outcome, t.Verdict.Phase, t.Verdict.Cause)
		if strikes[failure]++; strikes[failure] >= breakerStrikes {
			return &Stopped{Cause: ErrBreaker, Reason: fmt.Sprintf(
				"stopped: the same failure came %d times before anything ran: %s (%s); repair that, then run the study again",
				breakerStrikes, failure, t.Verdict.Text)}
		}
	}
	return nil
}

// silent reports whether a replay brought requests but no token.
func silent(t *trial.Trial) bool {
	for _, l := range t.Levels {
		if l.Report != nil && l.Report.Requests.Sent > 0 && l.Report.Tokens.Got == 0 && t.Void == "" && !interrupted(t) {
			return true
		}
	}
	return false
}

// hostChanged says what changed about the host since the study took it over, "" when nothing did.
func hostChanged(before, now HostFacts) string {
	switch {
	case before.Name != now.Name:
		return fmt.Sprintf("it was %s and is %s", before.Name, now.Name)
	case before.gpusUnread() || now.gpusUnread(): // a driver that did not answer in time is no other host
		before.GPUs, now.GPUs = nil, nil
	}
	switch {
	case len(before.GPUs) != len(now.GPUs):
		return fmt.Sprintf("it had %d GPUs and has %d", len(before.GPUs), len(now.GPUs))
	case before.MemTotal != now.MemTotal && before.MemTotal > 0 && now.MemTotal > 0:
		return fmt.Sprintf("it had %s of RAM and has %s", FormatSize(float64(before.MemTotal)), FormatSize(float64(now.MemTotal)))
	}
	for i, g := range before.GPUs {
		if n := now.GPUs[i]; g.Name != n.Name || g.Total != n.Total {
			return fmt.Sprintf("GPU %d was %s with %s and is %s with %s", g.Index, g.Name, FormatSize(float64(g.Total)), n.Name, FormatSize(float64(n.Total)))
		}
	}
	return ""
}
