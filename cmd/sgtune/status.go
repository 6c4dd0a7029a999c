package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"sgtune/trial"
	"sgtune/tuner"
	"sgtune/web"
)

// draw writes the status lines anew: each is cut to the width, so that none wraps and the cursor
// finds back to the first.
func (t *terminal) draw() {
	if !t.live {
		return
	}
	width, height := t.size()
	lines := t.statusLines()
	lines = lines[:min(len(lines), max(1, height-1))]
	for i, text := range lines {
		lines[i] = cut(printable(text), width-1)
	}
	_, _ = io.WriteString(t.out, t.home()+strings.Join(lines, "\n"))
	t.drawn = len(lines)
}

// erase removes the status lines and leaves the cursor where they began.
func (t *terminal) erase() {
	if t.live && t.drawn > 0 {
		_, _ = io.WriteString(t.out, t.home())
	}
	t.drawn = 0
}

// home moves to the first status line and clears from there on.
func (t *terminal) home() string {
	up := ""
	if t.drawn > 1 {
		up = fmt.Sprintf("\x1b[%dA", t.drawn-1)
	}
	return "\r" + up + "\x1b[J"
}

// cut shortens a line to width characters.
func cut(text string, width int) string {
	runes := []rune(text)
	if width < 1 || len(runes) <= width {
		return text
	}
	return string(runes[:width-1]) + "…"
}

// statusLines says what happens now (a line for each trial that runs), the best so far, what comes next and when the
// study ends, whether the host itself changed, and the last failure, each on a line of its own.
func (t *terminal) statusLines() []string {
	lines := append(t.nowTexts(), t.bestText(), t.nextText(), t.status.Drift.Text(), t.failureText())
	return slices.DeleteFunc(lines, func(s string) bool { return s == "" })
}

// nowTexts are the running trials, each with its step's elapsed and expected time, and what it does.
func (t *terminal) nowTexts() []string {
	if len(t.current) == 0 {
		return []string{t.label() + "choosing what comes next"}
	}
	var lines []string
	for _, n := range slices.Sorted(maps.Keys(t.current)) {
		tr := t.current[n]
		role := string(tr.Role)
		if tr.Role == trial.RoleConfirm {
			role = "confirmation"
		}
		lines = append(lines, fmt.Sprintf("%s%s, trial %d%s", t.label(), role, n, t.stepText(tr)))
	}
	return lines
}

func (t *terminal) label() string {
	if t.study.Simulated {
		return "SIMULATED "
	}
	return ""
}

// stepWords say what a step does before its first progress report.
var stepWords = map[trial.Step]string{
	"": "getting ready", trial.StepAdmit: "checking the host", trial.StepLaunch: "starting the server",
	trial.StepWait: "waiting for the server to load", trial.StepCanary: "canary: the longest prompts",
	trial.StepWarmup: "flushing and filling the cache", trial.StepMeasure: "measuring", trial.StepStop: "stopping the server",
	trial.StepReclaim: "checking that the host is clean", trial.StepSave: "storing the result",
}

func (t *terminal) stepText(tr *trial.Trial) string {
	p := t.heard[tr.Number]
	if p.Step != tr.Step || p.Text == "" {
		text := stepWords[tr.Step]
		if text == "" {
			text = string(tr.Step)
		}
		return ": " + text
	}
	text := ", " + short(p.Elapsed+t.now().Sub(p.at))
	switch learnt := t.learnt(tr); {
	case learnt > 0:
		text += " of about " + short(learnt)
	case p.Expected > 0:
		text += " of at most " + short(p.Expected)
	}
	text += ": " + p.Text
	if p.Window != nil {
		text += fmt.Sprintf(", now %s tok/s", web.Number(p.Window.Output))
	}
	return text
}

// learnt is how long the step took in the baseline, 0 when that is not known. How long a load level
// takes depends on how many are measured.
func (t *terminal) learnt(tr *trial.Trial) time.Duration {
	base := t.status.Baseline
	if base == nil || base.Number == tr.Number {
		return 0
	}
	took := base.Steps[tr.Step]
	if tr.Step == trial.StepMeasure {
		if len(base.Levels) == 0 {
			return 0
		}
		took = took / time.Duration(len(base.Levels)) * time.Duration(len(tr.Plan))
	}
	if took < time.Second {
		return 0
	}
	return took
}

