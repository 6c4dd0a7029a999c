package host

import (
	"context"
	"sync/atomic"
	"time"
)

// Clock is the time of a host. A simulated host's runs Scale times faster than ours, so that every
// stored duration is in the host's own time.
type Clock struct {
	origin time.Time // host time at start
	start  time.Time // real time at start (monotonic)
	scale  float64

	caught atomic.Int64         // real time slept that CatchUp has seen
	ahead  atomic.Int64         // host time that CatchUp put it forward by
	slept  func() time.Duration // real time slept since start
}

// NewClock returns a clock that shows origin now and runs scale times faster than real time.
func NewClock(origin time.Time, scale float64) *Clock {
	start := time.Now()
	return &Clock{origin: origin, start: start, scale: scale, slept: func() time.Duration { return sleptSince(start) }}
}

// NewClockSlept is NewClock with another witness of how much real time the machine has slept since: for tests of a
// clock that jumps. slept is negative where the time of day was put back.
func NewClockSlept(origin time.Time, scale float64, slept func() time.Duration) *Clock {
	c := NewClock(origin, scale)
	c.slept = slept
	return c
}

// Now is the host's time.
func (c *Clock) Now() time.Time {
	return c.origin.Add(time.Duration(float64(time.Since(c.start))*c.scale) + time.Duration(c.ahead.Load()))
}

// Sleep waits d of host time, or less when ctx ends; then it returns the context's cause.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(c.real(d))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// After delivers the host's time once d of host time has passed.
func (c *Clock) After(d time.Duration) <-chan time.Time { return time.After(c.real(d)) }

// Scale is how many times faster than real time this clock runs.
func (c *Clock) Scale() float64 { return c.scale }

func (c *Clock) real(d time.Duration) time.Duration { return time.Duration(float64(d) / c.scale) }
