package host

import "time"

// A suspended machine's monotonic clock stands still, and with it every timer and a Clock; its time of day is
// right again when it wakes up. The same is seen in a virtual machine that was paused and then had its clock
// put right. So the difference of the two is how long it slept. It follows small corrections of the time of
// day too, which are far below what callers take for a sleep.

// sleptSince is how much more the time of day has moved on than the monotonic clock since start, which must
// come from time.Now. It is negative where somebody put the time back.
func sleptSince(start time.Time) time.Duration {
	now := time.Now()
	return now.Round(0).Sub(start.Round(0)) - now.Sub(start) // Round takes the monotonic reading off
}

// Asleep is the real time this machine slept that CatchUp has not seen yet.
func (c *Clock) Asleep() time.Duration { return c.slept() - time.Duration(c.caught.Load()) }

// CatchUp puts the clock right by the time of day and returns how long the machine had slept. A clock that
// does not run in real time stays as it is: nothing that it measures went on meanwhile. It never goes back.
func (c *Clock) CatchUp() time.Duration {
	slept := c.Asleep()
	if slept <= 0 {
		return 0
	}
	c.caught.Add(int64(slept))
	if c.scale == 1 {
		c.ahead.Add(int64(slept))
	}
	return slept
}
