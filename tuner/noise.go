package tuner

import (
	"math"
	"slices"
	"time"

	"sgtune/trial"
)

// What is believed of noise before anything was repeated, and how many repeats it takes to outweigh that.
const (
	launchPrior  = 0.015 // relative standard deviation of launches beyond their windows' own noise
	priorWeight  = 4     // degrees of freedom that the prior counts
	windowsPrior = 0.01  // relative standard error of a launch's value when no interval was reported
	leastNoise   = 0.005 // believed of a launch's windows at least
)

// Noise is how far the values of equal launches differ in this study.
type Noise struct {
	Launch  float64 // relative standard deviation of one launch's value around its configuration's true one
	Windows float64 // what a launch's own windows explain of that: their relative standard error, same requests cancelled
	Repeats int     // launches that repeated an earlier one; they are what Launch was learnt from
}

// Between is the part of the noise that a longer measurement does not take away: what one launch of a
// configuration differs from the next by.
func (n Noise) Between() float64 {
	return math.Sqrt(math.Max(n.Launch*n.Launch-n.Windows*n.Windows, leastNoise*leastNoise))
}

// noiseOf learns the noise from repeated launches of the same configuration (baselines, confirmations), with
// a prior that a handful of them outweighs: the variance is the mean of prior and sample variances, weighted
// by their degrees of freedom (a scaled inverse chi-squared prior; Gelman et al., "Bayesian data analysis",
// chapter 2). The prior is what the launches' own windows show plus launchPrior, for windows alone leave out
// whatever differs from one launch to the next. A drift of the host that was found is not noise and is left out.
func noiseOf(h History, d Drift) Noise {
	n := Noise{Windows: windowNoise(h)}
	groups := repeatedLaunches(h)
	squares, dof := 0.0, 0
	for _, g := range groups {
		if d.Found {
			g = g.without(d)
		}
		squares += g.squares()
		dof += len(g.log) - 1
	}
	n.Repeats = dof
	if d.Found {
		dof = max(0, dof-1) // the slope was fitted to them too
	}
	prior := n.Windows*n.Windows + launchPrior*launchPrior
	n.Launch = math.Sqrt(math.Max(leastNoise*leastNoise, (priorWeight*prior+squares)/float64(priorWeight+dof)))
	return n
}

// windowNoise is the relative standard error of one launch's value by its own windows. The launches' own 95%
// intervals contain how much some rows are heavier than others, which does not tell launches apart that
// replayed the same rows; where there are pairs of such launches, those say how much is left.
func windowNoise(h History) float64 {
	var all []float64
	for _, t := range h {
		if r := bestReport(t); counts(t) && r != nil && r.OutputTokS > 0 && r.OutputHigh > r.OutputLow {
			all = append(all, (r.OutputHigh-r.OutputLow)/2/1.96/r.OutputTokS)
		}
	}
	se := windowsPrior
	if len(all) > 0 {
		slices.Sort(all)
		se = all[len(all)/2]
	}
	if paired, ok := pairedNoise(h); ok {
		se = math.Min(se, paired)
	}
	return math.Max(se, leastNoise)
}

// pairedNoise is the standard error that paired windows leave of a launch's value; ok is false without pairs.
func pairedNoise(h History) (se float64, ok bool) {
	best := h.Best()
	if best == nil {
		return 0, false
	}
	refs := referencesOf(h, best, Objective{}.bound())
	r, ok := refs[best.Best]
	if !ok || r.of < 2 {
		return 0, false
	}
	noise, windows := pairNoiseOf(h, refs), 0
	for _, at := range r.path.at {
		if at > r.path.begun {
			windows++
		}
	}
	return noise.sd * noise.wide / math.Sqrt(float64(max(1, windows))), true
}

// repeated are launches of one configuration that were measured alike, in order.
type repeated struct {
	at  []time.Time // when they ended
	log []float64   // log value
}

// repeatedLaunches groups the launches that can be compared with each other. A search launch is not grouped
// with the confirmation of its configuration: it was picked because it was high.
func repeatedLaunches(h History) []repeated {
	byKey := map[string]int{}
	var all []repeated
	for _, t := range h {
		if !counts(t) || *t.Value <= 0 {
			continue
		}
		key := Key(t.Config)
		if t.Role == trial.RoleSearch {
			key = "search " + key
		}
		i, seen := byKey[key]
		if !seen {
			i, all = len(all), append(all, repeated{})
			byKey[key] = i
		}
		all[i].at = append(all[i].at, t.EndedAt)
		all[i].log = append(all[i].log, math.Log(*t.Value))
	}
	return slices.DeleteFunc(all, func(g repeated) bool { return len(g.log) < 2 })
}

// squares is the sum of squared deviations from the group's mean.
func (g repeated) squares() float64 {
	_, sd := meanAndSpread(g.log)
	return sd * sd * float64(len(g.log)-1)
}

// without takes a drift out.
func (g repeated) without(d Drift) repeated {
	out := repeated{at: g.at, log: slices.Clone(g.log)}
	for i, at := range g.at {
		out.log[i] -= d.Slope * at.Sub(g.at[0]).Hours()
	}
	return out
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