// bestText is the best so far against the baseline.
func (t *terminal) bestText() string {
	b := t.status.Best
	if b == nil || b.Value == nil {
		return ""
	}
	value := t.study.Objective.At(*b.Value, b.Best)
	if job := tuner.JobText(t.study.Workload.Total, t.status.JobNow, t.status.JobBest); job != "" {
		value += "; " + job
	}
	if b.Role == trial.RoleBaseline {
		return "best so far: the baseline, " + value
	}
	if gain, ok := t.gain(b); ok {
		return fmt.Sprintf("best so far: trial %d, %+.1f%% against the baseline: %s", b.Number, 100*gain, value)
	}
	return fmt.Sprintf("best so far: trial %d, %s", b.Number, value)
}

// gain is a trial's value relative to the baseline's.
func (t *terminal) gain(tr *trial.Trial) (float64, bool) {
	base := t.status.Baseline
	if base == nil || base.Value == nil || tr.Value == nil || tr.Number == base.Number || *base.Value <= 0 {
		return 0, false
	}
	return *tr.Value / *base.Value - 1, true
}

// nextText is when the study ends and what is still to be launched after the running trial.
func (t *terminal) nextText() string {
	p := t.status.Plan
	if p.Now.IsZero() {
		return ""
	}
	if p.Full == 0 {
		text := "next: the search; how much fits is known once a trial has ended"
		if !p.Deadline.IsZero() {
			return "done by " + p.Deadline.Local().Format("15:04") + " at the latest; " + text
		}
		return text
	}
	var parts []string
	search, confirm := t.toGo()
	switch {
	case search > 0:
		parts = append(parts, fmt.Sprintf("%s of about %s", count(search, "trial"), short(p.Search)))
	case search < 0:
		parts = append(parts, "trials until nothing is left to try")
	}
	if confirm > 0 {
		parts = append(parts, count(confirm, "confirmation launch"))
	}
	text := "next: the verdict"
	if len(parts) > 0 {
		text = "next: " + strings.Join(parts, ", then ")
	}
	if end := t.end(); !end.IsZero() {
		return t.endText(end) + "; " + text
	}
	return text
}

// toGo counts the launches after the running one; search is -1 when nothing limits them.
func (t *terminal) toGo() (search, confirm int) {
	p := t.status.Plan
	confirm = p.ToConfirm()
	if t.over {
		for _, tr := range t.current {
			if tr.Role == trial.RoleConfirm {
				confirm = max(0, confirm-1)
			}
		}
		return 0, confirm
	}
	return p.Fits(), confirm
}

// end is when the study will have its verdict, the zero time when that is not known. The plan leaves
// running search trials out: they are launched already.
func (t *terminal) end() time.Time {
	p := t.status.Plan
	n, _ := t.toGo()
	switch {
	case n < 0 || p.Full == 0:
		return time.Time{}
	case t.over:
		return p.Now.Add(p.Reserve())
	}
	end := p.Now.Add(p.Searching(n) + p.Reserve())
	if t.status.Next != nil || t.status.Running > 0 {
		end = end.Add(p.Search)
	}
	if !p.Deadline.IsZero() && end.After(p.Deadline) {
		return p.Deadline
	}
	return end
}

// endText is the hour at which the study ends and how long a person waits for it.
func (t *terminal) endText(end time.Time) string {
	left := max(0, end.Sub(t.now()))
	if t.study.Host.Kind == tuner.HostSimulated && t.study.Host.TimeScale > 0 {
		return fmt.Sprintf("done in about %s (%s simulated)", short(time.Duration(float64(left)/t.study.Host.TimeScale)), end.Local().Format("15:04"))
	}
	return fmt.Sprintf("done about %s, in %s", end.Local().Format("15:04"), short(left))
}

func (t *terminal) failureText() string {
	f := t.status.Failed
	if f == nil {
		return ""
	}
	return fmt.Sprintf("last failure: trial %d, %s", f.Number, f.Verdict.Text)
}
