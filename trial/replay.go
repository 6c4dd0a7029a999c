package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"sgtune/benchmark"
)

// Replayer puts loads on a server in place of this process: one beside the server, so that no link is inside a latency.
type Replayer interface {
	// Replay is benchmark.Run with the study's workload, of which it has a copy. next is how many prompts were taken
	// from the rows so far, Rows.Skip included. Times are of this machine, opts.Clock is not looked at. The error wraps
	// ErrLoadLost when the one who sends the load is not heard any more.
	Replay(ctx context.Context, target benchmark.Target, rows Rows, opts benchmark.Options, each func(benchmark.Request)) (report *benchmark.Report, next int, err error)
}

// ErrLoadLost is wrapped by the error of a Replayer whose load ended without a report, by no doing of the server.
var ErrLoadLost = errors.New("the load generator was lost")

// Rows says which prompts a load sends, and what they are made of.
type Rows struct {
	From, To int     // rows of the study's workload, of which
	Longest  float64 // the longest from this quantile on, 0 = all
	Short    int     // > 0: benchmark.Workload.Doubled
	Salt     string
	Skip     int // prompts taken before
	Palette  benchmark.Palette
}

// feed hands out the rows here.
func (r Rows) feed(w *benchmark.Workload) benchmark.Feed {
	from, to := r.From, r.To
	if r.Longest > 0 {
		w = w.Part(from, to).Longest(r.Longest)
		from, to = 0, w.Len()
	}
	if r.Short > 0 {
		w = w.Doubled(r.Short)
		from, to = 0, w.Len()
	}
	return skip(benchmark.NewFeed(w, from, to, r.Salt, r.Palette), r.Skip)
}

// Ends of a trial whose server lives but cannot be measured.
var (
	errFlush   = errors.New("the cache could not be flushed")
	errPalette = errors.New("prompts could not be made")
)

const (
	leastReuse    = 0.02 // below this share of shared prompt tokens no cache fill and no hicache
	dyingTime     = 90 * time.Second
	dyingTimeReal = 3 * time.Second
	cutAtOnce     = time.Millisecond // Options.Drain of a load whose result nobody reads
)

// replay is what all loads of one server's life share.
type replay struct {
	palette  benchmark.Palette
	measured source // one feed for all levels: the next level continues with the next rows
	split    int    // rows from here on are measured; those before it may fill the cache
}

// source is rows to send: by this process from a feed, or by the Replayer.
type source struct {
	rows Rows
	feed benchmark.Feed // nil with a Replayer
}

// source makes the rows ready to be sent.
func (a *attempt) source(rows Rows) source {
	rows.Palette = a.load.palette
	s := source{rows: rows}
	if a.Replayer == nil {
		s.feed = rows.feed(a.Load.Workload)
	}
	return s
}

// reserve is where the measured rows begin: they are reserved first, from the end of the file, two
// thirds of it where the cache must be filled before and all of it otherwise. It depends on the file and
// the study alone, so that every trial measures the same rows.
func (l Load) reserve() int {
	if !l.fills() {
		return 0
	}
	return l.Workload.Len() / 3
}

// fills reports whether the cache is filled before measuring.
func (l Load) fills() bool {
	return l.Workload != nil && l.Fill > 0 && l.FillHostPoolGB > 0 && l.Workload.Reuse >= leastReuse
}

// highest is the study's highest concurrency.
func (a *attempt) highest() int {
	return max(1, slices.Max(append(slices.Clone(a.Load.Levels), append(a.t.Plan, 1)...)))
}

// prepare asks the server for the tokens prompts are made of, once.
func (a *attempt) prepare(ctx context.Context) error {
	if a.load != nil {
		return nil
	}
	palette, err := benchmark.LoadPalette(ctx, a.target)
	if err != nil {
		return fmt.Errorf("%w: %w", errPalette, err)
	}
	if palette.Note != "" {
		a.find("approximate_lengths", palette.Note)
	}
	w, split := a.Load.Workload, a.Load.reserve()
	a.load = &replay{palette: palette, split: split}
	a.load.measured = a.source(Rows{From: split, To: w.Len(), Salt: a.salt(), Skip: taken(a.t.Levels)})
	return nil
}

