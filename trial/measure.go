package trial

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sgtune/benchmark"
	"sgtune/sglang"
)

const (
	flushTime     = time.Minute // host time for running requests to end before the flush
	flushTimeReal = 5 * time.Second
)

// warmup is the cache protocol up to the measured rows, the same for every trial: flush once (200
// required), then replay the rows that precede the measured ones until the caches have been filled.
func (a *attempt) warmup(ctx context.Context) error {
	if len(a.t.Plan) == 0 || a.Load.Workload == nil {
		return nil
	}
	if err := a.prepare(ctx); err != nil {
		return err
	}
	if err := a.flush(ctx); err != nil {
		return err
	}
	a.t.Cache = Cache{Flushed: true, FillWanted: a.fillWanted()}
	if a.t.Cache.FillWanted == 0 {
		a.t.Cache.Note = a.noFill()
		return nil
	}
	return a.fill(ctx)
}

// flush ends what still runs and empties device and host cache. SGLang refuses while a request runs.
func (a *attempt) flush(ctx context.Context) error {
	limit := a.Clock.Now().Add(a.floor(flushTime, flushTimeReal))
	for {
		a.abortAll(ctx)
		short, cancel := a.within(ctx, healthTimeout, flushTimeReal)
		err := a.target.FlushCache(short)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		if a.Clock.Now().After(limit) {
			return fmt.Errorf("%w: %w", errFlush, err)
		}
		if err := a.Clock.Sleep(ctx, a.floor(readyPoll, 50*time.Millisecond)); err != nil {
			return err
		}
	}
}

// abortAll ends running requests; where the server does not know the call they end by themselves.
func (a *attempt) abortAll(ctx context.Context) {
	ctx, cancel := a.within(ctx, healthTimeout, healthTimeoutReal)
	defer cancel()
	_ = a.target.AbortAll(ctx)
}

// fillWanted is how many prompt tokens the fill should admit, 0 without a fill: the larger of the device
// pool and the biggest host pool in the space, for every trial of the study.
func (a *attempt) fillWanted() int64 {
	if !a.Load.fills() || a.watch == nil {
		return 0
	}
	log, _ := a.watch.facts()
	return max(int64(log.Memory.Tokens), hostPoolTokens(log.Memory, a.Load.FillHostPoolGB))
}

// hostPoolTokens is how many tokens a host pool of gb a rank holds, from the bytes a token takes in the
// server's own KV pool (reference: SGLang's host pool sizing, sglang.HostPoolTokens); 0 without that line.
func hostPoolTokens(m sglang.Observation, gb float64) int64 {
	if m.Tokens <= 0 || m.KVGiB <= 0 || gb <= 0 {
		return 0
	}
	cell := m.KVGiB * (1 << 30) / float64(m.Tokens)
	return int64(sglang.HostPoolTokens(gb, cell, max(1, m.PageSize)))
}

func (a *attempt) noFill() string {
	switch l := a.Load; {
	case l.FillHostPoolGB <= 0:
		return "no fill: no hierarchical cache in the space"
	case l.Workload.Reuse < leastReuse:
		return fmt.Sprintf("no fill: only %.1f%% of the workload's prompt tokens are shared", 100*l.Workload.Reuse)
	}
	return "no fill: switched off"
}

// fill replays the rows just before the measured ones, under the measured rows' own salt: what they
// share with those is what the cache is for.
func (a *attempt) fill(ctx context.Context) error {
	c, w := &a.t.Cache, a.Load.Workload
	from, tokens := a.load.split, int64(0)
	for ; from > 0 && tokens < c.FillWanted; from-- {
		tokens += int64(w.Row(from - 1).Input())
	}
	from = max(0, from-a.highest()) // clients run ahead: without these the feed would begin again for their last rows
	report, err := a.steady(ctx, Rows{From: from, To: a.load.split, Salt: a.salt()}, benchmark.Options{
		Concurrency: a.highest(), Window: min(a.Load.Window, a.Load.Fill), Cap: a.Load.Fill, PromptTokens: c.FillWanted,
	})
	if report != nil {
		c.FillAdmitted, c.FillPasses = admitted(report), report.Passes
	}
	if err != nil {
		return err
	}
	if c.Full = c.FillAdmitted >= c.FillWanted; !c.Full {
		c.Note = fmt.Sprintf("cache not full: %d of %d tokens within %s; what the hierarchical cache gains here is a lower bound",
			c.FillAdmitted, c.FillWanted, a.Load.Fill)
		a.find("cache_not_full", c.Note)
	}
	return nil
}

