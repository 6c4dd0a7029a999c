package benchmark

import (
	"context"
	"time"
)

// Clock is the host's time (a simulated host's runs faster than ours). host.Clock satisfies it.
type Clock interface {
	Now() time.Time
	Sleep(ctx context.Context, d time.Duration) error
	After(d time.Duration) <-chan time.Time
	Scale() float64 // host seconds per real second, 1 for a real host
}

// RealClock returns the clock of a real host: our own time, at scale 1.
func RealClock() Clock { return realClock{} }

type realClock struct{}

func (realClock) Now() time.Time                         { return time.Now() }
func (realClock) After(d time.Duration) <-chan time.Time { return time.After(d) }
func (realClock) Scale() float64                         { return 1 }

func (realClock) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
