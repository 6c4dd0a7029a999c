// Package physics is the search that knows how a server's memory and throughput work: thirty trials
// are all a night holds, and most of what a general optimizer would spend them on follows from
// arithmetic or from one start-up log.
//
// It is a Bayesian optimizer in parts, each a model with Observe and Predict (a mean and a spread):
//
//	Memory      free GPU memory and KV tokens of any configuration, calibrated by each start's log
//	Risk        the chance that prefill runs out of GPU memory under load
//	Crashes     which choices, and which pairs of them, do not start at all
//	Throughput  what physics expects of the objective: concurrency, hit ratio, step times
//	Residual    what the measurements say beyond that, a Gaussian process over all knobs
//	Noise       how far two launches of the same configuration differ
//
// Search holds them together: Suggest asks for the next trial, Observe takes what it showed, and
// Recommend names the configuration to export. A Search is a function of its facts and of the
// observations in their order: the same sequence gives the same answers, so a study that was killed
// is continued by observing its stored trials again.
//
// The package knows nothing of launching, of stored rows or of study files: sgtune/tuner translates
// trials, cmd/sgtune the line protocol of `sgtune suggest`. Both use this code and nothing else.
//
// Reading order: space.go, facts.go, observation.go, search.go, then a model at a time, then
// candidates.go and acquisition.go.
package physics
