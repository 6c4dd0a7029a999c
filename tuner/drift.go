package tuner

import (
	"context"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"sgtune/trial"
)

// When a drift of the host is believed.
const (
	driftPrior    = 0.01 // log value an hour, standard deviation of drifts before one was seen
	leastDriftFor = time.Hour
	leastDriftDoF = 2 // repeats beyond the first launches: two points always lie on a line
)

// Drift is a change of the host over the night (heat, a neighbour, fragmentation), estimated from launches of
// the same configuration at different times. The confirmation's ABBA order keeps a steady one out of the
// verdict; the ranking of search trials, hours apart, is corrected by it.
type Drift struct {
	Found     bool          // it is more than chance explains, at 95%
	Slope     float64       // log value an hour as fitted
	Low, High float64       // its 95% interval
	PerHour   float64       // what to correct by: the fit shrunk towards no drift
	SD        float64       // standard deviation of PerHour
	Span      time.Duration // between the first and the last of a configuration's launches, the longest
	Launches  int
}

// driftOf fits one slope to all repeated launches, each configuration with a mean of its own (least squares
// with fixed effects), and tests it by Student's t with the noise those launches and the prior show.
func driftOf(h History) Drift {
	var d Drift
	var xx, xy, yy float64
	dof := 0
	for _, g := range repeatedLaunches(h) {
		x := make([]float64, len(g.at))
		for i, at := range g.at {
			x[i] = at.Sub(g.at[0]).Hours()
		}
		mx, _ := meanAndSpread(x)
		my, _ := meanAndSpread(g.log)
		for i := range x {
			xx += (x[i] - mx) * (x[i] - mx)
			xy += (x[i] - mx) * (g.log[i] - my)
			yy += (g.log[i] - my) * (g.log[i] - my)
		}
		dof += len(g.log) - 1
		d.Launches += len(g.log)
		d.Span = max(d.Span, g.at[len(g.at)-1].Sub(g.at[0]))
	}
	if dof < leastDriftDoF || d.Span < leastDriftFor || xx <= 0 {
		return d
	}
	d.Slope = xy / xx
	floor := windowNoise(h)
	prior := floor*floor + launchPrior*launchPrior
	nu := float64(priorWeight + dof - 1)
	se := math.Sqrt((priorWeight*prior + math.Max(0, yy-d.Slope*xy)) / nu / xx)
	half := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: nu}.Quantile(0.975) * se
	d.Low, d.High = d.Slope-half, d.Slope+half
	d.Found = d.Low > 0 || d.High < 0
	if !d.Found {
		return d
	}
	weight := driftPrior * driftPrior / (driftPrior*driftPrior + se*se)
	d.PerHour, d.SD = weight*d.Slope, math.Sqrt(weight)*se
	return d
}

// Text says a drift that was found, "" without one.
func (d Drift) Text() string {
	if !d.Found {
		return ""
	}
	return fmt.Sprintf("the host changed over the night by %s an hour (95%% interval %s to %s; %d launches of equal configurations over %s)",
		percent(math.Expm1(d.Slope)), percent(math.Expm1(d.Low)), percent(math.Expm1(d.High)), d.Launches, span(d.Span))
}

// undrifted are the trials with the drift taken out of their values, as if all had ended with the last of
// them. Rows that change are copies.
func undrifted(h History, d Drift) History {
	if !d.Found || len(h) == 0 {
		return h
	}
	last := lastEnd(h)
	out := make(History, len(h))
	for i, t := range h {
		out[i] = t
		if t.Value == nil || t.EndedAt.IsZero() {
			continue
		}
		row, v := *t, *t.Value*math.Exp(d.PerHour*last.Sub(t.EndedAt).Hours())
		row.Value = &v
		out[i] = &row
	}
	return out
}

func lastEnd(h History) time.Time {
	var last time.Time
	for _, t := range h {
		if t.EndedAt.After(last) {
			last = t.EndedAt
		}
	}
	return last
}

// The baseline is launched a second time in the middle of a long search, and only where the study's time is
// limited: the search's trials are hours apart then, and nothing else tells a change of the host from a
// difference of configurations. It costs one of the budget's trials.
const (
	anchorAfter  = 3 * time.Hour // since the baseline
	anchorLeaves = 4             // search trials that must still fit behind it
	anchorName   = "anchor"      // stored as the trial's sampler
)

// anchor launches the baseline again when the middle of a long search is reached.
func (l *Loop) anchor(_ context.Context, h History) (*trial.Trial, error) {
	base, p := h.Baseline(), l.plan(h)
	if base == nil || !counts(base) || l.Record.Candidate != nil || len(h.Role(trial.RoleConfirm)) > 0 || p.Deadline.IsZero() {
		return nil, nil
	}
	for _, t := range h.Role(trial.RoleBaseline) {
		if t.Sampler == anchorName {
			return nil, nil
		}
	}
	ran, left := p.Now.Sub(base.EndedAt), p.Deadline.Sub(p.Now)-p.Reserve()
	if p.Limit > 0 {
		left = min(left, time.Duration(p.Limit-p.Launches)*p.Search)
	}
	if ran < anchorAfter || ran < left || left < p.Full+anchorLeaves*p.Search {
		return nil, nil
	}
	return l.newTrial(h, trial.RoleBaseline, Proposal{
		Config: l.Study.Baseline, Sampler: anchorName,
		Why: fmt.Sprintf("the baseline again, after %s of search: whether the host itself became faster or slower", span(ran)),
	}), nil
}
