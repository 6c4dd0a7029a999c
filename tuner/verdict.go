package tuner

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/trial"
)

// conclude makes the verdict from history: only the fresh launches of the confirmation count.
// Fewer of them than were fixed, because time ran out, still give an answer from three on: the
// clock ended them, not a look at the result.
func (l *Loop) conclude(h History) *Verdict {
	s, r, base := l.Study, l.Record, h.Baseline()
	if r.Candidate == nil || base == nil || !counts(base) {
		return l.unconfirmed(h)
	}
	c := l.confirmation(h)
	winner := c.winner()
	a, failedA := c.values(c.baseline)
	b, failedB := c.values(winner)
	a, b = a[:min(len(a), r.Confirm)], b[:min(len(b), r.Confirm)]
	v := &Verdict{Answer: benchmark.AnswerNotConfirmed, Config: winner, Launches: min(len(a), len(b)), BaselineValue: *base.Value}
	v.Why = l.whyConfirmed(h, winner)
	if source := searched(h, v); source != nil {
		v.Trial, v.Value, v.Level, v.Looked = source.Number, *source.Value, source.Best, *source.Value / *base.Value - 1
	}
	if len(a) > 0 && len(b) > 0 {
		v.BaselineValue, _ = meanAndSpread(a)
		v.Value, _ = meanAndSpread(b)
		v.Level = usualLevel(h, winner, v.Level)
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
	l.job(h, v)
	v.Text, v.Notes = verdictText(s, v), verdictNotes(s, v)
	if unstable {
		v.Text = fmt.Sprintf("not confirmed: trial %d makes %s against the baseline's %s where it ran, but confirmation launches failed: %d of the candidate's, %d of the baseline's (%s); look at them before you use it",
			v.Trial, s.Objective.At(v.Value, v.Level), s.Objective.Amount(v.BaselineValue), failedB, failedA, endings(h, c.baseline, winner))
	} else if failedB > 0 {
		v.add(fmt.Sprintf("%d of the candidate's confirmation launches failed (%s)%s", failedB, endings(h, winner),
			map[bool]string{true: ", look at them before you use it"}[v.Answer == benchmark.AnswerBetter]))
	}
	if drift := driftOf(h).Text(); drift != "" {
		v.add(drift + ", which the order of the confirmation keeps out of this answer")
	}
	return v
}

// endings are the outcomes of the confirmation launches of some configurations that failed, each once.
func endings(h History, sides ...sglang.Config) string {
	var seen []string
	for _, t := range h.Role(trial.RoleConfirm) {
		of := func(c sglang.Config) bool { return sameConfig(t.Config, c) }
		if !t.State.Finished() || counts(t) || interrupted(t) || !slices.ContainsFunc(sides, of) {
			continue
		}
		outcome := string(t.Verdict.Outcome)
		if t.State == trial.Complete && t.Value == nil {
			outcome = "no load level met the SLO"
		}
		if !slices.Contains(seen, outcome) {
			seen = append(seen, outcome)
		}
	}
	return strings.Join(seen, ", ")
}

// winner is the candidate that the verdict is about: the first, as it was planned, unless the second is better
// than it by the verdict's own test.
func (c confirmation) winner() sglang.Config {
	if c.second == nil {
		return c.candidate
	}
	first, _ := c.values(c.candidate)
	second, failed := c.values(c.second)
	first, second = first[:min(len(first), c.pairs)], second[:min(len(second), c.pairs)]
	if failed <= maxConfirmEnd && benchmark.Compare(first, second).Answer == benchmark.AnswerBetter {
		return c.second
	}
	return c.candidate
}

// whyConfirmed says why a configuration was launched for the confirmation.
func (l *Loop) whyConfirmed(h History, winner sglang.Config) string {
	pick := l.chosen
	if pick.trial == nil { // the choice was made by an earlier run of the program: from the same trials
		pick = candidate(h, l.Study.Baseline, outOfConfirmation(h, l.Study.Baseline), l.judged(h))
	}
	if pick.trial == nil || !sameConfig(pick.trial.Config, l.Record.Candidate) {
		return ""
	}
	if sameConfig(winner, l.Record.Candidate) {
		return pick.why + pick.outlook()
	}
	return fmt.Sprintf("the second candidate was better than the first, trial %d, in their confirmation launches", pick.trial.Number)
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
func usualLevel(h History, c sglang.Config, fallback int) int {
	votes, level := map[int]int{}, fallback
	for _, t := range h.Role(trial.RoleConfirm) {
		if !counts(t) || !sameConfig(t.Config, c) {
			continue
		}
		if votes[t.Best]++; votes[t.Best] > votes[level] {
			level = t.Best
		}
	}
	return level
}

// unconfirmed is the verdict when there is nothing to compare: no baseline that ran, or nothing
// beside it.
func (l *Loop) unconfirmed(h History) *Verdict {
	s := l.Study
	v := &Verdict{Answer: benchmark.AnswerNotConfirmed, Config: s.Baseline}
	base := h.Baseline()
	if base != nil && counts(base) {
		v.BaselineValue, v.Value, v.Level = *base.Value, *base.Value, base.Best
		l.job(h, v)
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
	pick := candidate(h, s.Baseline, outOfConfirmation(h, s.Baseline), l.judged(h)).trial
	if pick == nil {
		other := "no other configuration ran either"
		if slices.ContainsFunc(h.Role(trial.RoleSearch), func(t *trial.Trial) bool { return t.State == trial.Complete }) {
			other = "no other configuration that ran met it either"
			if base == nil || base.State != trial.Complete {
				other = "the others that ran met the SLO at no load level"
			}
		}
		v.Text = fmt.Sprintf("not confirmed: %s, and %s", failed, other)
		return v
	}
	v.Trial, v.Config, v.Value, v.Level = pick.Number, pick.Config, *pick.Value, pick.Best
	v.Text = fmt.Sprintf("not confirmed: %s, so there is nothing to compare with; trial %d ran at %s", failed, pick.Number, s.Objective.At(v.Value, v.Level))
	return v
}

func verdictText(s *Study, v *Verdict) string {
	values := fmt.Sprintf("%s against the baseline's %s", s.Objective.At(v.Value, v.Level), s.Objective.Amount(v.BaselineValue))
	tail := v.jobText()
	shown := " could have shown " + percent(v.Detectable)
	if s.Objective.Metric == "concurrency" { // launches that agree on a level have an interval of no width
		tail += inLevels(s.Workload.Concurrency, v)
		shown = ""
	}
	if lossyConfig(s.Baseline) {
		tail += " (the baseline is lossy: its answers may be worse than bf16's)"
	}
	switch v.Answer {
	case benchmark.AnswerBetter, benchmark.AnswerWorse:
		if v.Answer == benchmark.AnswerWorse {
			tail += keepText
		}
		return fmt.Sprintf("%s: trial %d makes %s, %s, 95%% interval %s to %s, %d launches each%s",
			v.Answer, v.Trial, values, percent(v.Gain), percent(*v.Low), percent(*v.High), v.Launches, tail)
	case benchmark.AnswerNoDifference:
		return fmt.Sprintf("no difference found: trial %d makes %s, %s, 95%% interval %s to %s; %d launches each%s%s%s",
			v.Trial, values, percent(v.Gain), percent(*v.Low), percent(*v.High), v.Launches, shown, tail, keepText)
	}
	return fmt.Sprintf("not confirmed: trial %d makes %s (%s), but only %s of each side; an answer needs %d%s",
		v.Trial, values, percent(v.Gain), plural(v.Launches, "launch", "launches"), leastPairs, tail)
}

// inLevels says what a value in whole load levels means.
func inLevels(levels []int, v *Verdict) string {
	text := fmt.Sprintf(" (counted in load levels: of %s the highest that holds the SLO", join(levels))
	if top := float64(slices.Max(levels)); v.Value >= top && v.BaselineValue >= top {
		text += "; both hold the highest: higher ones would tell them apart"
	}
	return text + ")"
}

// keepText ends a verdict after which nothing is to be changed.
const keepText = "; keep what you have"

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
	return o.figure(v) + " " + unit
}

// figure is a value without its unit: whole clients, four digits of anything else.
func (o Objective) figure(v float64) string {
	if o.Metric == "concurrency" {
		return number(math.Round(v))
	}
	return number(fourDigits(v))
}

// At is a value with its unit and the load level it belongs to.
func (o Objective) At(v float64, level int) string {
	if level == 0 || o.Metric == "concurrency" { // there the value is the level
		return o.Amount(v)
	}
	return fmt.Sprintf("%s at %s", o.Amount(v), plural(level, "client", "clients"))
}

// percent is a relative change with its sign; one that rounds to nothing has none.
func percent(x float64) string {
	if math.Abs(100*x) < 0.05 {
		return "0.0%"
	}
	return fmt.Sprintf("%+.1f%%", 100*x)
}
