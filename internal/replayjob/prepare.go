package replayjob

import (
	"context"
	"errors"
	"sync/atomic"

	"sgtune/benchmark"
)

// prepared is what a job needs before its level begins.
type prepared struct {
	target   benchmark.Target
	workload *benchmark.Workload
	palette  benchmark.Palette
	feed     *countedFeed
	warmup   *countedFeed // nil without one

	calibration *benchmark.Calibration // of both feeds
}

func prepare(ctx context.Context, job Job) (*prepared, *Failure) {
	target, err := job.Target.target()
	if err != nil {
		return nil, &Failure{FailedJob, err.Error()}
	}
	workload, err := job.Workload.open()
	if err == nil {
		err = job.arrivals(workload)
	}
	if err != nil {
		return nil, &Failure{FailedWorkload, err.Error()}
	}
	p := &prepared{target: target, workload: workload, calibration: &benchmark.Calibration{}}
	if p.palette, err = job.palette(ctx, target, workload); err != nil {
		return nil, &Failure{FailedPalette, err.Error()}
	}
	if p.feed, err = p.newFeed(job.Feed, job.Load.Endpoint); err != nil {
		return nil, &Failure{FailedJob, err.Error()}
	}
	if job.Warmup != nil {
		if p.warmup, err = p.newFeed(*job.Warmup, job.Load.Endpoint); err != nil {
			return nil, &Failure{FailedJob, err.Error()}
		}
	}
	return p, nil
}

// palette is the job's, or the server's. Rows that bring their own texts need none but words to tell passes apart.
func (j Job) palette(ctx context.Context, target benchmark.Target, w *benchmark.Workload) (benchmark.Palette, error) {
	if j.Palette != nil {
		return *j.Palette, nil
	}
	if row := w.Row(0); row.Text != "" || len(row.Turns) > 0 {
		return benchmark.WordPalette(""), nil
	}
	return benchmark.LoadPalette(ctx, target)
}

// open reads the file or makes the set.
func (w Workload) open() (*benchmark.Workload, error) {
	switch {
	case w.Generate != nil && w.Path != "":
		return nil, errors.New("the job names a workload file and a generated set; leave one of them out")
	case w.Generate != nil:
		return benchmark.Generate(*w.Generate)
	case w.Path != "":
		return benchmark.ReadWorkloadAs(w.Path, w.Read)
	}
	return nil, errors.New("the job names no workload: neither a file nor a generated set")
}

// arrivals refuses recorded times that cannot be meant, as a wrong guess of their unit makes them. Who names the
// unit or another speed knows what they are.
func (j Job) arrivals(w *benchmark.Workload) error {
	a := j.Load.Arrivals
	if a == nil || a.Process != benchmark.ArrivalsRecorded {
		return nil
	}
	if said := j.Workload.Read.TimeUnit != "" || a.Speed != 0 && a.Speed != 1; w.Timed && said {
		return nil
	}
	return w.CheckArrivals()
}

// newFeed hands out the rows that f names.
func (p *prepared) newFeed(f Feed, endpoint string) (*countedFeed, error) {
	if f.Skip < 0 {
		return nil, errors.New("feed.skip is negative")
	}
	w, from, to := p.workload, f.From, f.To
	if f.Longest > 0 {
		if from < to {
			w = w.Part(from, to)
		}
		w = w.Longest(f.Longest)
		from, to = 0, w.Len()
	}
	if f.Short > 0 {
		if from < to {
			w = w.Part(from, to)
		}
		w = w.Doubled(f.Short)
		from, to = 0, w.Len()
	}
	c := &countedFeed{Feed: benchmark.NewFeedWith(w, benchmark.FeedOptions{
		From: from, To: to, Salt: f.Salt, Palette: p.palette, Endpoint: endpoint,
		Open: f.Open, OutputTokens: f.OutputTokens, Calibration: p.calibration,
	})}
	for range f.Skip {
		c.Next()
	}
	return c, nil
}

// told is what the caller hears before the level.
func (p *prepared) told() *Prepared {
	summary := p.workload.Summary()
	summary.First = nil
	return &Prepared{Workload: summary, Palette: p.palette.Note}
}

// countedFeed knows how many prompts were taken from it.
type countedFeed struct {
	benchmark.Feed
	taken atomic.Int64
}

// Next implements benchmark.Feed.
func (c *countedFeed) Next() benchmark.Prompt {
	c.taken.Add(1)
	return c.Feed.Next()
}

// Learn implements benchmark.Learner.
func (c *countedFeed) Learn(p benchmark.Prompt, r benchmark.Request) {
	if learner, ok := c.Feed.(benchmark.Learner); ok {
		learner.Learn(p, r)
	}
}