// put puts one load on the server while the watch looks for signs of life.
func (a *attempt) put(ctx context.Context, from *source, opts benchmark.Options, each func(benchmark.Request)) (*benchmark.Report, error) {
	if a.loaded.IsZero() {
		a.loaded = a.Clock.Now()
	}
	opts.Clock = a.Clock
	shown := opts.OnWindow
	opts.OnWindow = func(w benchmark.Window) {
		if w.Output > 0 {
			a.watch.moved()
		}
		if shown != nil {
			shown(w)
		}
	}
	a.watch.loading(true)
	a.watch.look(ctx) // a server that dies within a second has been looked at once
	defer a.watch.loading(false)
	report, err := a.send(ctx, from, opts, func(q benchmark.Request) {
		if q.Failed == "" {
			a.watch.moved()
		}
		if each != nil {
			q.Error = a.hidden(q.Error)
			each(q)
		}
	})
	if report != nil {
		report.Series = nil // the windows say enough of a level that is kept for ever
	}
	a.hideIn(report)
	if err == nil {
		err = a.outlived(ctx, report)
	}
	return report, err
}

// send is benchmark.Run, here or beside the server. A source is used up by it.
func (a *attempt) send(ctx context.Context, from *source, opts benchmark.Options, each func(benchmark.Request)) (*benchmark.Report, error) {
	if a.Replayer == nil {
		return benchmark.Run(ctx, a.target, from.feed, opts, each)
	}
	seen := 0
	report, next, err := a.Replayer.Replay(ctx, a.target, from.rows, opts, func(q benchmark.Request) {
		seen++
		each(q)
	})
	if report == nil { // as many again may have been sent since they were last heard of: no text is sent twice
		next = from.rows.Skip + 2*(seen+opts.Concurrency)
	}
	from.rows.Skip = next
	return report, err
}

// outlived tells failed requests of a living server (its report stands, and is invalid) from those
// of a dying or hanging one, whose end the watch may not have seen yet.
func (a *attempt) outlived(ctx context.Context, r *benchmark.Report) error {
	failed := r.Requests.Sent - r.Requests.OK - r.Requests.Failed["wrong_tokens"]
	if failed == 0 && moving(r.Windows) {
		return nil
	}
	limit := a.Clock.Now().Add(a.floor(dyingTime, dyingTimeReal))
	for {
		if a.lives() && a.vital(ctx) {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if a.Clock.Now().After(limit) {
			return fmt.Errorf("%w: requests fail and /health does not answer", errStuck)
		}
		if err := a.Clock.Sleep(ctx, a.floor(readyPoll, 50*time.Millisecond)); err != nil {
			return err
		}
	}
}

// moving reports whether tokens went in or out in the last stretch of a load.
func moving(windows []benchmark.Window) bool {
	if len(windows) == 0 {
		return false
	}
	last := windows[len(windows)-1]
	return last.Output > 0 || last.Prompt > 0
}

// samples opens the file of raw samples of a level. A file that cannot be written costs evidence,
// not the measurement.
func (a *attempt) samples(level int) (write func(benchmark.Request), done func()) {
	file, err := os.OpenFile(a.samplesPath(level), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		a.find("evidence_incomplete", "raw samples could not be written: "+err.Error())
		return nil, func() {}
	}
	w := benchmark.NewSampleWriter(file)
	return w.Write, func() {
		if err := errors.Join(w.Flush(), file.Close()); err != nil {
			a.find("evidence_incomplete", "raw samples could not be written: "+err.Error())
		}
	}
}

func (a *attempt) samplesPath(level int) string {
	return filepath.Join(a.dir(), fmt.Sprintf("level-%d.samples.jsonl", level))
}
