package benchmark

import (
	"fmt"
	"time"
)

// eventMerge is the real time within which the simulated server merges what it streams, as
// --stream-interval does; in scaled time no latency is known better than that.
const eventMerge = 5 * time.Millisecond

// mostErrors is how many error texts a report keeps.
const mostErrors = 5

// report sums up a level whose clients are gone.
func (lv *level) report() *Report {
	r := &Report{Schema: ReportSchema, Pruned: lv.pruned, Cut: lv.cut, Warmup: lv.warmedUp, Passes: lv.passes}
	first := lv.settleWindows(r)
	r.rates(first)
	from := time.Duration(first) * lv.opts.Window
	lv.requests(r, from)
	r.ITLms = lv.samples.itl(from) // nil in scaled time: no gaps were kept
	r.Series = lv.ledger.series()
	r.Concurrency.Peak = lv.ledger.most()
	r.Arrivals = lv.punctuality()
	r.SLO = lv.opts.SLO.report()
	if scale := lv.opts.Clock.Scale(); scale > 1 {
		r.TTFTResolutionMs = ms(eventMerge) * scale
	}
	lv.ourselves(r, first)
	lv.flag(r, first)
	r.judge(lv.opts.Clock.Scale(), lv.stood, int(lv.waited.Load()))
	return r
}

// settleWindows decides the measured part; it returns its first window.
func (lv *level) settleWindows(r *Report) (first int) {
	end := lv.ledger.close(lv.opts.Clock.Now())
	whole := len(lv.windows)
	for k := 0; k < whole || time.Duration(k)*lv.opts.Window < end; k++ {
		r.Windows = append(r.Windows, lv.ledger.window(k)) // the whole ones too: what was stamped in time may have come late
	}
	copy(lv.windows, r.Windows)
	behind := outputs(lv.measured())
	from, steady := steadyFrom(behind)
	if lv.opts.counted() {
		from = 0
	}
	r.Steady = steady
	first = min(lv.warmupWindows(), whole) + from
	if first >= len(r.Windows) {
		first = len(r.Windows) - 1 // ended within the warm-up: its last window is all there is
	}
	for k := first; k < len(r.Windows); k++ {
		r.Windows[k].Steady = true
	}
	if mean, half, ok := interval(behind[from:]); ok {
		r.OutputLow, r.OutputHigh = max(0, mean-half), mean+half
	}
	return first
}

// rates are means over the measured windows, weighted by their length.
func (r *Report) rates(first int) {
	var output, prompt, busy float64
	for _, w := range r.Windows[first:] {
		r.Seconds += w.Seconds
		output += w.Output * w.Seconds
		prompt += w.Prompt * w.Seconds
		busy += w.InFlight * w.Seconds
	}
	r.OutputTokS, r.PromptTokS = output/r.Seconds, prompt/r.Seconds
	r.Concurrency.Mean = busy / r.Seconds
}

// requests counts what finished after from and collects its latencies.
func (lv *level) requests(r *Report, from time.Duration) {
	r.Requests.Failed = map[string]int{}
	end := time.Duration(lv.ledger.end.Load())
	var all latencies
	var lengths byLength
	var lag []float64
	inside, good := 0, 0
	for rec := range lv.samples.all() {
		if rec.finished() < from {
			r.Warmup++
			continue
		}
		r.count(rec, lv.samples.kinds)
		if rec.intended >= from { // a lag belongs to the part its request was due in
			lag = append(lag, ms(rec.lag))
		}
		if rec.kind != 0 {
			continue
		}
		if rec.finished() <= end {
			inside++
			if lv.opts.SLO.met(rec.ttft, rec.e2e, int(rec.output)) {
				good++
			}
		}
		if rec.inputWanted > 0 {
			lv.promptsGot += int64(rec.prompt)
		}
		all.add(rec)
		lengths.add(rec)
	}
	r.TTFTms, r.TPOTms, r.E2Ems = distribute(all.ttft), distribute(all.tpot), distribute(all.e2e)
	r.Buckets = lengths.buckets()
	if d := distribute(lag); d != nil {
		r.Client.SendLagMs.P50, r.Client.SendLagMs.P99, r.Client.SendLagMs.Max = d.P50, d.P99, d.Max
	}
	r.RequestsS, r.GoodputS = float64(inside)/r.Seconds, float64(good)/r.Seconds
	if r.Tokens.Prompt > 0 {
		r.CacheHitRatio = float64(r.Tokens.Cached) / float64(r.Tokens.Prompt)
	}
	if lv.opts.Retries == 0 {
		r.Attempts = 0
	}
	for _, e := range lv.samples.errors {
		if e.last >= from && len(r.Errors) < mostErrors {
			r.Errors = append(r.Errors, e.text)
		}
	}
}

