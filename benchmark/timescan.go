package benchmark

import (
	"errors"
	"fmt"
	"time"
)

// timeScan is what the arrival times of a file look like, in its own unit.
type timeScan struct {
	timed, untimed int // rows that do not wait for another
	first, last    stamp
	low, high      stamp
	fractions      bool // some are no whole numbers
}

// add takes the next row; false when it is earlier than the one before it.
func (t *timeScan) add(e *entry) (ordered bool) {
	if e.row.Follows {
		return true
	}
	if !e.timed {
		t.untimed++
		return true
	}
	ordered = true
	if t.timed == 0 {
		t.first, t.low, t.high = e.at, e.at, e.at
	} else {
		ordered = !e.at.before(t.last)
		if e.at.before(t.low) {
			t.low = e.at
		}
		if t.high.before(e.at) {
			t.high = e.at
		}
	}
	t.timed++
	t.last = e.at
	t.fractions = t.fractions || e.at.nano != 0
	return ordered
}

// meanGap is the mean time between arrivals, in the file's unit; 0 for a single one.
func (t *timeScan) meanGap() float64 {
	if t.timed < 2 {
		return 0
	}
	return t.high.minus(t.low) / float64(t.timed-1)
}

// Mean gaps that decide a guess. A request in 10 s or less often than one in 100 s (with fractions) is
// too few to be worth a trace, ten or a hundred times as many in a second are not.
const (
	wholeMillisGap    = 10
	fractionMillisGap = 100
)

// unit decides what the times are in: what the user said, else what the format says, else a guess that
// is told in note. The name is "" for dates.
func (t *timeScan) unit(format, said string) (name string, unit time.Duration, note string) {
	switch {
	case format == unitDate:
		return "", time.Second, ""
	case said == unitSeconds:
		return unitSeconds, time.Second, ""
	case said == unitMillis:
		return unitMillis, time.Millisecond, ""
	}
	gap := t.meanGap()
	switch format {
	case unitSeconds:
		return unitSeconds, time.Second, ""
	case unitMillis:
		if t.fractions && gap > 0 && gap < 1000/maxRate && gap >= 1/maxRate {
			return unitSeconds, time.Second, fmt.Sprintf("times are taken as seconds: as milliseconds, which this format usually has, they would be %.0f requests/s; --time-unit ms says otherwise", 1000/gap)
		}
		return unitMillis, time.Millisecond, ""
	}
	if gap >= fractionMillisGap || !t.fractions && gap >= wholeMillisGap {
		return unitMillis, time.Millisecond, fmt.Sprintf("times are taken as milliseconds, one request every %.4g of them; --time-unit s says otherwise", gap)
	}
	return unitSeconds, time.Second, "times are taken as seconds; --time-unit ms says otherwise"
}

// What arrival times are believed to be: at most maxRate requests a second on average, over at most a year.
const (
	maxRate     = 1000.0
	maxDuration = 366 * 24 * time.Hour
	maxVolley   = 100 // requests that may all arrive at the same moment
)

// CheckArrivals says what is wrong with replaying the rows at the times the file has: no times, or such
// as no service sees, which usually means that the unit was guessed wrongly. Other ways of sending do not
// mind.
func (w *Workload) CheckArrivals() error { return w.CheckArrivalsAt(1) }

// CheckArrivalsAt is CheckArrivals of times that are replayed so many times faster than the file has them.
func (w *Workload) CheckArrivalsAt(speed float64) error {
	if !w.Timed {
		return fmt.Errorf("%s: has no arrival times to replay; choose --concurrency or --rate", w.Path)
	}
	g := w.known().gaps
	duration := (g.last - g.first) / speed
	switch rate := g.rate() * speed; {
	case rate > maxRate:
		return w.absurd(fmt.Sprintf("%d requests within %.4g s, %.0f requests/s", g.n, duration, rate))
	case duration <= 0 && g.n > maxVolley:
		return w.absurd(fmt.Sprintf("all %d requests at the same moment", g.n))
	case duration > maxDuration.Seconds():
		return w.absurd(fmt.Sprintf("%d requests over %.0f days", g.n, duration/86400))
	}
	return nil
}

func (w *Workload) absurd(what string) error {
	text := "arrival times can't be right: " + what
	switch w.TimeUnit {
	case unitMillis:
		text += " when read as milliseconds; say --time-unit s if they are seconds, or send at your own pace with --concurrency or --rate"
	case unitSeconds:
		text += " when read as seconds; say --time-unit ms if they are milliseconds, or send at your own pace with --concurrency or --rate"
	default:
		text += "; send at your own pace with --concurrency or --rate"
	}
	if w.Path == "" {
		return errors.New(text)
	}
	return fmt.Errorf("%s: %s", w.Path, text)
}
