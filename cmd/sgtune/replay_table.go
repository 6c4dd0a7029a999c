package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"sgtune/benchmark"
	"sgtune/web"
)

// factLines are lines of a label and what there is to say about it.
type factLines struct{ b strings.Builder }

const factLabel = 13 // characters of a label

func (f *factLines) add(label, format string, args ...any) {
	fmt.Fprintf(&f.b, "  %-*s %s\n", factLabel, label, fmt.Sprintf(format, args...))
}

// resultText is what a level showed, for a person.
func (r *replayRun) resultText(number int, p *benchmark.Report) string {
	var f factLines
	title := p.Setup.Load
	if len(r.loads) > 1 {
		title = fmt.Sprintf("level %d of %d, %s", number+1, len(r.loads), title)
	}
	state := "steady"
	if !p.Steady {
		state = "not steady"
	}
	fmt.Fprintf(&f.b, "\n%s: %s s measured, %s\n", title, web.Number(p.Seconds), state)
	f.add("throughput", "%s", throughputText(p))
	f.add("requests", "%s", requestsText(p))
	f.add("in flight", "%s on average, %d at most", web.Number(p.Concurrency.Mean), p.Concurrency.Peak)
	if a := p.Arrivals; a != nil {
		f.add("arrivals", "%s requests/s were due, %s were sent; %d of %d left more than 10 ms late", web.Number(a.ScheduledRPS), web.Number(a.AchievedRPS), a.Late, a.Scheduled)
	}
	latencyTable(&f.b, p)
	if p.SLO != nil {
		f.add("goodput", "%s requests/s met the SLO (%s), %s of those answered", web.Number(p.GoodputS), r.options.slo, shareOf(p.GoodputS, p.RequestsS))
	}
	f.add("cache", "%s", r.cacheText(number, p))
	f.add("lengths", "%s", lengthsText(p))
	switch {
	case p.Server != nil:
		f.add("server", "%s", serverViewText(p))
	case r.viewless != "":
		f.add("server", "no account of its own: %s", r.viewless)
	}
	c := p.Client
	f.add("client", "%.0f%% of %s; send lag p99 %s ms, max %s ms; read lag p99 %s ms", 100*c.CPUShare, coresText(c.Cores),
		web.Number(c.SendLagMs.P99), web.Number(c.SendLagMs.Max), web.Number(c.ReadLagMs.P99))
	if e := p.Energy; e != nil {
		f.add("energy", "%s of this machine drew %s W, %s J per output token", count(e.GPUs, "GPU"), web.Number(e.MeanWatts), web.Number(e.JoulesPerOutputToken))
	}
	for _, flag := range p.Flags {
		f.add("note", "%s", flag)
	}
	if p.Requests.OK < p.Requests.Sent {
		for _, text := range p.Errors[:min(3, len(p.Errors))] {
			f.add("failure", "%s", text)
		}
	}
	if !p.Valid {
		f.add("NOT VALID", "%s: %s", p.Invalid, p.Advice)
	}
	return f.b.String()
}

func throughputText(p *benchmark.Report) string {
	text := web.Number(p.OutputTokS) + " output tok/s"
	if p.OutputHigh > 0 {
		text += fmt.Sprintf(" (95%% interval %s to %s)", web.Number(p.OutputLow), web.Number(p.OutputHigh))
	}
	return text + fmt.Sprintf(", %s prompt tok/s, %s requests/s", web.Number(p.PromptTokS), web.Number(p.RequestsS))
}

func requestsText(p *benchmark.Report) string {
	text := fmt.Sprintf("%s sent, %s ok", grouped(p.Requests.Sent), grouped(p.Requests.OK))
	for _, kind := range slices.Sorted(maps.Keys(p.Requests.Failed)) {
		if n := p.Requests.Failed[kind]; n > 0 {
			text += fmt.Sprintf(", %s %s", grouped(n), kind)
		}
	}
	if p.Warmup > 0 {
		text += fmt.Sprintf("; %s of warm-up before them", grouped(p.Warmup))
	}
	if p.Attempts > p.Requests.Sent {
		text += fmt.Sprintf("; %s tries", grouped(p.Attempts))
	}
	if p.Passes > 1 {
		text += fmt.Sprintf("; pass %d of the workload", p.Passes)
	}
	return text
}

// latencyTable is the table of latencies, and that of TTFT by prompt length.
func latencyTable(b *strings.Builder, p *benchmark.Report) {
	rows := [][]string{{"  latency, ms", "mean", "p50", "p90", "p95", "p99", "max", ""}}
	for _, line := range []struct {
		name string
		d    *benchmark.Distribution
	}{{"TTFT", p.TTFTms}, {"ITL", p.ITLms}, {"TPOT", p.TPOTms}, {"E2E", p.E2Ems}} {
		if line.d != nil {
			rows = append(rows, append([]string{line.name}, distributionCells(line.d)...))
		}
	}
	for _, bucket := range p.Buckets {
		name := fmt.Sprintf("TTFT, prompts of %s to %s", grouped(bucket.From), grouped(bucket.To-1))
		rows = append(rows, append([]string{name}, distributionCells(bucket.TTFTms)...))
	}
	if len(rows) > 1 {
		alignRight(b, rows)
	}
}

func distributionCells(d *benchmark.Distribution) []string {
	cells := make([]string, 0, 7)
	for _, v := range []float64{d.Mean, d.P50, d.P90, d.P95, d.P99, d.Max} {
		cells = append(cells, web.Number(v))
	}
	return append(cells, "")
}

