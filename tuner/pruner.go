package tuner

import (
	"math"

	"sgtune/trial"
)

// When a load level may be given up early.
const (
	pruneWindows = 5   // windows before anything is decided
	pruneBelow   = 0.8 // share of the best trial's throughput under which a level is hopeless
	pruneSigmas  = 3   // standard errors granted first: a generous bound
)

// pace is what a running trial is compared with: the best trial's windows (output tok/s) at each
// number of clients, and the share of them under which a level is hopeless.
type pace struct {
	windows map[int][]float64
	value   float64 // of the best trial
	share   float64
}

// paceOf takes the best trial so far as the pace; below is the sampler's own limit, 0 for none.
func paceOf(best *trial.Trial, below float64) pace {
	p := pace{windows: map[int][]float64{}, share: pruneBelow}
	if best == nil || best.Value == nil || *best.Value <= 0 {
		return p
	}
	p.value = *best.Value
	p.share = math.Max(p.share, below/p.value)
	for _, l := range best.Levels {
		if l.Report == nil {
			continue
		}
		for _, w := range l.Report.Windows {
			p.windows[l.Concurrency] = append(p.windows[l.Concurrency], w.Output)
		}
	}
	return p
}

// Prune tells whether a load level is hopeless by its windows so far (output tok/s), beside the best
// trial's windows at the same clients. Both replayed the same rows after the same cache protocol, so
// the k-th windows belong together, the slow first ones included; a comparison with the best trial's
// final value would give up good trials while they warm up.
// Only search trials are pruned, and only where the objective is throughput: for the others a
// window says nothing about the value. It is trial.Runner's Prune hook; the partial result is
// kept as a bound.
func (l *Loop) Prune(t *trial.Trial, windows []float64) bool {
	if t.Role != trial.RoleSearch || l.Study.Objective.Metric != "output_tok_s" || len(t.Levels) >= len(t.Plan) {
		return false
	}
	p := l.live.pace(t.Number)
	for _, earlier := range t.Levels { // a trial that is good at one load level is not hopeless at another
		if earlier.Report != nil && earlier.Report.OutputTokS >= p.share*p.value {
			return false
		}
	}
	return hopeless(windows, p.windows[t.Plan[len(t.Levels)]], p.share)
}

// hopeless is the sequential rule behind Prune: the mean paired difference to share x best, plus a
// generous bound, is still below 0.
func hopeless(windows, best []float64, share float64) bool {
	n := min(len(windows), len(best))
	if n < pruneWindows {
		return false
	}
	ahead := make([]float64, n)
	for k := range ahead {
		ahead[k] = windows[k] - share*best[k]
	}
	mean, spread := meanAndSpread(ahead)
	return mean+pruneSigmas*spread/math.Sqrt(float64(n)) < 0
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
