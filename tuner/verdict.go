package tuner

import (
	"fmt"

	"sgtune/benchmark"
	"sgtune/trial"
)

// conclude makes the verdict from history: only the fresh launches of the confirmation count.
// Fewer of them than were fixed, because time ran out, still give an answer from three on: the
// clock ended them, not a look at the result.
func conclude(s *Study, r *Record, h History) *Verdict {
	base := h.Baseline()
	if r.Candidate == nil || base == nil || !counts(base) {
		return unconfirmed(s, h)
	}
	c := confirmation{h: h, baseline: s.Baseline, candidate: r.Candidate, pairs: r.Confirm}
	a, failedA := c.values(c.baseline)
	b, failedB := c.values(c.candidate)
	a, b = a[:min(len(a), r.Confirm)], b[:min(len(b), r.Confirm)]
	v := &Verdict{Answer: benchmark.AnswerNotConfirmed, Config: r.Candidate, Launches: min(len(a), len(b))}
	source := searched(h, v)
	v.Why = r.candidateWhy(s, h)
	if source != nil {
		v.Trial, v.Value, v.Level = source.Number, *source.Value, source.Best
	}
	v.BaselineValue = *base.Value
	if len(a) > 0 && len(b) > 0 {
		v.BaselineValue, _ = meanAndSpread(a)
		v.Value, _ = meanAndSpread(b)
		v.Level = usualLevel(h, r, v.Level)
	}
	cmp := benchmark.Compare(a, b)
	v.Gain = cmp.Gain
	if len(a) == 0 || len(b) == 0 {
		v.Gain = v.Value/v.BaselineValue - 1
	}
	unstable := max(failedA, failedB) > maxConfirmEnd // what is left are its lucky launches
	if cmp.Answer != benchmark.AnswerNotConfirmed && !unstable {
		v.Answer, v.Low, v.High = cmp.Answer, &cmp.Low, &cmp.High
		v.Detectable, v.MannWhitneyP = cmp.Detectable, cmp.MannWhitneyP
	}
	v.Text = verdictText(s, v)
	if failedB > 0 {
		v.Text += fmt.Sprintf("; %d of the candidate's confirmation launches failed, look at them before you use it", failedB)
	}
	if unstable {
		v.Text = fmt.Sprintf("not confirmed: trial %d makes %s against the baseline's %s where it ran, but confirmation launches failed: %d of the candidate's, %d of the baseline's; look at them before you use it",
			v.Trial, s.Objective.At(v.Value, v.Level), s.Objective.Amount(v.BaselineValue), failedB, failedA)
	}
	return v
}

// searched is the search trial whose configuration the candidate is.
func searched(h History, v *Verdict) *trial.Trial {
	var found *trial.Trial
	for _, t := range h.Role(trial.RoleSearch) {
		if sameConfig(t.Config, v.Config) && t.Value != nil && (found == nil || counts(t)) {
			found = t
		}
	}
	return found
}

// usualLevel is the load level most of the candidate's launches were best at.
func usualLevel(h History, r *Record, fallback int) int {
	votes, level := map[int]int{}, fallback
	for _, t := range h.Role(trial.RoleConfirm) {
		if !counts(t) || !sameConfig(t.Config, r.Candidate) {
			continue
		}
		if votes[t.Best]++; votes[t.Best] > votes[level] {
			level = t.Best
		}
	}
	return level
}

func (r *Record) candidateWhy(s *Study, h History) string {
	pick, why := candidate(h, s.Baseline, outOfConfirmation(h, s.Baseline))
	if pick == nil || !sameConfig(pick.Config, r.Candidate) {
		return ""
	}
	return why
}

// unconfirmed is the verdict when there is nothing to compare: no baseline that ran, or nothing
// beside it.
func unconfirmed(s *Study, h History) *Verdict {
	v := &Verdict{Answer: benchmark.AnswerNotConfirmed, Config: s.Baseline}
	base := h.Baseline()
	if base != nil && counts(base) {
		v.BaselineValue, v.Value, v.Level = *base.Value, *base.Value, base.Best
		v.Text = "not confirmed: nothing but the baseline ran, so there is nothing to compare it with"
		if n := len(outOfConfirmation(h, s.Baseline)); n > 0 {
			v.Text = fmt.Sprintf("not confirmed: what ran in the search failed when it was launched again (candidates out: %d), so nothing is left to compare the baseline with", n)
		}
		return v
	}
	failed := "the baseline never ran"
	switch {
	case base != nil && base.State == trial.Complete:
		failed = "the baseline ran, but met the SLO at no load level"
	case base != nil:
		failed = fmt.Sprintf("the baseline failed (%s: %s)", base.Verdict.Outcome, base.Verdict.Text)
	}
	pick, _ := candidate(h, s.Baseline, outOfConfirmation(h, s.Baseline))
	if pick == nil {
		v.Text = fmt.Sprintf("not confirmed: %s and no other configuration ran either", failed)
		return v
	}
	v.Trial, v.Config, v.Value, v.Level = pick.Number, pick.Config, *pick.Value, pick.Best
	v.Text = fmt.Sprintf("not confirmed: %s, so there is nothing to compare with; trial %d ran at %s", failed, pick.Number, s.Objective.At(v.Value, v.Level))
	return v
}

func verdictText(s *Study, v *Verdict) string {
	values := fmt.Sprintf("%s against the baseline's %s", s.Objective.At(v.Value, v.Level), s.Objective.Amount(v.BaselineValue))
	lossy := ""
	if lossyConfig(s.Baseline) {
		lossy = " (the baseline is lossy: its answers may be worse than bf16's)"
	}
	switch v.Answer {
	case benchmark.AnswerBetter, benchmark.AnswerWorse:
		return fmt.Sprintf("%s: trial %d makes %s, %s, 95%% interval %s to %s, %d launches each%s",
			v.Answer, v.Trial, values, percent(v.Gain), percent(*v.Low), percent(*v.High), v.Launches, lossy)
	case benchmark.AnswerNoDifference:
		return fmt.Sprintf("no difference found: trial %d makes %s, %s, 95%% interval %s to %s; %d launches each could have shown %s%s",
			v.Trial, values, percent(v.Gain), percent(*v.Low), percent(*v.High), v.Launches, percent(v.Detectable), lossy)
	}
	return fmt.Sprintf("not confirmed: trial %d makes %s (%s), but only %s of each side; an answer needs %d%s",
		v.Trial, values, percent(v.Gain), plural(v.Launches, "launch", "launches"), leastPairs, lossy)
}

// Amount is a value with the objective's unit.
func (o Objective) Amount(v float64) string {
	unit := "output tok/s"
	switch o.Metric {
	case "requests_s":
		unit = "requests/s"
	case "goodput":
		unit = "requests/s within the SLO"
	case "concurrency":
		unit = "clients"
	}
	return number(fourDigits(v)) + " " + unit
}

// At is a value with its unit and the load level it belongs to.
func (o Objective) At(v float64, level int) string {
	if level == 0 {
		return o.Amount(v)
	}
	return fmt.Sprintf("%s at %s", o.Amount(v), plural(level, "client", "clients"))
}

func percent(x float64) string { return fmt.Sprintf("%+.1f%%", 100*x) }
