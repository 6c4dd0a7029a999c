package web

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"

	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// wording holds the functions of the templates.
var wording = template.FuncMap{
	"number": Number, "duration": tuner.FormatDuration, "config": ConfigText, "amount": Amount, "clock": clock, "shape": shape,
	"stamp": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
}

// Headline is a study's answer, act first: what to do in one or two words, then why. The terminal
// prints the same.
func Headline(r *tuner.Record) (act, text string) {
	switch {
	case r.State == tuner.StudyStopped && r.Verdict == nil:
		return "STOPPED", orElse(r.Reason, "It ended before a verdict.")
	case r.Verdict == nil && r.State == tuner.StudyRunning:
		return "RUNNING", "No verdict yet."
	case r.Verdict == nil:
		return "NO VERDICT", orElse(r.Reason, "It ended before the confirmation.")
	}
	switch r.Verdict.Answer {
	case "better":
		act = "CHANGE"
	case "no difference found", "worse":
		act = "KEEP"
	default:
		act = "NO VERDICT"
	}
	return act, orElse(r.Verdict.Text, r.Verdict.Answer)
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// Number spells a figure with four significant digits and thousands separators: 2,104; 0.8512.
func Number(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	digits := 4
	if v != 0 {
		digits = max(0, 3-int(math.Floor(math.Log10(math.Abs(v)))))
	}
	text := strconv.FormatFloat(v, 'f', digits, 64)
	whole, fraction, found := strings.Cut(text, ".")
	fraction = strings.TrimRight(fraction, "0")
	sign := ""
	if rest, negative := strings.CutPrefix(whole, "-"); negative {
		sign, whole = "−", rest
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if found && fraction != "" {
		whole += "." + fraction
	}
	return sign + whole
}

// units are the words after a value of an objective.
var units = map[string]string{
	"": "output tok/s", "output_tok_s": "output tok/s", "requests_s": "requests/s", "goodput": "requests/s within the SLO",
	"concurrency": "clients within the SLO",
}

// Amount is a trial's value with its unit and load level, "" where none was measured:
// "1,240 output tok/s at 120 clients".
func Amount(t *trial.Trial, objective string) string {
	if t.Value == nil {
		return ""
	}
	text := Number(*t.Value) + " " + orElse(units[objective], objective)
	if t.Best > 0 && objective != "concurrency" { // there the value is the level
		text += fmt.Sprintf(" at %d clients", t.Best)
	}
	return text
}

// ConfigText lists a configuration as flag and value pairs.
func ConfigText(c sglang.Config) string {
	words := make([]string, 0, len(c))
	for _, name := range c.Names() {
		words = append(words, name+" "+c.Text(name))
	}
	return strings.Join(words, ", ")
}

// clock is a time of day for a person, "" for none.
func clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("Mon 15:04:05")
}

// shape stands beside an outcome's word, so that colour is never alone.
func shape(t *trial.Trial) string {
	switch t.State {
	case trial.Running:
		return "▶"
	case trial.Waiting:
		return "…"
	case trial.Pruned:
		return "⊘"
	default: // the outcome says it
	}
	switch t.Verdict.Outcome {
	case trial.OK:
		return "●"
	case trial.Degraded:
		return "◐"
	case trial.GPUOOM:
		return "▲"
	case trial.HostOOM:
		return "■"
	case trial.Crashed, trial.Stuck, trial.StartupTimeout:
		return "▼"
	case trial.ConfigRejected:
		return "✕"
	case trial.QualityRejected:
		return "◆"
	case trial.QualityUnmeasured:
		return "◇"
	case trial.DirtyHost:
		return "!"
	case trial.EnvFault, trial.MonitorWrong, trial.Unreachable, trial.BenchInvalid, trial.Aborted:
		return "○"
	case trial.Unknown:
	}
	return "?"
}
