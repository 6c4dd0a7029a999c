package tuner

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner/physics"
)

// How much less a measurement says about the point it is coded as.
const (
	movedSD   = 0.03 // for each knob that stands at the nearest value, or at a guess
	foreignSD = 0.05 // where flags outside of the space differ from those of the search
	usualSD   = 0.02 // of a value without an interval of its own
	leastFrac = 0.05 // of the full measuring time, however early a trial was given up
)

// observe translates a finished trial. ok is false for one that says nothing about its configuration:
// void, ended by a person or by the machine, or with answers of another quality. Only failures that
// blame the configuration count; one that blames it partly (a bug that it may provoke) does once it
// has happened twice.
//
// Confirmation launches count like any other: they are fresh launches of a configuration that was
// measured before, and what tells best how far two launches of the same differ. The choice of the
// candidate does not see them (see candidate): it came first.
func (s *codedSpace) observe(p Problem, t *trial.Trial) (o physics.Observation, ok bool) {
	status, ok := statusOf(p, t)
	if !ok || otherQuality(p, t) {
		return o, false
	}
	point, moved := s.point(t.Config, t.Memory)
	o = physics.Blank(point, status)
	s.memory(&o, t)
	if t.Startup > 0 {
		o.StartupMin = t.Startup.Minutes()
	}
	if took := t.EndedAt.Sub(t.StartedAt); took > 0 && !t.StartedAt.IsZero() {
		o.CostMin = took.Minutes()
	}
	o.Frac = fracOf(p, t)
	if status == physics.OK || status == physics.Pruned {
		s.measured(&o, p, t)
		o.RelSD = blurred(o.RelSD, movedSD*float64(moved))
		if s.foreign(t) {
			o.RelSD = blurred(o.RelSD, foreignSD)
		}
	}
	return o, true
}

// statusOf is how a trial ended in the engine's words.
func statusOf(p Problem, t *trial.Trial) (physics.Status, bool) {
	switch {
	case !t.State.Finished() || t.Void != "" || t.State == trial.Cancelled:
		return 0, false
	case t.State == trial.Failed:
		return failure(p, t)
	case t.Verdict.Blames == trial.BlameNo: // throttled: the figures are the machine's
		return 0, false
	case t.Value != nil && *t.Value > 0 && t.State == trial.Pruned:
		return physics.Pruned, true
	case t.Value != nil && *t.Value > 0:
		return physics.OK, true
	case len(t.Levels) > 0 && t.State == trial.Complete:
		return physics.Worthless, true // no load level meets the SLO
	}
	return physics.Started, true
}

// failure is the status of a failed trial; ok is false when its configuration is not to blame.
func failure(p Problem, t *trial.Trial) (physics.Status, bool) {
	switch t.Verdict.Blames {
	case trial.BlameYes:
	case trial.BlamePartly:
		if !twice(p.History, t) {
			return 0, false
		}
	default:
		return 0, false
	}
	switch t.Verdict.Outcome {
	case trial.GPUOOM:
		if underLoad(t) {
			return physics.LoadOOM, true
		}
		return physics.StartOOM, true
	case trial.HostOOM:
		return physics.HostOOM, true
	case trial.QualityRejected, trial.QualityUnmeasured:
		return physics.Worthless, true
	default:
		return physics.Crashed, true
	}
}

// twice reports whether an earlier launch of the same configuration ended partly by its own fault, too.
func twice(history []*trial.Trial, t *trial.Trial) bool {
	for _, o := range history {
		if o.Number < t.Number && o.State == trial.Failed && o.Void == "" && o.Verdict.Blames == trial.BlamePartly && sameConfig(o.Config, t.Config) {
			return true
		}
	}
	return false
}

// underLoad reports whether a server that ran out of GPU memory had been ready.
func underLoad(t *trial.Trial) bool {
	switch t.Verdict.Cause {
	case "weights_too_big", "kv_pool_nonpositive", "graph_capture_oom":
		return false
	}
	switch t.Verdict.Phase {
	case sglang.PhaseReady, sglang.PhasePrefill, sglang.PhaseDecode, sglang.PhaseBench:
		return true
	default:
		return t.Startup > 0
	}
}

// otherQuality reports whether a trial's answers were of another quality than the search allows: its
// speed and its pool say nothing about what may be launched. What runs today may be lossy.
func otherQuality(p Problem, t *trial.Trial) bool {
	if _, searched := p.Space.Dim(kvDtype); !searched {
		wanted, ok := sglang.DtypeBytes(sglang.Merge(p.Flags, p.Base).Text(kvDtype))
		if got, known := sglang.DtypeBytes(t.Memory.KVDtype); ok && known && got != wanted {
			return true
		}
	}
	for name, v := range t.Config {
		if _, searched := p.Space.Dim(name); !searched && Lossy(name, v) != "" && p.Base.Text(name) != t.Config.Text(name) {
			return true
		}
	}
	return false
}

// foreign reports whether a trial had flags outside of the space that the search does not have.
func (s *codedSpace) foreign(t *trial.Trial) bool {
	for name := range t.Config {
		if _, searched := s.space.Dim(name); searched || name == kvDtype {
			continue
		}
		if _, has := s.base[name]; !has || s.base.Text(name) != t.Config.Text(name) {
			return true
		}
	}
	return false
}

