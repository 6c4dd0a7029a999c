package trial

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"sgtune/benchmark"
)

// A level during which this machine slept, or sgtune itself stood still, shows that and not the server. It is
// measured anew under the same launch: a load that was minutes in the making is not thrown away with it.

const (
	leastSleep  = 5 * time.Second // less is how clocks are kept right
	levelReruns = 2               // of one level; then the trial says nothing about its configuration
)

// asleep is how long this machine has slept so far, as Runner.Asleep tells it.
func (r *Runner) asleep() time.Duration {
	if r.Asleep == nil {
		return 0
	}
	return r.Asleep()
}

// sleptSince reports whether this machine slept since asleep was before.
func (r *Runner) sleptSince(before time.Duration) bool { return r.asleep()-before >= leastSleep }

// undisturbed measures a level until nothing disturbed it, a few times at most.
func (a *attempt) undisturbed(ctx context.Context, concurrency int) (Level, error) {
	for again := 0; ; again++ {
		before := a.asleep()
		level, err := a.level(ctx, concurrency, before)
		if err != nil && (again == levelReruns || !a.outage(ctx, err)) {
			return level, err
		}
		why := "the link to the load generator was cut"
		if err == nil {
			why = a.disturbance(level.Report, before)
		}
		if why == "" {
			return level, nil
		}
		if again == levelReruns {
			spoil(level.Report, why)
			return level, nil
		}
		text := fmt.Sprintf("%s while %d clients were measured: that level is discarded and measured again", why, concurrency)
		a.find("level_discarded", text)
		a.notice("finding", fmt.Sprintf("trial %d: %s", a.t.Number, text))
		if err := os.Remove(a.samplesPath(concurrency)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			a.find("evidence_incomplete", "samples of a discarded level are still in its file: "+err.Error())
		}
	}
}

// steady puts a load on the server whose result is no measurement, and does so again when it was lost.
func (a *attempt) steady(ctx context.Context, rows Rows, opts benchmark.Options) (*benchmark.Report, error) {
	from := a.source(rows)
	for again := 0; ; again++ {
		report, err := a.put(ctx, &from, opts, nil)
		if err == nil || again == levelReruns || !a.outage(ctx, err) {
			return report, err
		}
		a.find("load_repeated", fmt.Sprintf("the link to the load generator was cut during step %s: that load was put on the server again", a.t.Step))
	}
}

// outage reports whether a load ended because nobody was heard who sends it. It waits until the host can be
// reached again, and ends what is left of the load.
func (a *attempt) outage(ctx context.Context, err error) bool {
	if !errors.Is(err, ErrLoadLost) || ctx.Err() != nil {
		return false
	}
	a.notice("finding", fmt.Sprintf("trial %d: %v", a.t.Number, err))
	if _, err := a.Host.Usage(ctx); err != nil {
		return false
	}
	a.watch.moved()
	a.abortAll(ctx)
	return ctx.Err() == nil
}

// disturbance says what makes a level unusable through no doing of the server, "" when nothing does.
func (a *attempt) disturbance(r *benchmark.Report, before time.Duration) string {
	switch {
	case a.sleptSince(before):
		return fmt.Sprintf("this machine was asleep for %s", span(a.asleep()-before))
	case r.StoodS > 0:
		return fmt.Sprintf("sgtune stood still for %s", span(time.Duration(r.StoodS*float64(time.Second))))
	}
	return ""
}

// spoil marks a report that was disturbed too often as one that cannot be used.
func spoil(r *benchmark.Report, why string) {
	if r.StoodS > 0 {
		return // says so itself
	}
	r.Valid, r.Invalid = false, benchmark.InvalidClientHung
	r.Advice = why + " while the level was measured, and so it was each time before; keep it awake and measure again"
}

// overslept is the void mark of a trial whose configuration would be blamed although this machine slept while it
// ran: a server whose clients vanish for hours, or whose GPUs were switched off, may fail for that alone.
func (a *attempt) overslept(v Verdict) string {
	if a.t.State != Failed || v.Blames == BlameNo || !a.sleptSince(a.awake) {
		return ""
	}
	return fmt.Sprintf("this machine was asleep for %s while it ran", span(a.asleep()-a.awake))
}
