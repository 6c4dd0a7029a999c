package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"time"

	"sgtune/benchmark"
)

// replayRun is one run of sgtune replay.
type replayRun struct {
	options        *replayOptions
	stdout, stderr io.Writer
	mask           func(string) string

	loads     []replayLoad
	precision float64 // --target
	slo       benchmark.SLO
	workload  *benchmark.Workload
	kinds     rowKinds
	summary   benchmark.Summary
	end       levelEnd

	server      *replayTarget
	detected    benchmark.Server
	endpoint    string
	model       string
	palette     benchmark.Palette
	calibration *benchmark.Calibration
	salt        string
	feed        benchmark.Feed

	viewless string // why the last level has no account of the server's own

	screen  *replayScreen
	file    *reportFile
	csv     *csvFile
	reports []*benchmark.Report
}

// levelEnd is how a level ends, whichever comes first.
type levelEnd struct {
	requests int
	duration time.Duration
	target   float64
	warmup   int
	window   time.Duration
	why      string // in words, what was chosen because nothing was said; "" otherwise
}

const (
	defaultTarget = 0.03             // of a set without an end
	defaultLimit  = 10 * time.Minute // of the same
	defaultWarmup = 8                // requests
	leastWindow   = time.Second
	mostWindow    = 10 * time.Second
	windowsWanted = 20 // of a level of known length
	drainFor      = 5 * time.Minute
)

// plan decides how levels end.
func (r *replayRun) plan() {
	o := r.options
	e := levelEnd{requests: o.requests, duration: o.duration, target: r.precision, window: o.window}
	switch generated := r.generated(); {
	case e.requests > 0 || e.duration > 0:
	case e.target > 0 || generated:
		if e.target == 0 {
			e.target = defaultTarget
		}
		e.duration = defaultLimit
		e.why = fmt.Sprintf("ends when throughput is steady and known within %s%%, after %s at the latest (--target, --duration, --requests)", plainNumber(100*e.target), short(e.duration))
	default:
		e.requests = r.summary.Requests
		e.why = fmt.Sprintf("ends after one pass, %s (--requests, --duration)", count(e.requests, "request"))
	}
	if e.window == 0 {
		e.window = leastWindow
		if e.requests == 0 {
			e.window = max(leastWindow, min(mostWindow, (e.duration/windowsWanted).Round(time.Second)))
		}
		if e.duration > 0 {
			e.window = min(e.window, e.duration)
		}
	}
	if e.warmup = o.warmup; e.warmup < 0 {
		e.warmup = defaultWarmup
		if e.requests > 0 {
			e.warmup = min(e.warmup, e.requests/10)
		}
	}
	r.end = e
}

// generated reports whether the workload comes from no file.
func (r *replayRun) generated() bool { return benchmark.IsGenerated(r.options.workload) }

// warmup is how many requests precede a level: by default not more than one a client.
func (r *replayRun) warmup(l replayLoad) int {
	if r.options.warmup < 0 && l.clients > 0 {
		return min(r.end.warmup, l.clients)
	}
	return r.end.warmup
}

// levels runs one level after the other. Each goes on with the next rows.
func (r *replayRun) levels(ctx context.Context) error {
	for i := range r.loads {
		report, err := r.measure(ctx, i)
		if report != nil {
			r.reports = append(r.reports, report)
			r.screen.Say(r.resultText(i, report))
		}
		if err != nil {
			return err
		}
	}
	if len(r.loads) > 1 {
		r.screen.Say(r.levelsText())
	}
	return nil
}

// measure puts one level on the server.
func (r *replayRun) measure(ctx context.Context, number int) (*benchmark.Report, error) {
	load, o := r.loads[number], r.options
	state := benchmark.CacheUnknown
	switch {
	case o.flush:
		if err := r.server.FlushCache(ctx); err != nil {
			return nil, fmt.Errorf("%w; leave --flush out for a server that has no /flush_cache", err)
		}
		state = benchmark.CacheFlushed
	case number > 0:
		state = benchmark.CacheWarm
	}
	p := &progress{title: load.String(), started: time.Now(), requests: r.end.requests, length: r.length(load)}
	r.screen.Start(p)
	defer r.screen.Stop()
	setup := r.setup(load)
	r.csv.Level(number+1, load.String(), p.started)
	opts := r.levelOptions(load)
	watch, watchErr := benchmark.WatchServer(ctx, r.server.Target, opts.Clock, 0)
	opts.OnWindow = func(w benchmark.Window) {
		p.Window(w)
		watch.LookNow()
	}
	power := watchEnergy(ctx, r.server)
	report, err := benchmark.Run(ctx, r.server.Target, r.feed, opts, func(q benchmark.Request) {
		p.Finished(q, time.Now())
		r.csv.Write(q)
	})
	var record *benchmark.ServerRecord
	if watchErr == nil {
		record = watch.Stop(ctx)
	}
	var energy *benchmark.EnergyRecord
	if power != nil {
		energy = power.Stop(ctx)
	}
	if report == nil {
		return nil, err
	}
	if err != nil && ctx.Err() != nil {
		report.Flags = append(report.Flags, "interrupted: the figures are of the part that was done")
		err = context.Cause(ctx)
	}
	r.view(report, record, watchErr)
	if from, to, ok := measuredPart(report); ok && energy != nil {
		report.Energy, _ = energy.Energy(from, to, report.OutputTokS*to.Sub(from).Seconds()) // nil: not watched for long enough
	}
	report.CacheState, report.Setup = state, setup
	r.complete(report)
	return report, err
}

