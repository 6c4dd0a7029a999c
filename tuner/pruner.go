package tuner

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"sgtune/trial"
)

// When a load level is hopeless: it cannot reach pruneShare of the best configuration's value. A level that
// could is stopped with a chance of at most launchAlpha + windowAlpha, whenever and however often it is
// looked at.
const (
	pruneShare  = 0.97  // of the best configuration's expected value
	launchAlpha = 0.025 // chance that this launch and the best one's estimate mislead so far
	windowAlpha = 0.025 // chance that this launch's windows ever do
	levelPrior  = 0.1   // relative standard deviation of the ratio of two levels' values among configurations
)

// reference is a load level of an earlier trial, which a running one is paired with.
type reference struct {
	trial int
	value float64  // what the level is worth in the objective's unit, at most
	path  progress // averaged over all trials that measured the level
	of    int      // so many
}

// sieve is what a running trial is compared with. It is made once, before the launch, from what is stored.
type sieve struct {
	goal   float64 // value below which a trial is hopeless; 0 = nothing is pruned
	slack  float64 // log: what launch noise and the doubt about the best one's value allow
	width  float64 // seconds of a window
	refs   map[int]reference
	noise  pairNoise
	levels levelRatios
	bound  func(trial.Level) float64
}

// bound is the most that a level can be worth in the objective's unit, as far as its throughput tells: nil
// for an objective of which throughput says nothing. Goodput is at most all requests.
func (o Objective) bound() func(trial.Level) float64 {
	switch o.Metric {
	case "output_tok_s", "":
		return func(l trial.Level) float64 { return l.Report.OutputTokS }
	case "requests_s", "goodput":
		return func(l trial.Level) float64 { return l.Report.RequestsS }
	}
	return nil
}

// newSieve prepares the comparison of a search trial with the best configuration so far, whose value is
// best (log, with a standard deviation) by the loop's estimates; below is the sampler's own limit, 0 for none.
// The stricter of both limits counts, but nothing that may be better than the best is given up.
func newSieve(o Objective, h History, best estimate, noise Noise, below float64) sieve {
	s := sieve{bound: o.bound()}
	incumbent := h.Best()
	if incumbent == nil || *incumbent.Value <= 0 || s.bound == nil {
		return s
	}
	s.goal = math.Exp(best.Mean) * pruneShare
	if below > s.goal {
		s.goal = math.Min(below, math.Exp(best.Mean))
	}
	z := distuv.UnitNormal.Quantile(1 - launchAlpha)
	s.slack = z * math.Hypot(noise.Between(), best.SD)
	s.refs = referencesOf(h, incumbent, s.bound)
	s.noise = pairNoiseOf(h, s.refs)
	s.levels = ratiosOf(h, s.bound)
	return s
}

// referencesOf are the best trial's levels, and for other clients the best level measured there. bound is what a
// level is worth.
func referencesOf(h History, incumbent *trial.Trial, bound func(trial.Level) float64) map[int]reference {
	refs, all := map[int]reference{}, map[int][]progress{}
	for _, t := range h {
		if !counts(t) {
			continue
		}
		for _, l := range t.Levels {
			p, ok := progressOf(l)
			if !ok || !l.Report.Valid || l.Report.Pruned || bound(l) <= 0 {
				continue
			}
			all[l.Concurrency] = append(all[l.Concurrency], p)
			old, has := refs[l.Concurrency]
			if !has || t.Number == incumbent.Number || (old.trial != incumbent.Number && old.value < bound(l)) {
				refs[l.Concurrency] = reference{trial: t.Number, value: bound(l), path: p}
			}
		}
	}
	for clients, r := range refs {
		r.path, r.of = r.path.averaged(all[clients]), len(all[clients])
		refs[clients] = r
	}
	return refs
}

// hopeless tells whether a load level cannot reach the goal, by its windows so far (output tok/s).
func (s sieve) hopeless(clients int, windows []float64) bool {
	r, ok := s.refs[clients]
	if s.goal <= 0 || !ok {
		return false
	}
	limit := s.goal / r.value * math.Exp(-s.slack)
	return s.noise.below(limit, r.path.pace(windows, s.windowOf(r), s.noise.flat), windowAlpha)
}

func (s sieve) windowOf(r reference) float64 {
	if s.width > 0 {
		return s.width
	}
	return r.path.width
}