// memory copies what the log and the GPU counters said.
func (s *codedSpace) memory(o *physics.Observation, t *trial.Trial) {
	m := t.Memory
	o.BeforeLoadGiB, o.AfterLoadGiB = finite(m.BeforeLoadGiB), finite(m.AfterLoadGiB)
	if capped := m.MaxTotalTokens > 0 && m.Tokens > m.MaxTotalTokens-max(1, m.PageSize); !capped {
		// A pool that max-total-tokens made smaller says nothing about the memory there was.
		o.KVGiB, o.Tokens, o.AfterKVGiB = finite(m.KVGiB), finite(float64(m.Tokens)), finite(m.AfterPoolGiB)
		o.AfterGraphGiB = finite(m.AfterGraphGiB)
		if m.AfterGraphGiB <= 0 {
			o.AfterGraphGiB = finite(m.AvailableGiB)
		}
	}
	if t.LowWater >= 0 {
		o.LowWaterGiB = float64(t.LowWater) / bytesPerGiB
	}
}

// measured copies what the load level that the value belongs to showed.
func (s *codedSpace) measured(o *physics.Observation, p Problem, t *trial.Trial) {
	o.Value = *t.Value * ratio(p)
	r := bestReport(t)
	if r == nil {
		return
	}
	switch sd := ownSD(t); {
	case p.Objective.Metric == "concurrency":
		if sd := levelSD(p.Levels); sd > 0 {
			o.RelSD = sd
		}
	case p.Objective.Metric != "goodput" && sd > 0:
		o.RelSD = math.Max(sd*s.paired, leastNoise)
	}
	o.Running = finite(RanAtOnce(t))
	if r.Tokens.Prompt > 0 {
		o.HitRatio = r.CacheHitRatio
	}
}

// levelSD is the relative standard deviation of a value that moves in whole load levels: what is true lies anywhere
// between two of them, and a uniform distribution's deviation is its width over the root of 12. 0 below two levels.
func levelSD(levels []int) float64 {
	if len(levels) < 2 || slices.Min(levels) <= 0 {
		return 0
	}
	return math.Log(float64(slices.Max(levels))/float64(slices.Min(levels))) / float64(len(levels)-1) / math.Sqrt(12)
}

// ownSD is the relative standard error of a trial's value by its own windows, 0 without an interval.
func ownSD(t *trial.Trial) float64 {
	r := bestReport(t)
	if r == nil || r.OutputTokS <= 0 || r.OutputHigh <= r.OutputLow {
		return 0
	}
	return (r.OutputHigh - r.OutputLow) / 2 / halfWidth(len(r.Windows)) / r.OutputTokS
}

// halfWidth is half a 95% interval of so many windows' mean in standard errors: with few of them the
// report's interval is wide because their spread is not known, which is not noise of the value.
func halfWidth(windows int) float64 {
	if windows < 3 {
		return normal975
	}
	return distuv.StudentsT{Sigma: 1, Nu: float64(min(windows, mostBatches) - 1)}.Quantile(0.975)
}

// earlyTrials are the first trials of a study.
const earlyTrials = 60

// firstOf are the trials by which all observations are scaled alike: the first ones of a study that has many.
// What comes after them then leaves what was observed before as it is, and the kept engine need not learn it anew.
func firstOf(history []*trial.Trial) []*trial.Trial { return history[:min(len(history), earlyTrials)] }

// mostBatches is how many batches a report's interval is made of at most (benchmark/steady.go).
const mostBatches = 30

// pairedShare is how much of the launches' own standard errors is left between launches that replayed
// the same rows: that some rows are heavier than others is in each interval, and tells no two of them
// apart.
func pairedShare(history []*trial.Trial) float64 {
	var own []float64
	for _, t := range history {
		if sd := ownSD(t); sd > 0 && counts(t) {
			own = append(own, sd)
		}
	}
	if len(own) == 0 {
		return 1
	}
	slices.Sort(own)
	return math.Min(1, windowNoise(history)/own[len(own)/2])
}

// normal975 is the 97.5th percentile of the normal distribution: half a 95% interval in standard errors.
const normal975 = 1.96

// RanAtOnce is how many requests the server ran at once, on average, at the load level of a trial's value: its own
// mean where it was read, else the most it printed, which never exceeds the requests in flight; 0 when not known.
func RanAtOnce(t *trial.Trial) float64 {
	r := bestReport(t)
	if r != nil && r.Server != nil && r.Server.RunningMean != nil {
		return *r.Server.RunningMean
	}
	if r != nil && r.Concurrency.Mean > 0 && t.MaxRunning > 0 {
		return math.Min(t.MaxRunning, r.Concurrency.Mean)
	}
	return t.MaxRunning
}

// fracOf is how much of the full measuring time a trial took: 1 for one that was measured to its end,
// else its share of what those took.
func fracOf(p Problem, t *trial.Trial) float64 {
	seconds := func(t *trial.Trial) (sum float64) {
		for _, l := range t.Levels {
			if l.Report != nil {
				sum += l.Report.Seconds
			}
		}
		return sum
	}
	if t.State == trial.Complete {
		return 1
	}
	longest := 0.0
	for _, o := range firstOf(p.History) {
		if counts(o) && o.Role != trial.RoleConfirm {
			longest = math.Max(longest, seconds(o)/float64(max(1, len(o.Plan)))*float64(max(1, len(t.Plan))))
		}
	}
	if longest <= 0 {
		return leastFrac
	}
	return math.Max(leastFrac, math.Min(1, seconds(t)/longest))
}

// blurred adds a relative standard error to one that may not be known.
func blurred(sd, more float64) float64 {
	switch {
	case more == 0:
		return sd
	case math.IsNaN(sd):
		return math.Hypot(usualSD, more)
	}
	return math.Hypot(sd, more)
}
