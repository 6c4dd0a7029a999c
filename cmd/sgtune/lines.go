package main

import (
	"fmt"
	"strings"
	"time"

	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// indent puts a line under the text of the one before, which begins with a time of day.
const indent = "          "

func clock(at time.Time) string { return at.Local().Format("15:04:05") }

// eventText is an event's line, "" when the log says it otherwise, and the line below it.
func (t *terminal) eventText(e tuner.Event) (text, more string) {
	switch {
	case e.Kind == "verdict":
		return "", "" // printed whole at the end
	case e.Kind == "requeue" && strings.HasPrefix(e.Text, "again: "):
		return "", "" // the trial's own line says it
	case e.Kind == "plan" && e.Trial != nil && strings.HasPrefix(e.Text, fmt.Sprintf("trial %d ", *e.Trial)):
		return t.planText(), ""
	case e.Kind == "plan" && len(e.Config) > 0:
		t.over = true
		return e.Text, "the candidate: " + t.configText(e.Config)
	case e.Kind == "reject" && len(e.Config) > 0:
		return fmt.Sprintf("not tried: %s: %s", describe(e.Config), e.Text), ""
	case e.Kind == "reject":
		return t.rejectText(e.Text)
	}
	return e.Text, ""
}

// rejectsShown is how many refusals by one rule the log shows; a sampler can meet hundreds.
const rejectsShown = 3

// rejectText is a refusal by a rule: "RULE: why".
func (t *terminal) rejectText(text string) (first, more string) {
	rule, _, _ := strings.Cut(text, ":")
	t.rejects[rule]++
	switch n := t.rejects[rule]; {
	case n > rejectsShown:
		return "", ""
	case n == rejectsShown:
		more = fmt.Sprintf("more that the rule %q keeps out is stored, not shown here", rule)
	}
	return "not tried: " + text, more
}

// planText says once how much fits, when it is first known; later each trial's own lines say when
// the study ends.
func (t *terminal) planText() string {
	if t.planned || t.status.Plan.Full == 0 {
		return ""
	}
	t.planned = true
	return t.nextText()
}

// beginText is the line of a trial that is about to be launched.
func (t *terminal) beginText(tr *trial.Trial) string {
	if tr.Role == trial.RoleConfirm {
		return fmt.Sprintf("trial %d, %s", tr.Number, strings.Replace(tr.Why, "confirmation, launch", "confirmation launch", 1))
	}
	return fmt.Sprintf("trial %d, %s: %s", tr.Number, tr.Role, t.configText(tr.Config))
}

// whyText is why a trial is launched, how many are, and when the study ends. What follows a colon is
// told once where it has no figures: it is the same for many trials.
func (t *terminal) whyText(tr *trial.Trial) string {
	var parts []string
	if tr.Role != trial.RoleConfirm {
		why := strings.TrimPrefix(tr.Why, "the baseline: ")
		if head, rest, found := strings.Cut(why, ": "); found && tr.Reason == nil {
			rest, _, _ = strings.Cut(rest, ";")
			if t.said[rest] {
				why = head
			}
			t.said[rest] = true
		}
		if why != "" {
			parts = append(parts, why)
		}
	}
	if p := t.status.Plan; p.Limit > 0 && tr.Role == trial.RoleSearch {
		parts = append(parts, fmt.Sprintf("launch %d of %d", p.Launches, p.Limit))
	}
	if end := t.end(); !end.IsZero() {
		parts = append(parts, t.endText(end))
	}
	return strings.Join(parts, "; ")
}

// configText lists a configuration without what every trial but the baseline is given.
func (t *terminal) configText(c sglang.Config) string {
	own := c.Clone()
	for name := range t.study.Passed {
		if own.Text(name) == t.study.Passed.Text(name) {
			delete(own, name)
		}
	}
	if len(own) == 0 {
		return "SGLang's defaults"
	}
	return describe(own)
}

// describe lists a configuration as flag value pairs.
func describe(c sglang.Config) string {
	words := make([]string, 0, len(c))
	for _, name := range c.Names() {
		words = append(words, name+" "+c.Text(name))
	}
	return strings.Join(words, ", ")
}

// resultText is how a trial ended, "" before.
func (t *terminal) resultText(tr *trial.Trial) string {
	if !tr.State.Finished() {
		return ""
	}
	parts := []string{fmt.Sprintf("trial %d %s", tr.Number, t.outcomeText(tr))}
	if ran := tuner.RanAtOnce(tr); tr.Value != nil && ran > 0 && tr.State == trial.Complete {
		parts = append(parts, fmt.Sprintf("%.0f requests ran at once", ran))
	}
	if tr.Void != "" {
		parts = append(parts, "void, it does not count: "+tr.Void)
	}
	if tr.Release == trial.ReleaseUnverified {
		parts = append(parts, "GPU memory not verified (no GPU facts)")
	}
	if !tr.StartedAt.IsZero() {
		parts = append(parts, "took "+short(tr.EndedAt.Sub(tr.StartedAt)))
	}
	return strings.Join(parts, "; ")
}

func (t *terminal) outcomeText(tr *trial.Trial) string {
	switch {
	case tr.Value != nil && tr.State == trial.Complete:
		text := "ok: " + t.study.Objective.At(*tr.Value, tr.Best)
		if tr.Role != trial.RoleSearch {
			return text
		}
		if gain, ok := t.gain(tr); ok {
			text += ", " + percent(gain) + " against the baseline"
		}
		if best := t.status.Best; best != nil && tr.Void == "" && *tr.Value > *best.Value {
			text += ", the best so far"
		}
		return text
	case tr.State == trial.Pruned:
		return "stopped early: it cannot come near the best so far"
	case tr.State == trial.Complete:
		return "ran, but no load level met the SLO"
	}
	return fmt.Sprintf("%s: %s", tr.State, strings.TrimSuffix(tr.Verdict.Text, "."))
}