// allHopeless tells whether the levels that are left can still save a trial whose last level was hopeless: by
// how much they were better than that one in other trials, and how much that differed.
func (s sieve) allHopeless(last trial.Level, left []int) bool {
	if last.Report == nil || s.bound == nil || s.bound(last) <= 0 {
		return false
	}
	z := distuv.UnitNormal.Quantile(1 - launchAlpha)
	for _, clients := range left {
		ratio, ok := s.levels[[2]int{last.Concurrency, clients}]
		if !ok {
			return false
		}
		if math.Log(s.bound(last))+ratio.Mean+math.Hypot(s.slack, z*ratio.SD) >= math.Log(s.goal) {
			return false
		}
	}
	return true
}

// levelRatios are the log ratios of the value at the second number of clients to that at the first, over
// configurations.
type levelRatios map[[2]int]estimate

func ratiosOf(h History, bound func(trial.Level) float64) levelRatios {
	logs := map[[2]int][]float64{}
	for _, t := range h {
		if !counts(t) {
			continue
		}
		for _, a := range t.Levels {
			for _, b := range t.Levels {
				if a.Report == nil || b.Report == nil || a.Report.Pruned || b.Report.Pruned || bound(a) <= 0 || bound(b) <= 0 {
					continue
				}
				pair := [2]int{a.Concurrency, b.Concurrency}
				logs[pair] = append(logs[pair], math.Log(bound(b)/bound(a)))
			}
		}
	}
	out := levelRatios{}
	for pair, x := range logs {
		mean, sd := meanAndSpread(x)
		n := float64(len(x))
		variance := (priorWeight*levelPrior*levelPrior + (n-1)*sd*sd) / (priorWeight + n - 1)
		out[pair] = estimate{Mean: mean, SD: math.Sqrt(variance * (1 + 1/n))}
	}
	return out
}

// sieve prepares the comparison for a trial that is about to be launched.
func (l *Loop) sieve(h History, t *trial.Trial) sieve {
	if t.Role != trial.RoleSearch || h.Best() == nil {
		return sieve{}
	}
	st := standingsOf(h.where(func(t *trial.Trial) bool { return t.Role != trial.RoleConfirm }))
	best, ok := st.best()
	if !ok {
		return sieve{}
	}
	s := newSieve(l.Study.Objective, h, best, st.noise, l.abortBelow)
	s.width = l.Study.Measure.Window.Seconds()
	return s
}

// Prune tells whether the running load level is hopeless by its windows so far (output tok/s): a sequential
// test against the best configuration's expected value, on windows paired with an earlier trial's by the same
// requests. Only search trials are pruned. It is trial.Runner's Prune hook; the partial result is kept as a
// bound.
func (l *Loop) Prune(t *trial.Trial, windows []float64) bool {
	if t.Role != trial.RoleSearch || len(t.Levels) >= len(t.Plan) {
		return false
	}
	return l.running.sieve(t.Number).hopeless(t.Plan[len(t.Levels)], windows)
}

// Hopeless tells, after a level was stopped early, whether the trial is as well: no level was measured in
// full, and those that are left cannot make up for it. It is trial.Runner's Hopeless hook.
func (l *Loop) Hopeless(t *trial.Trial) bool {
	if slices.ContainsFunc(t.Levels, inFull) || len(t.Levels) == 0 {
		return false
	}
	return l.running.sieve(t.Number).allHopeless(t.Levels[len(t.Levels)-1], t.Plan[min(len(t.Levels), len(t.Plan)):])
}

// More names a further load level for a search trial whose levels all missed the SLO: the next lower one, where
// it may still be worth something. Without it a trial that is good at fewer clients would end without a value
// and teach nothing. It is trial.Runner's More hook.
func (l *Loop) More(t *trial.Trial) (clients int, ok bool) {
	if t.Role != trial.RoleSearch || l.Study.Objective.SLO == (SLO{}) || len(t.Levels) == 0 {
		return 0, false
	}
	last := t.Levels[len(t.Levels)-1]
	if _, _, met := l.Study.Objective.Score(t.Levels); met || !inFull(last) || !last.Report.Valid {
		return 0, false
	}
	for _, level := range l.Study.Workload.Concurrency { // ascending
		if level < last.Concurrency {
			clients, ok = level, true
		}
	}
	return clients, ok && !l.running.sieve(t.Number).allHopeless(last, []int{clients})
}
