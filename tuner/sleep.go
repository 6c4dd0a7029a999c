package tuner

import (
	"context"
	"fmt"
	"time"
)

// Sleeper knows how long the machine that sgtune runs on was suspended: a laptop that was closed, a virtual
// machine that was paused. The study's clock stands still meanwhile, as all its timers do, so that nothing
// that was being waited for looks overdue afterwards. host.Clock satisfies it.
type Sleeper interface {
	// Asleep is how far the study's clock is behind the time of day; it grows with every sleep.
	Asleep() time.Duration
	// CatchUp puts the clock forward by Asleep and returns by how much. Called while no trial runs: whatever
	// is timed meanwhile would seem to have taken that much longer.
	CatchUp() time.Duration
}

// leastSleep is how much the clock must be behind before that is told: less is how clocks are kept right.
const leastSleep = 5 * time.Second

// wakeUp puts the clock right between two trials, so that the study still ends at its hour.
func (l *Loop) wakeUp(ctx context.Context) error {
	if l.Sleep == nil {
		return nil
	}
	slept := l.Sleep.CatchUp()
	if slept < leastSleep {
		return nil
	}
	return l.event(ctx, Event{Kind: "host", Text: fmt.Sprintf(
		"this machine was asleep for %s: a load level that was being measured meanwhile was measured anew; the study still ends when it should",
		FormatDuration(slept.Round(time.Second)))})
}

// overdue reports whether the time for trials is over by the time of day, however long the machine slept.
func (l *Loop) overdue() bool {
	if l.Sleep == nil || l.deadline.IsZero() {
		return false
	}
	return !l.Clock.Now().Add(l.Sleep.Asleep()).Before(l.deadline)
}
