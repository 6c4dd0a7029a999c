package tuner

import (
	"math"

	"sgtune/trial"
)

// progress is the advance of a measured load level: how much work (output tokens) was done by when.
type progress struct {
	rate    float64   // mean output tok/s of its steady part
	width   float64   // seconds of a whole window
	work    []float64 // output tokens done at the end of each window
	at      []float64 // seconds from the level's start at the end of each window
	settled float64   // work done when the steady part began
	begun   float64   // and when that was
}

// progressOf reads a level's windows; ok is false where there are too few to compare with.
func progressOf(l trial.Level) (p progress, ok bool) {
	if l.Report == nil || len(l.Report.Windows) < 2 || l.Report.OutputTokS <= 0 {
		return progress{}, false
	}
	p.rate, p.width = l.Report.OutputTokS, l.Report.Windows[0].Seconds
	work, at, steady := 0.0, 0.0, false
	for _, w := range l.Report.Windows {
		if w.Steady && !steady {
			p.settled, p.begun, steady = work, at, true
		}
		work += w.Output * w.Seconds
		at += w.Seconds
		p.work, p.at = append(p.work, work), append(p.at, at)
	}
	return p, p.width > 0 && work > 0
}

// when is the time at which so much work was done; beyond the last window at the steady rate.
func (p progress) when(work float64) float64 {
	doneBefore, before := 0.0, 0.0
	for i, done := range p.work {
		if work <= done {
			if done == doneBefore {
				return before
			}
			return before + (work-doneBefore)/(done-doneBefore)*(p.at[i]-before)
		}
		doneBefore, before = done, p.at[i]
	}
	return before + (work-doneBefore)/p.rate
}

// averaged is a reference's progress with the chance of its own windows taken out: the mean of what all these
// levels needed for the same work, each at the reference's speed.
func (p progress) averaged(others []progress) progress {
	out := p
	out.at = make([]float64, len(p.at))
	for i, work := range p.work {
		for _, o := range others {
			out.at[i] += o.when(work) * o.rate / p.rate / float64(len(others))
		}
	}
	return out
}

// lateStart bounds how long a slow trial is left alone: it is judged once it did the work after which the
// reference was steady, or took this many times as long without getting there.
const lateStart = 2

// pace is a running level beside a reference at the same clients: for each window, how many seconds the
// reference took for the same work, over the window's length; 1 is the same speed, 0.8 a fifth slower.
//
// All trials of a study replay the same rows in the same order, so equal work is the same requests: what
// makes the rows of one window heavier than those of another falls on both sides and cancels (common random
// numbers; Law, "Simulation modeling and analysis", the chapter on variance reduction). That holds exactly for
// a trial's first level; later levels begin at other rows and gain less, which the noise learnt from such
// pairs contains. The opening is left out on both sides alike.
//
// Where rows are much alike the reference's own noise is more than what pairing takes away; flat compares with
// its mean instead.
func (p progress) pace(windows []float64, width float64, flat bool) []float64 {
	var out []float64
	done, at := 0.0, 0.0
	for _, w := range windows {
		next := done + w*width
		switch {
		case done < p.settled && at < lateStart*p.begun:
		case flat:
			out = append(out, w/p.rate)
		default:
			out = append(out, (p.when(next)-p.when(done))/width)
		}
		done, at = next, at+width
	}
	return out
}

// pairNoise is the noise of one window's pace, learnt from the pairs of levels that a study has.
type pairNoise struct {
	sd    float64 // relative standard deviation of one window
	batch int     // windows that are taken together, so that neighbours are about independent
	wide  float64 // factor by which the standard deviation of a batch exceeds that of independent windows
	flat  bool    // windows are compared with the reference's mean: pairing would add noise
}

// What is believed of windows before there are pairs.
const (
	pairPrior   = 0.05 // relative standard deviation of a window's pace
	leastPair   = 0.01 // believed at least
	lagPrior    = 0.1  // correlation of neighbouring windows
	mostLag     = 0.8
	mostBatched = 3 // windows in a batch
)

// pairNoiseOf learns the noise of paired windows and of flat ones, and takes what is less.
func pairNoiseOf(h History, references map[int]reference) pairNoise {
	paired, flat := learnPairs(h, references, false), learnPairs(h, references, true)
	if flat.sd*flat.wide < paired.sd*paired.wide {
		return flat
	}
	return paired
}

// learnPairs learns from all levels that can be paired with the reference at their clients. Windows of
// one level are alike from one to the next (a queue fills and empties over several), so the variance of a mean
// is larger by (1+r)/(1-r), r the correlation of neighbours, and looks are taken after whole batches only.
func learnPairs(h History, references map[int]reference, flat bool) pairNoise {
	var squares, neighbours float64
	dof := 0
	for _, t := range h {
		if !counts(t) {
			continue
		}
		for _, l := range t.Levels {
			r, ok := references[l.Concurrency]
			p, whole := progressOf(l)
			if !ok || !whole || r.of < 2 || l.Report.Pruned {
				continue
			}
			sq, nb, n := residuals(r.path.pace(outputsOf(l), p.width, flat))
			own := 1.0
			if !flat { // it is part of the mean it is compared with; the next one will not be
				own = float64(r.of+1) / float64(r.of-1)
			}
			squares, neighbours, dof = squares+sq*own, neighbours+nb*own, dof+max(0, n-1)
		}
	}
	prior := pairPrior * pairPrior
	variance := (priorWeight*prior + squares) / float64(priorWeight+dof)
	lag := (priorWeight*prior*lagPrior + neighbours) / (priorWeight*prior + squares)
	lag = math.Min(math.Max(lag, 0), mostLag)
	factor := (1 + lag) / (1 - lag)
	return pairNoise{
		sd: math.Max(math.Sqrt(variance), leastPair), wide: math.Sqrt(factor),
		batch: min(max(1, int(math.Round(factor))), mostBatched), flat: flat,
	}
}

// residuals are the sums of squares and of neighbours' products of a series relative to its mean. A sample mean
// takes a share of the correlation with it, so each product is raised by the variance over n.
func residuals(x []float64) (squares, neighbours float64, n int) {
	mean, spread := meanAndSpread(x)
	if len(x) < 2 || mean <= 0 {
		return 0, 0, 0
	}
	for i, v := range x {
		e := v/mean - 1
		squares += e * e
		if i > 0 {
			neighbours += e*(x[i-1]/mean-1) + spread*spread/mean/mean/float64(len(x))
		}
	}
	return squares, neighbours, len(x)
}

// outputsOf are a level's whole windows; the last one may have been cut.
func outputsOf(l trial.Level) []float64 {
	var out []float64
	for _, w := range l.Report.Windows {
		if w.Seconds > 0.99*l.Report.Windows[0].Seconds {
			out = append(out, w.Output)
		}
	}
	return out
}

// below tells whether the mean pace is below a limit, by the windows so far: their mean and the time-uniform
// bound above it are. false while there is nothing to judge by: a single window, or the middle of a batch.
func (n pairNoise) below(limit float64, pace []float64, alpha float64) bool {
	batches := len(pace) / n.batch
	if len(pace) < 2 || len(pace)%n.batch != 0 {
		return false
	}
	mean, own := meanAndSpread(pace)
	sd := n.sd * math.Max(mean, limit) // relative to the truth, which is the limit or more unless the level is hopeless
	if len(pace) > 2 {                 // a trial noisier than others is judged by its own noise
		sd = math.Max(sd, own)
	}
	sd *= n.wide / math.Sqrt(float64(n.batch))
	return mean+anytime(batches, sd, alpha) < limit
}
