package tuner

import (
	"math"

	"sgtune/trial"
)

// When a load level may be given up early.
const (
	pruneWindows = 3    // windows before anything is decided
	pruneBelow   = 0.8  // share of the best value under which a level is hopeless
	pruneSigmas  = 3    // standard errors added to the mean first: a generous bound
	pruneSpread  = 0.02 // least relative spread believed; three windows may agree by chance
)

// Prune tells whether a load level is hopeless by its windows so far (output tok/s): even their
// mean plus a generous bound stays below 0.8 of the best value, or below the sampler's own limit.
// Only search trials are pruned, and only where the objective is throughput: for the others a
// window says nothing about the value. It is trial.Runner's Prune hook; the partial result is
// kept as a bound.
func (l *Loop) Prune(t *trial.Trial, windows []float64) bool {
	if t.Role != trial.RoleSearch || l.Study.Objective.Metric != "output_tok_s" {
		return false
	}
	return hopeless(windows, l.live.limit(t.Number))
}

// hopeless is the sequential rule behind Prune. limit 0 never prunes.
func hopeless(windows []float64, limit float64) bool {
	if len(windows) < pruneWindows || limit <= 0 {
		return false
	}
	mean, spread := meanAndSpread(windows)
	spread = math.Max(spread, pruneSpread*mean)
	return mean+pruneSigmas*spread/math.Sqrt(float64(len(windows))) < limit
}

// meanAndSpread are the mean and the sample standard deviation, 0 below two values.
func meanAndSpread(x []float64) (mean, spread float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	if len(x) < 2 {
		return mean, 0
	}
	for _, v := range x {
		spread += (v - mean) * (v - mean) / float64(len(x)-1)
	}
	return mean, math.Sqrt(spread)
}