// count adds one finished request. A failed one has wanted its tokens and got none that count.
func (r *Report) count(q *record, kinds []string) {
	r.Requests.Sent++
	r.Attempts += int(q.attempts)
	r.Tokens.Wanted += int64(q.wanted)
	if q.kind != 0 {
		r.Requests.Failed[kinds[q.kind-1]]++
		return
	}
	r.Requests.OK++
	r.Tokens.Got += int64(q.output)
	r.Tokens.Prompt += int64(q.prompt)
	r.Tokens.Cached += int64(q.cached)
	r.Tokens.PromptWanted += int64(q.inputWanted)
}

// punctuality is how an open loop kept its schedule; nil for a closed one.
func (lv *level) punctuality() *ArrivalReport {
	if lv.opts.Arrivals == nil {
		return nil
	}
	p := lv.arrived
	return &ArrivalReport{
		Process:      lv.opts.Arrivals.Process,
		ScheduledRPS: rps(p.n, p.due, p.lastDue),
		AchievedRPS:  rps(p.n, p.sent, p.lastlySent),
		Scheduled:    p.n,
		Late:         p.late,
	}
}

// report echoes the limits, nil without.
func (s SLO) report() *SLOReport {
	if s == (SLO{}) {
		return nil
	}
	return &SLOReport{ms(s.TTFT), ms(s.TPOT), ms(s.E2E)}
}

// ourselves is what the load generator itself did in the measured part.
func (lv *level) ourselves(r *Report, first int) {
	last := len(lv.cpu) - 1
	from, to := lv.cpu[min(first, last)], lv.cpu[last]
	if first >= last { // no whole window: up to now
		to = lv.pulse.meter.Read()
	}
	r.Client.CPUShare, r.Client.Cores = to.ShareSince(from), to.CoresSince(from)
	if lv.opts.CPUShare != nil {
		r.Client.CPUShare = lv.opts.CPUShare()
	}
	if d := lv.pulse.late.distribution(); d != nil {
		r.Client.ReadLagMs.P99, r.Client.ReadLagMs.Max = d.P99, d.Max
	}
}

// flag adds the remarks a reader needs beside the figures.
func (lv *level) flag(r *Report, first int) {
	switch {
	case lv.opts.Arrivals != nil && pilesUp(lv.windows[min(first, len(lv.windows)):]):
		r.Steady = false
		r.note("not steady: the server does not keep up, %.0f requests in flight at the end; latencies grow with the length of the run",
			r.Windows[len(r.Windows)-1].InFlight)
	case !r.Steady:
		r.note("not steady: %s", unsteady(len(lv.measured())))
	}
	if r.Arrivals != nil && r.Arrivals.Late > 0 {
		r.note("%d of %d requests were sent more than %.0f ms after their time", r.Arrivals.Late, r.Arrivals.Scheduled, mostLagRealMs)
	}
	if n := lv.waited.Load(); n > 0 {
		r.note("%d requests waited: no more than %d may be in flight under this load; the wait is in their latency", n, lv.opts.Arrivals.MaxInFlight)
	}
	if wanted, got := r.Tokens.PromptWanted, lv.promptsGot; wanted > 0 && differs(got, wanted, promptDifference) {
		r.note("prompts were not as long as wanted: %d tokens instead of %d (%+.1f%%)", got, wanted, 100*(float64(got)/float64(wanted)-1))
	}
	if r.Cut > 0 {
		r.note("%d requests were still running when the level was over: latencies leave them out", r.Cut)
	}
	if lv.dead {
		r.note("ended early: the last %d requests failed", lv.failing)
	}
}

func (r *Report) note(format string, args ...any) {
	r.Flags = append(r.Flags, fmt.Sprintf(format, args...))
}