// cacheText compares what came from the cache with what an endless one would give. Rows of a level that found
// another level's prompts in the cache, and those behind the first pass, have no such figure.
func (r *replayRun) cacheText(number int, p *benchmark.Report) string {
	text := fmt.Sprintf("%s of the prompt tokens were cached (cache %s before)", sharePercent(p.CacheHitRatio), p.CacheState)
	switch {
	case p.Tokens.Prompt == 0:
		return "the server told no prompt tokens"
	case p.Tokens.Cached == 0 && r.endpoint != benchmark.EndpointGenerate && !r.detected.CacheReport:
		return "the server does not tell what was cached (SGLang: --enable-cache-report)"
	case number > 0 && !r.options.flush || r.kinds.texts:
		return text
	}
	rows := r.workload
	if sent := p.Requests.Sent + max(0, p.Warmup-r.warmup(r.loads[number])); number == 0 && sent < rows.Len() {
		rows = rows.Part(0, sent)
	}
	if r.kinds.sessions { // each turn also finds the turns before it, which the file does not tell
		return text + fmt.Sprintf("; at least %s repeat another conversation's prefix", sharePercent(rows.Reuse))
	}
	return text + fmt.Sprintf("; an endless cache would have had %s of these rows", sharePercent(rows.Reuse))
}

func lengthsText(p *benchmark.Report) string {
	text := fmt.Sprintf("answers %s", gotOf(p.Tokens.Got, p.Tokens.Wanted))
	if p.Tokens.PromptWanted > 0 {
		text = fmt.Sprintf("prompts %s, %s", gotOf(p.Tokens.Prompt, p.Tokens.PromptWanted), text)
	} else {
		text = fmt.Sprintf("prompts %s tokens, %s", grouped(int(p.Tokens.Prompt)), text)
	}
	return text
}

func gotOf(got, wanted int64) string {
	if got == wanted {
		return fmt.Sprintf("%s tokens as wanted", grouped(int(got)))
	}
	text := fmt.Sprintf("%s of %s tokens wanted", grouped(int(got)), grouped(int(wanted)))
	if wanted > 0 {
		text += fmt.Sprintf(" (%+.1f%%)", 100*(float64(got)/float64(wanted)-1))
	}
	return text
}

// serverViewText is the server's own account of the level; what it does not tell is left out.
func serverViewText(p *benchmark.Report) string {
	s := p.Server
	var parts []string
	if v := s.OutputTokS; v != nil {
		text := web.Number(*v) + " output tok/s by its own count"
		switch {
		case s.Coarse:
			text = "about " + text + " (read too seldom for so short a part)"
		case !longEnough(s):
			text = "about " + text
		case p.OutputTokS > 0:
			text += fmt.Sprintf(" (%+.1f%%)", 100*(*v/p.OutputTokS-1))
		}
		parts = append(parts, text)
	}
	if s.RunningMean != nil && s.RunningMax != nil {
		parts = append(parts, fmt.Sprintf("%s running on average, %s at most", web.Number(*s.RunningMean), web.Number(*s.RunningMax)))
	}
	if v := s.QueuedMax; v != nil && *v > 0 {
		parts = append(parts, web.Number(*v)+" queued at most")
	}
	if v := s.TokenUsageMax; v != nil {
		parts = append(parts, "KV cache at most "+sharePercent(*v)+" full")
	}
	if v := s.Retractions; v != nil && *v > 0 {
		parts = append(parts, web.Number(*v)+" retracted")
	}
	if len(parts) == 0 {
		return "its metrics tell nothing of the measured part"
	}
	return strings.Join(parts, ", ")
}

func coresText(cores float64) string {
	if cores == math.Trunc(cores) {
		return count(int(cores), "core")
	}
	return fmt.Sprintf("%.1f cores", cores)
}

func sharePercent(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }

func shareOf(part, whole float64) string {
	if whole <= 0 {
		return "0%"
	}
	return sharePercent(part / whole)
}

// levelsText is one line a level, for comparing them.
func (r *replayRun) levelsText() string {
	rows := [][]string{{"load", "output tok/s", "requests/s", "in flight", "TTFT p50", "TTFT p95", "TPOT p50", "TPOT p95", "cached", "failed", ""}}
	best := r.bestLevel()
	for i, p := range r.reports {
		remark := ""
		switch {
		case !p.Valid:
			remark = "not valid: " + p.Invalid
		case i == best:
			remark = "most output"
		}
		rows = append(rows, []string{
			p.Setup.Load, web.Number(p.OutputTokS), web.Number(p.RequestsS), web.Number(p.Concurrency.Mean),
			quantile(p.TTFTms, 50), quantile(p.TTFTms, 95), quantile(p.TPOTms, 50), quantile(p.TPOTms, 95),
			sharePercent(p.CacheHitRatio), grouped(p.Requests.Sent - p.Requests.OK), remark,
		})
	}
	var b strings.Builder
	b.WriteString("\nall levels, latencies in ms:\n")
	alignRight(&b, rows)
	return b.String()
}

// bestLevel is the valid level with the most output, -1 without one.
func (r *replayRun) bestLevel() int {
	best := -1
	for i, p := range r.reports {
		if p.Valid && (best < 0 || p.OutputTokS > r.reports[best].OutputTokS) {
			best = i
		}
	}
	return best
}

func quantile(d *benchmark.Distribution, q int) string {
	switch {
	case d == nil:
		return "-"
	case q == 50:
		return web.Number(d.P50)
	}
	return web.Number(d.P95)
}
