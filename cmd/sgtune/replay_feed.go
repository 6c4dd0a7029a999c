package main

import (
	"time"

	"sgtune/benchmark"
)

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
