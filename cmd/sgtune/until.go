package main

import (
	"context"
	"fmt"
	"time"

	"sgtune/host"
	"sgtune/tuner"
)

// wallClock is another machine's clock.
type wallClock interface {
	Until(ctx context.Context, hour string) (host.WallClock, error)
}

// leastSkew is the difference of two machines' clocks that a person is told of.
const leastSkew = 5 * time.Second

// setUntil asks the machine whose clock budget.until goes by when that hour comes, and returns what a person should know.
func setUntil(ctx context.Context, clock wallClock, s *tuner.Study, now time.Time) (note string, err error) {
	w, err := clock.Until(ctx, s.Budget.Until)
	if err != nil {
		return "", fmt.Errorf("budget.until %s goes by the host's clock, which could not be read: %w", s.Budget.Until, err)
	}
	s.Budget.UntilAt = now.Add(w.Then.Sub(w.Now)).In(w.Then.Location())
	skew, way := time.Until(w.Now), "ahead of"
	if skew < 0 {
		skew, way = -skew, "behind"
	}
	if skew < leastSkew {
		return "", nil
	}
	return fmt.Sprintf("The clock of %s is %s %s this machine's; budget.until goes by it.",
		s.Host.Address, tuner.FormatDuration(skew.Round(time.Second)), way), nil
}

// hostUntil is setUntil where the host's clock is not ours.
func (p *place) hostUntil(ctx context.Context, s *tuner.Study) (note string, err error) {
	if s.Budget.Until == "" || p.remote == nil {
		return "", nil
	}
	return setUntil(ctx, p.remote, s, p.clock.Now())
}
