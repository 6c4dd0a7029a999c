// Package virtual runs whole nights in virtual time and in one process: the product's own loop and sampler over
// a TrialRunner that asks the simulator's model instead of launching servers (design 10). A night of thirty
// trials takes seconds, so that the search can be judged over many seeds against the best configuration there
// is, which best.go finds by brute force.
//
// The way of one trial is trial.Runner's, step by step: the same canary, fill, levels and drain, the same
// report (benchmark.Fold), the same early stop. What is left out: HTTP, the log's text, processes, a baseline that
// needs the smaller canary. A night of ./test/nights runs both ways and must agree.
//
// Reading order: night.go, runner.go, load.go, value.go, best.go; parts.go has clock, store and host.
package virtual
