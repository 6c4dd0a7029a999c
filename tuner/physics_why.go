package tuner

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner/physics"
)

// reason is the engine's reason in the objective's unit, with the trial it compares with. What the
// engine did not know stays away.
func (m *model) reason(w physics.Why) *trial.Reason {
	r := &trial.Reason{
		Kind: w.Kind, OOM: figure(w.OOM), Crash: figure(w.Crash), Tokens: figure(w.Tokens), FreeGiB: figure(w.FreeGiB),
		Teaches: w.Teaches, Share: figure(w.TeachesX),
	}
	if m.valued == 0 || w.Mean <= 0 {
		return r // nothing has a value: what physics alone says of speed is no expectation to show
	}
	r.Value, r.Spread = figure(w.Mean/m.ratio), figure(w.Spread)
	if w.Best > 0 {
		r.Best, r.Gain = figure(w.Best/m.ratio), figure(w.Gain)
		r.Over = m.incumbent(w.Best)
	}
	return r
}

// lesson names the knob that a proposal teaches most about: the engine's, unless its value here was
// measured before and another knob's less often. The engine's share belongs to its own knob only.
func (m *model) lesson(r *trial.Reason, c sglang.Config) {
	if r.Teaches == "" {
		return
	}
	own := slices.IndexFunc(m.code.coded, func(k physics.Knob) bool { return k.Name == r.Teaches })
	here, _ := m.code.point(c, sglang.Observation{})
	times := make([]int, len(here))
	for _, t := range m.problem.History {
		if t.Value == nil {
			continue
		}
		at, _ := m.code.point(t.Config, t.Memory)
		for i := range here {
			if at[i] == here[i] {
				times[i]++
			}
		}
	}
	for i, k := range m.code.coded {
		if own >= 0 && len(k.Values) > 1 && m.code.coded.Alive(here, i) && times[i] < times[own] {
			own, r.Teaches, r.Share = i, k.Name, nil
		}
	}
}

// incumbent is the trial whose configuration the models expect best of, nil when none is near that.
func (m *model) incumbent(best float64) *int {
	var number *int
	gap := math.Inf(1)
	for _, t := range m.problem.History {
		if !counts(t) || t.Role == trial.RoleConfirm {
			continue
		}
		point, _ := m.code.point(t.Config, t.Memory)
		if d := math.Abs(math.Log(m.search.Predict(point).Mean / best)); d < gap-1e-9 {
			n := t.Number
			number, gap = &n, d
		}
	}
	if gap > 0.01 {
		return nil
	}
	return number
}

// figure is a number to store, nil where there is none.
func figure(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// kindWords say what a turn was for, where that is not the ordinary search.
var kindWords = map[string]string{
	"start":   "what runs today",
	"jump":    "away from where the last trials were alike",
	"finish":  "the best of what was not tried yet, to be measured in full",
	"recover": "nothing has run yet: the most likely to start",
}

// purpose is kindWords, true also where servers ran whose load levels all missed the SLO.
func (m *model) purpose(kind string) string {
	ran := func(t *trial.Trial) bool { return t.State == trial.Complete }
	if kind == "recover" && slices.ContainsFunc(m.problem.History, ran) {
		return "no trial has a value yet"
	}
	return kindWords[kind]
}

// sentence is a reason in plain words: "expected 1,420 output tok/s (+4.0% over the 1,366 expected of trial
// 7), 3% chance of GPU OOM, 164K KV tokens, 4.1 GiB free; teaches most about page-size".
func (m *model) sentence(r *trial.Reason) string {
	var parts []string
	if r.Value != nil {
		text := "expected " + thousands(m.problem.Objective.Amount(*r.Value))
		parts = append(parts, text+m.problem.Objective.beside(r))
	}
	if r.OOM != nil {
		parts = append(parts, chance(*r.OOM)+" chance of GPU OOM")
	}
	if r.Crash != nil && *r.Crash >= 0.05 {
		parts = append(parts, chance(*r.Crash)+" chance that it does not start")
	}
	if r.Tokens != nil {
		parts = append(parts, fmt.Sprintf("%.0fK KV tokens", *r.Tokens/1000))
	}
	if r.FreeGiB != nil {
		parts = append(parts, fmt.Sprintf("%.1f GiB free", *r.FreeGiB))
	}
	text := strings.Join(parts, ", ")
	if r.Teaches != "" {
		text += "; teaches most about " + r.Teaches
	}
	if words := m.purpose(r.Kind); words != "" {
		text = strings.TrimSuffix(words+": "+text, ": ")
	}
	if text == "" {
		text = "the most promising by the models"
	}
	return text
}

// beside compares the value expected with what is expected of the best configuration so far, whose own
// measured value may have been luck.
func (o Objective) beside(r *trial.Reason) string {
	if r.Best == nil || *r.Best <= 0 {
		return ""
	}
	whose := "of the best so far"
	if r.Over != nil {
		whose = fmt.Sprintf("of trial %d", *r.Over)
	}
	than := thousands(o.figure(*r.Best)) + " expected " + whose
	switch change := *r.Value / *r.Best - 1; {
	case change >= 0.0005:
		return fmt.Sprintf(" (%s over the %s)", percent(change), than)
	case change <= -0.0005:
		return fmt.Sprintf(" (%.1f%% below the %s)", -100*change, than)
	default:
		return " (as much as is expected " + whose + ")"
	}
}

// chance is a probability in whole percent.
func chance(p float64) string {
	switch n := math.Round(100 * p); {
	case n <= 0 && p > 0:
		return "under 1%"
	case n >= 100 && p < 1:
		return "over 99%"
	default:
		return fmt.Sprintf("%.0f%%", n)
	}
}

// thousands puts a comma into the whole part of the number that a text begins with: "1420.5 x" becomes
// "1,420.5 x".
func thousands(text string) string {
	whole := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if whole < 0 {
		whole = len(text)
	}
	for at := whole - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
