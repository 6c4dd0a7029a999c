package tuner

import (
	"fmt"
	"time"

	"sgtune/trial"
)

// Kinds of commands.
const (
	StopAfterTrial = "stop_after_trial"
	StopNow        = "stop_now"
	VoidTrial      = "void"
	Enqueue        = "enqueue"
)

// HeardEvery is how often the process that runs a study says that it lives; SilentAfter is how long it may be
// silent before it counts as gone. Both are real time.
const (
	HeardEvery  = 2 * time.Second
	SilentAfter = 7 * time.Second
)

// Heard is a sign of life of the process that runs a study, by the clock of its machine. The zero value is none,
// as studies of older versions have it.
type Heard struct {
	At    time.Time // of the newest sign
	Since time.Time // when the process took the study up
	PID   int
}

// Silent reports whether a study that is stored as running has nobody who runs it: its process was heard, and is
// not any more.
func (s *Summary) Silent(now time.Time) bool {
	return s.State == StudyRunning && !s.Heard.At.IsZero() && now.Sub(s.Heard.At) > SilentAfter
}

// Tally counts trials of a study that stand alike.
type Tally struct {
	Study   string
	State   trial.State
	Outcome trial.Outcome // "" before the end
	Void    bool
	Count   int
}

// Happened is an event with its place among all events of the store: ids only grow.
type Happened struct {
	ID int64
	Event
}

// Refusal says why a request cannot be taken, in sentences for whoever asked.
type Refusal struct{ Text string }

func (r *Refusal) Error() string { return r.Text }

// MayAsk says whether a study as it stands at a time may be asked for c; the error is a *Refusal. target is the trial
// to be made void, nil where there is none of that number.
func MayAsk(s *Summary, c *Command, target *trial.Trial, now time.Time) error {
	refused := func(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }
	if s.State != StudyRunning {
		switch c.Kind {
		case VoidTrial:
			return refused("The study %s has ended: its verdict stands on its trials as they are. Run sgtune tune with the same study file if it is to go on, then ask again.", s.Name)
		case Enqueue:
			return refused("The study %s has ended: nothing is launched any more. Run sgtune tune with the same study file if it is to go on, then ask again.", s.Name)
		}
		return refused("The study %s has ended: nothing runs that could be stopped.", s.Name)
	}
	if s.Silent(now) {
		return refused("The tuner of %s has not been heard from since %s: nobody would take the request. Run sgtune tune with the same study file; it cleans up and goes on.",
			s.Name, s.Heard.At.Local().Format("15:04:05"))
	}
	if c.Kind != VoidTrial {
		return nil
	}
	switch {
	case target == nil:
		return refused("The study %s has no trial %d.", s.Name, c.Trial)
	case target.Void != "":
		return refused("Trial %d is void already: %s.", c.Trial, target.Void)
	case target.State == trial.Waiting:
		return refused("Trial %d has not begun: there is nothing to make void.", c.Trial)
	case target.State == trial.Cancelled:
		return refused("Trial %d was cancelled: it is not ranked anyway.", c.Trial)
	}
	return nil
}
