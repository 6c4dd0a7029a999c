package host

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Intervals of the looks. The next look comes before the line could be reached at the greatest rate:
// 16 GB/s are eight ranks that fill fresh pages at 2 GB/s each.
const (
	shortestLook = 5 * time.Millisecond
	longestLook  = 250 * time.Millisecond
	slowLook     = time.Second
	greatestRate = 16e9 // bytes a second
	killTime     = time.Minute
)

// nextLook is the time until the next look when so many bytes are left above the line.
func nextLook(above int64) time.Duration {
	if above < 0 {
		return shortestLook
	}
	return min(max(time.Duration(float64(above)/greatestRate*float64(time.Second)), shortestLook), longestLook)
}

// comfort is how much above the line makes the longest interval right.
const comfort = int64(greatestRate * float64(longestLook) / float64(time.Second))

// watch looks until the trial is over.
func (g *Guard) watch(ctx context.Context) error {
	for {
		wait := g.look(ctx)
		if g.verdict.Reason != "" && g.until.IsZero() {
			return g.trouble
		}
		if g.clock.Sleep(ctx, wait) != nil {
			if g.verdict.Reason == "" { // the first cause stays
				g.decide(GuardCancelled, "the guard was told to end", 0, 0, unknownMemory)
			}
			return g.trouble
		}
	}
}

// look takes one look and acts on it; it returns the time until the next one.
func (g *Guard) look(ctx context.Context) time.Duration {
	m, _ := g.memory.read(g.opts.MinFree + comfort) // all unknown where /proc fails; the other limits still hold
	free, _ := m.free()
	if free >= 0 && (g.verdict.Lowest < 0 || free < g.verdict.Lowest) {
		g.verdict.Lowest = free
	}
	g.record.saw(m)
	if reason, text, limit, figure := g.breach(m); reason != "" {
		if g.verdict.Reason == "" {
			g.decide(reason, text, limit, figure, m)
		}
		g.kill(ctx, g.haste)
		return 0
	}
	now := g.clock.Now()
	g.alive = g.alive && g.target.alive()
	if !g.until.IsZero() { // it was asked to end
		if !g.alive || !now.Before(g.until) {
			g.kill(ctx, verdictLeisure)
			return 0
		}
		return min(g.interval(free), g.until.Sub(now))
	}
	if !now.Before(g.nextLook) || !g.alive { // a dying trial is followed closely, for others wait for the guard
		g.nextLook = now.Add(slowLook)
		g.slow(ctx, now, m)
	}
	return g.interval(free)
}

func (g *Guard) interval(free int64) time.Duration {
	if free < 0 || g.opts.MinFree < 0 {
		return longestLook
	}
	return nextLook(free - g.opts.MinFree)
}

// breach tells whether memory is below a line.
func (g *Guard) breach(m GuardMemoryReading) (reason GuardReason, text string, limit, figure float64) {
	if free, why := m.free(); g.opts.MinFree > 0 && free >= 0 && free < g.opts.MinFree {
		where := "MemAvailable of the machine"
		if why == GuardCgroup {
			where = fmt.Sprintf("what is left under the limit of %.2f GB of cgroup /%s", float64(m.Limit)/1e9, m.Group)
		}
		return why, fmt.Sprintf("%s is %.2f GB, below the line of %.2f GB", where, float64(free)/1e9, float64(g.opts.MinFree)/1e9),
			float64(g.opts.MinFree), float64(free)
	}
	if grown := m.Swap - g.swapStart; g.opts.SwapGrowth > 0 && m.Swap >= 0 && g.swapStart >= 0 && grown > g.opts.SwapGrowth {
		return GuardSwap, fmt.Sprintf("%.2f GB of swap were taken since the start, more than %.2f GB", float64(grown)/1e9, float64(g.opts.SwapGrowth)/1e9),
			float64(g.opts.SwapGrowth), float64(grown)
	}
	return "", "", 0, 0
}

// slow does what once a second is enough for.
func (g *Guard) slow(ctx context.Context, now time.Time, m GuardMemoryReading) {
	g.memory.refresh()
	g.drawLine(m)
	if !g.alive {
		if left, err := g.target.left(ctx); err == nil && !left { // a list that cannot be read is read again
			g.decide(GuardOver, "nothing of the trial lives", 0, 0, m)
			return
		}
	}
	if err := g.target.protect(ctx, false); err != nil && g.verdict.ProtectProblem == "" {
		g.verdict.ProtectProblem = err.Error()
	}
	if g.opts.Absence > 0 {
		if at, err := heartbeat(g.opts.Heartbeat); err == nil && !at.Equal(g.beat) {
			g.beat, g.beatAt = at, now
		}
		if silent := now.Sub(g.beatAt); silent > g.opts.Absence {
			text := fmt.Sprintf("no heartbeat of the tuner for %s, longer than %s", silent.Round(time.Second), g.opts.Absence)
			g.ask(ctx, GuardTunerGone, text, g.opts.Absence, silent, m)
			return
		}
	}
	if ran := now.Sub(g.start); g.opts.TimeLimit > 0 && ran >= g.opts.TimeLimit {
		text := fmt.Sprintf("the trial ran for %s, its limit is %s", ran.Round(time.Second), g.opts.TimeLimit)
		g.ask(ctx, GuardTimeLimit, text, g.opts.TimeLimit, ran, m)
	}
}

// ask decides and sends SIGTERM; the watch goes on, for memory may run out while the server ends.
func (g *Guard) ask(ctx context.Context, reason GuardReason, text string, limit, figure time.Duration, m GuardMemoryReading) {
	g.decide(reason, text, limit.Seconds(), figure.Seconds(), m)
	if g.opts.Grace <= 0 || !g.alive {
		g.kill(ctx, verdictLeisure)
		return
	}
	wait := g.announce(g.haste)
	err := g.target.terminate() // one that cannot be asked is killed all the same
	g.until = g.clock.Now().Add(g.opts.Grace)
	g.trouble = errors.Join(g.trouble, err, wait())
}

func (g *Guard) decide(reason GuardReason, text string, limit, figure float64, m GuardMemoryReading) {
	g.verdict.Reason, g.verdict.Detail, g.verdict.Limit, g.verdict.Figure = reason, text, limit, figure
	g.verdict.At, g.verdict.Then, g.verdict.OOMKills = g.clock.Now(), m, g.memory.kills()
}

// kill ends everything of the trial; the verdict comes first, but is not waited for longer than the limit.
func (g *Guard) kill(ctx context.Context, limit time.Duration) {
	g.until = time.Time{}
	g.verdict.Forced = true
	wait := g.announce(limit)
	// Also when the guard itself is being ended: what was decided is done.
	last, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), killTime, fmt.Errorf("not gone after %s", killTime))
	defer cancel()
	err := g.target.kill(last)
	if err != nil {
		g.verdict.KillProblem = err.Error()
	}
	g.trouble = errors.Join(g.trouble, err, wait())
}
