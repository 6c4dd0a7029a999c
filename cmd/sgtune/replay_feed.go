package main

import "sgtune/benchmark"

// newFeed hands out the workload's prompts under a salt.
func (r *replayRun) newFeed(salt string) benchmark.Feed {
	return benchmark.NewFeedWith(r.workload, benchmark.FeedOptions{
		Salt: salt, Palette: r.palette, Endpoint: r.endpoint, Open: r.options.stopAtEOS, OutputTokens: r.options.outputTokens, Calibration: r.calibration,
	})
}
