package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"

	"sgtune/benchmark"
)

// replayRun is one run of sgtune replay.
type replayRun struct {
	options        *replayOptions
	stdout, stderr io.Writer
	mask           func(string) string

	loads    []replayLoad
	target0  float64 // --target
	slo      benchmark.SLO
	workload *benchmark.Workload
	summary  benchmark.Summary
	end      levelEnd

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
	// leastView is the shortest measured part whose server figures can disagree with ours: they are read each
	// 5 s, and what comes before and after is smeared into a shorter one.
	leastView = 15 * time.Second
)

// plan decides how levels end.
func (r *replayRun) plan() {
	o := r.options
	e := levelEnd{requests: o.requests, duration: o.duration, target: r.target0, window: o.window}
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

// connect finds out what the server is and what prompts for it are made of. Nothing reaches its generation
// endpoints.
func (r *replayRun) connect(ctx context.Context) error {
	o := r.options
	for _, note := range r.server.notes {
		r.screen.Say(note)
	}
	var err error
	if r.detected, err = benchmark.Detect(ctx, r.server.Target); err != nil {
		if ctx.Err() != nil || o.endpoint == "auto" || o.requests == 0 {
			return fmt.Errorf("%w; is this the server's address, has it started?", err)
		}
		// The command line says everything that is needed: whoever counts requests gets them counted.
		r.screen.Say(fmt.Sprintf("the server does not answer (%s); the requests are sent all the same", err))
	}
	r.chooseEndpoint()
	if r.model = o.model; r.model == "" {
		r.model = r.detected.Model
	}
	if r.palette, err = r.loadPalette(ctx); err != nil {
		return err
	}
	r.salt = o.salt
	if r.salt == "" && !r.texts() {
		r.salt = newSalt()
	}
	r.calibration = &benchmark.Calibration{}
	r.feed = r.newFeed(r.salt)
	r.screen.Say(r.serverText())
	return nil
}

// texts reports whether the workload brings its own texts, which are sent as they are.
func (r *replayRun) texts() bool {
	row := r.workload.Row(0)
	return row.Text != "" || len(row.Turns) > 0
}

// newSalt makes prompts that no server has seen.
func newSalt() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// chooseEndpoint takes the endpoint that was named, else the one that suits rows and server.
func (r *replayRun) chooseEndpoint() {
	if r.endpoint = r.options.endpoint; r.endpoint != "auto" {
		return
	}
	row := r.workload.Row(0)
	switch {
	case len(row.Turns) > 0 && !r.detected.IDsOnly:
		r.endpoint = benchmark.EndpointChat
	case r.detected.Kind == benchmark.KindSGLang:
		r.endpoint = benchmark.EndpointGenerate
	default:
		r.endpoint = benchmark.EndpointCompletions
	}
}

// loadPalette asks the server which words are one token; one that cannot tell is sent words, and the
// lengths are approximate.
func (r *replayRun) loadPalette(ctx context.Context) (benchmark.Palette, error) {
	if r.texts() {
		return benchmark.WordPalette(""), nil // nothing is made of it but what sets passes apart
	}
	palette, err := benchmark.LoadPalette(ctx, r.server.Target)
	if err == nil {
		return palette, nil
	}
	if ctx.Err() != nil {
		return palette, context.Cause(ctx)
	}
	return benchmark.WordPalette("the server does not tell its tokens (" + r.mask(err.Error()) + ")"), nil
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
	r.csv.Level(number, load.String(), p.started)
	opts := r.levelOptions(load)
	opts.OnWindow = p.Window
	watch, watchErr := benchmark.WatchServer(ctx, r.server.Target, opts.Clock, 0)
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
		Drain: drainFor, Timeout: o.timeout, Retries: o.retries, SLO: r.slo,
	}
	if opts.WarmupRequests > 0 { // their own texts: the measured ones must not be in the cache
		opts.WarmupFeed = r.newFeed(fmt.Sprintf("%s/warmup %d", r.salt, len(r.reports)))
	}
	return opts
}

// length is when a level ends at the latest, 0 when no time ends it.
func (r *replayRun) length(load replayLoad) time.Duration {
	d := r.end.duration
	if a := load.arrivals; a != nil && a.Rate > 0 && r.end.requests > 0 {
		byRate := time.Duration(float64(r.end.requests) / a.Rate * float64(time.Second))
		if d == 0 || byRate < d {
			return byRate
		}
	}
	return d
}

func (r *replayRun) setup(load replayLoad) *benchmark.Setup {
	return &benchmark.Setup{
		Sgtune: version(), StartedAt: time.Now().UTC().Format(time.RFC3339), URL: r.server.shown, Endpoint: r.endpoint, Model: r.model,
		Server: r.product(), Load: load.String(), Seed: r.options.seed, Salt: r.salt,
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
	if text := view.Disagrees(report.OutputTokS); text != "" && to.Sub(from) >= leastView {
		report.Flags = append(report.Flags, text)
	}
	if view.OutputTokS != nil {
		report.ServerTokS = *view.OutputTokS
	}
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

// complete adds workload and prompts, and takes out what nobody may see.
func (r *replayRun) complete(report *benchmark.Report) {
	summary := r.summary
	summary.First = nil // --dry-run shows the rows
	report.Workload = &summary
	for _, note := range []string{r.palette.Note, r.calibration.Note()} {
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

// product is what the server calls itself.
func (r *replayRun) product() string {
	return strings.TrimSpace(r.detected.Product + " " + r.detected.Version)
}

// newFeed hands out the workload's prompts under a salt.
func (r *replayRun) newFeed(salt string) benchmark.Feed {
	feed := benchmark.NewFeedWith(r.workload, benchmark.FeedOptions{
		Salt: salt, Palette: r.palette, Endpoint: r.endpoint, Open: r.options.stopAtEOS, Calibration: r.calibration,
	})
	if r.options.outputTokens > 0 {
		return shortFeed{feed, r.options.outputTokens}
	}
	return feed
}

// shortFeed asks for answers of another length than the workload does.
type shortFeed struct {
	benchmark.Feed
	output int // tokens
}

// Next implements benchmark.Feed.
func (f shortFeed) Next() benchmark.Prompt { return f.shape(f.Feed.Next()) }

// Learn implements benchmark.Learner.
func (f shortFeed) Learn(p benchmark.Prompt, q benchmark.Request) {
	if feed, ok := f.Feed.(benchmark.Learner); ok {
		feed.Learn(p, q)
	}
}

func (f shortFeed) shape(p benchmark.Prompt) benchmark.Prompt {
	p.OutputTokens = f.output
	if follow := p.Follow; follow != nil {
		p.Follow = func(a benchmark.Answer) (benchmark.Prompt, time.Duration, bool) {
			next, pause, ok := follow(a)
			return f.shape(next), pause, ok
		}
	}
	return p
}
