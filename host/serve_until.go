package host

import (
	"context"
	"fmt"
	"time"
)

// WallClock is what the clock on the wall of a host shows.
type WallClock struct {
	Now  time.Time // in the host's zone
	Zone string    // its short name, as CET
	Then time.Time // when it will show the hour that was asked for, in the host's zone
}

// HourAt is the next time a clock that shows now shows an hour ("07:00"), by the rules of its zone: a night in which
// summer time begins or ends is an hour shorter or longer.
func HourAt(now time.Time, hour string) (time.Time, error) {
	h, err := time.Parse("15:04", hour)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is no hour, such as 07:00", hour)
	}
	for day := 0; ; day++ {
		then := time.Date(now.Year(), now.Month(), now.Day()+day, h.Hour(), h.Minute(), 0, 0, now.Location())
		if then.After(now) {
			return then, nil
		}
	}
}

// Until reads this machine's clock; see Remote.
func (l *Local) Until(_ context.Context, hour string) (WallClock, error) {
	now := time.Now()
	then, err := HourAt(now, hour)
	zone, _ := then.Zone()
	return WallClock{Now: now, Zone: zone, Then: then}, err
}

type untilArgs struct {
	Hour string `json:"hour"`
}

func (a *agent) until(ctx context.Context, args untilArgs) (WallClock, error) {
	return a.Host.Until(ctx, args.Hour)
}

// Until reads the clock of the machine: when it will next show an hour. It is right within half a round trip, the
// quickest of three.
func (r *Remote) Until(ctx context.Context, hour string) (WallClock, error) {
	var read WallClock
	var at time.Time // when it was read, by our clock
	least := time.Duration(0)
	for range 3 {
		var w WallClock
		begin := time.Now()
		if err := r.call(ctx, "until", untilArgs{Hour: hour}, &w); err != nil {
			return WallClock{}, r.told("read the clock", err)
		}
		if d := time.Since(begin); least == 0 || d < least {
			read, at, least = w, begin.Add(d/2), d
		}
	}
	read.Now = read.Now.Add(time.Since(at))
	return read, nil
}
