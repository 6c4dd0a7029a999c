package tuner

import (
	"context"
	"fmt"

	"sgtune/trial"
)

// Status is where a study stands, for a terminal or a page: all of it is derived from the store.
type Status struct {
	Plan     Plan
	Baseline *trial.Trial // newest baseline launch that ran, nil before
	Best     *trial.Trial // highest value so far, the baseline included, nil before
	Failed   *trial.Trial // newest trial that failed, nil when none did
	Next     *trial.Trial // about to be launched, nil between trials
	Running  int          // trials that run beside it
	Drift    Drift        // change of the host over the night, as far as repeated launches show one
	JobNow   float64      // hours the whole job takes with the baseline, 0 unknown or no workload.total
	JobBest  float64      // and with Best
}

// show tells Show where the study stands.
func (l *Loop) show(h History, next *trial.Trial) {
	if l.Show == nil {
		return
	}
	s := Status{Plan: l.plan(h), Baseline: h.Baseline(), Best: h.Best(), Drift: driftOf(h), Running: len(l.running.of)}
	s.JobNow, s.JobBest = l.jobOf(h)
	if next != nil {
		row := *next // the runner goes on changing its own
		s.Next = &row
	}
	for _, t := range h {
		if t.State == trial.Failed {
			s.Failed = t
		}
	}
	l.Show(s)
}

// report says after a trial how it went and what still fits.
func (l *Loop) report(ctx context.Context, t *trial.Trial) error {
	h, err := l.history(ctx)
	if err != nil {
		return err
	}
	p := l.plan(h)
	l.show(h, nil)
	return l.event(ctx, Event{Kind: "plan", Trial: &t.Number, Text: fmt.Sprintf("trial %d %s. %s", t.Number, l.outcome(t), p.Text())})
}

// outcome is how a trial ended, in words.
func (l *Loop) outcome(t *trial.Trial) string {
	switch {
	case t.Void != "":
		return "is void: " + t.Void
	case t.State == trial.Failed || t.State == trial.Cancelled:
		return fmt.Sprintf("%s: %s (%s)", t.State, t.Verdict.Outcome, t.Verdict.Text)
	case t.Value == nil:
		return fmt.Sprintf("is %s without a value", t.State)
	}
	return fmt.Sprintf("is %s: %s", t.State, l.Study.Objective.At(*t.Value, t.Best))
}

// plan is what still fits now.
func (l *Loop) plan(h History) Plan {
	pairs := l.Record.Confirm
	if pairs == 0 {
		pairs = l.Study.Confirm
	}
	if pairs == 0 {
		pairs = leastPairs
	}
	p := newPlan(h, l.Study.Budget, l.Clock.Now(), l.deadline, pairs)
	p.AtOnce = l.Study.atOnce()
	if l.Record.Candidate != nil {
		c := l.confirmation(h)
		c.pairs = pairs
		p.Sides, p.Done = len(c.sides()), c.done()
	}
	return p
}
