package host

import (
	"testing"
	"time"
)

// A clock stands still while its machine sleeps, and is put right when it is asked to.
func TestClockCatchesUp(t *testing.T) {
	t.Parallel()
	origin := time.Date(2026, 1, 1, 22, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name  string
		scale float64
		slept time.Duration
		moved time.Duration // of Now by CatchUp
		told  time.Duration
	}{
		{"real", 1, 8 * time.Hour, 8 * time.Hour, 8 * time.Hour},
		{"simulated", 200, 8 * time.Hour, 0, 8 * time.Hour},
		{"awake", 1, 0, 0, 0},
		{"put back", 1, -time.Hour, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := NewClock(origin, tt.scale)
			c.slept = func() time.Duration { return tt.slept }
			near := func(what string, got, want time.Duration) {
				if slack := time.Duration(float64(5*time.Second) * tt.scale); got < want || got > want+slack {
					t.Errorf("%s: %s, want %s", what, got, want)
				}
			}
			near("before", c.Now().Sub(origin), 0)
			if c.Asleep() != tt.slept || c.CatchUp() != tt.told || c.CatchUp() != 0 {
				t.Errorf("asleep %s", c.Asleep())
			}
			near("after", c.Now().Sub(origin), tt.moved)
		})
	}
}

// A machine that is awake has not slept, however long a program waits.
func TestAwakeIsNotAsleep(t *testing.T) {
	t.Parallel()
	c := NewClock(time.Now(), 1)
	time.Sleep(50 * time.Millisecond)
	if slept := c.Asleep(); slept < -time.Second || slept > time.Second {
		t.Errorf("asleep for %s", slept)
	}
}