// admitted is how many prompt tokens the server has prefilled in a load.
func admitted(r *benchmark.Report) int64 {
	sum := 0.0
	for _, w := range r.Windows {
		sum += w.Prompt * w.Seconds
	}
	return int64(sum + 0.5)
}

// measure runs the levels of the plan in order, without a flush between them. Each is stored as
// soon as it ends: a crash of sgtune loses the running one at most. A level that was stopped early ends
// the trial where the rest is hopeless too; a trial none of whose levels was measured in full is pruned. The plan
// grows where More names a further level.
func (a *attempt) measure(ctx context.Context) error {
	if a.Load.Workload == nil {
		return nil
	}
	for {
		if over, err := a.measured(); over {
			return err
		}
		level, err := a.undisturbed(ctx, a.t.Plan[len(a.t.Levels)])
		if err != nil {
			return err
		}
		a.t.Levels = append(a.t.Levels, level)
		if err := a.save(ctx); err != nil {
			return err
		}
	}
}

// measured reports whether nothing is left to be measured after the levels there are, and how that ends the trial.
func (a *attempt) measured() (over bool, err error) {
	levels := a.t.Levels
	if n := len(levels); n > 0 && levels[n-1].Report != nil {
		switch last := levels[n-1].Report; {
		case last.Invalid == benchmark.InvalidClientHung:
			return true, nil // no bound either: the trial says nothing about its configuration
		case last.Pruned && !measuredInFull(levels) && (a.Hopeless == nil || a.Hopeless(a.t)):
			return true, ErrPruned
		}
	}
	if len(levels) < len(a.t.Plan) || a.more() {
		return false, nil
	}
	if len(levels) > 0 && !measuredInFull(levels) {
		return true, ErrPruned
	}
	return true, nil
}

// more adds a level to the plan if there is one to add.
func (a *attempt) more() bool {
	if a.More == nil {
		return false
	}
	concurrency, ok := a.More(a.t)
	if ok {
		a.t.Plan = append(slices.Clone(a.t.Plan), concurrency)
	}
	return ok
}

// measuredInFull reports whether any of the levels ran to its end.
func measuredInFull(levels []Level) bool {
	return slices.ContainsFunc(levels, func(l Level) bool { return l.Report != nil && !l.Report.Pruned })
}

// level measures one level; it ends soon after this machine slept, which shows in asleep against before.
func (a *attempt) level(ctx context.Context, concurrency int, before time.Duration) (Level, error) {
	write, done := a.samples(concurrency)
	defer done()
	l := Level{Concurrency: concurrency, StartedAt: a.Clock.Now()}
	opts := benchmark.Options{
		Concurrency: concurrency, Warmup: a.Load.Warmup, Window: a.Load.Window, Cap: a.Load.Cap, Target: a.Load.Target, SLO: a.Load.SLO,
		OnWindow: func(w benchmark.Window) {
			a.show(Progress{Text: fmt.Sprintf("measuring at %d clients", concurrency), Window: &w, Level: concurrency})
		},
	}
	if a.Prune != nil || a.Asleep != nil {
		opts.Prune = func(windows []float64) bool {
			return a.sleptSince(before) || a.Prune != nil && a.Prune(a.t, windows)
		}
	}
	report, err := a.put(ctx, &a.load.measured, opts, write)
	l.Report, l.EndedAt = report, a.Clock.Now()
	if err != nil {
		return l, err
	}
	report.CacheFull = a.t.Cache.Full
	a.compare(report)
	return l, nil
}

// compare notes the server's own throughput for the measured part. With data parallelism every rank
// prints its own figure, and one rank's is not the server's.
func (a *attempt) compare(r *benchmark.Report) {
	for _, flag := range []string{"dp-size", "data-parallel-size", "attn-dp-size", "enable-dp-attention"} {
		if _, set := a.t.Config[flag]; set {
			return
		}
		if _, set := a.Server.Flags[flag]; set {
			return
		}
	}
	if len(r.Windows) == 0 {
		return
	}
	last := r.Windows[len(r.Windows)-1]
	end := last.Start.Add(time.Duration(last.Seconds * float64(time.Second)))
	r.SetServer(a.watch.speed(end.Add(-time.Duration(r.Seconds*float64(time.Second))), end))
}