// levelOptions are those of a load.
func (r *replayRun) levelOptions(load replayLoad) benchmark.Options {
	o, e := r.options, r.end
	opts := benchmark.Options{
		Endpoint: r.endpoint, Model: r.model, ContinuousUsage: r.detected.Kind == benchmark.KindSGLang || r.detected.Product == "vllm", Concurrency: load.clients, Arrivals: load.arrivals, Ramp: o.ramp,
		WarmupRequests: r.warmup(load), Window: e.window, Cap: e.duration, Target: e.target, Requests: e.requests,
		Starts: r.starts(), Drain: drainFor, Timeout: o.timeout, Retries: o.retries, SLO: r.slo,
	}
	if opts.WarmupRequests > 0 { // their own texts: the measured ones must not be in the cache
		opts.WarmupFeed = r.newFeed(fmt.Sprintf("%s/warmup %d", r.salt, len(r.reports)))
	}
	return opts
}

// starts is how many conversations may begin in a level that counts its requests: those of as many passes as it
// takes, so that every one goes on to its last turn before another pass begins. 0 is no limit.
func (r *replayRun) starts() int {
	n := r.workload.Len()
	for i := range n {
		if _, follows := r.workload.Follow(i); follows {
			n--
		}
	}
	if r.end.requests == 0 || r.summary.Requests == n {
		return 0
	}
	return n * ((r.end.requests + r.summary.Requests - 1) / r.summary.Requests)
}

// length is when a level ends at the latest, 0 when no time ends it.
func (r *replayRun) length(load replayLoad) time.Duration {
	d, a := r.end.duration, load.arrivals
	if a == nil || r.end.requests == 0 {
		return d
	}
	seconds := float64(r.end.requests) / a.Rate
	if recorded := r.summary.Arrivals; a.Process == benchmark.ArrivalsRecorded && recorded != nil {
		seconds = recorded.DurationS / a.Speed * float64(r.end.requests) / float64(max(1, r.summary.Requests))
	}
	if scheduled := time.Duration(seconds * float64(time.Second)); d == 0 || scheduled < d {
		return scheduled
	}
	return d
}

func (r *replayRun) setup(load replayLoad) *benchmark.Setup {
	return &benchmark.Setup{
		Sgtune: version(), StartedAt: time.Now().UTC().Format(time.RFC3339), URL: r.server.shown, Endpoint: r.endpoint, Model: r.model,
		Server: r.product(), Workload: filepath.Base(r.options.workload), Load: load.String(), Seed: r.options.seed, Salt: r.salt,
	}
}

// view adds the server's own account of the measured part, or notes why there is none.
func (r *replayRun) view(report *benchmark.Report, record *benchmark.ServerRecord, watchErr error) {
	r.viewless = ""
	if watchErr != nil {
		r.viewless = watchErr.Error()
		return
	}
	from, to, ok := measuredPart(report)
	if !ok {
		return
	}
	view, why := record.View(from, to)
	if view == nil {
		r.viewless = why
		return
	}
	report.Server = view
	if text := view.Disagrees(report.OutputTokS); text != "" && (longEnough(view) || farApart(view, report)) {
		report.Flags = append(report.Flags, text)
	}
	if view.OutputTokS != nil {
		report.ServerTokS = *view.OutputTokS
	}
}

// leastCompared is the shortest measured part over which the server's rates can be held against ours to a percent:
// they are read from it every few seconds.
const leastCompared = 15 * time.Second

func longEnough(view *benchmark.ServerView) bool {
	return !view.Coarse && !view.AtEnd && view.Seconds >= leastCompared.Seconds()
}

// farApart reports whether server and client differ by more than a short part explains.
func farApart(view *benchmark.ServerView, report *benchmark.Report) bool {
	const much = 0.25
	return view.OutputTokS != nil && math.Abs(*view.OutputTokS/report.OutputTokS-1) > much
}

// measuredPart is when the measured windows began and ended.
func measuredPart(report *benchmark.Report) (from, to time.Time, ok bool) {
	for _, w := range report.Windows {
		if !w.Steady {
			continue
		}
		if !ok {
			from, ok = w.Start, true
		}
		to = w.Start.Add(time.Duration(w.Seconds * float64(time.Second)))
	}
	return from, to, ok
}

// lengthsNote says how exact prompts of words are: what the server's counts have shown, and until they have shown
// anything, that nobody knows.
func (r *replayRun) lengthsNote() string {
	if note := r.calibration.Note(); note != "" {
		return note
	}
	return r.palette.Note
}

// complete adds workload and prompts, and takes out what nobody may see.
func (r *replayRun) complete(report *benchmark.Report) {
	summary := r.summary
	summary.First = nil // --dry-run shows the rows
	report.Workload = &summary
	for _, note := range []string{r.lengthsNote(), r.kinds.elsewhere(endpointPath(r.endpoint))} {
		if note != "" {
			report.Flags = append(report.Flags, note)
		}
	}
	for _, texts := range [][]string{report.Flags, report.Errors} {
		for i, text := range texts {
			texts[i] = r.mask(text)
		}
	}
	report.Advice = r.mask(report.Advice)
}
