package main

import (
	"fmt"
	"io"
	"math"

	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
	"sgtune/web"
)

// knobsShown is how many knobs the terminal lists by importance.
const knobsShown = 5

// printLimit says where GPU memory ends, as far as that is known.
func printLimit(w io.Writer, l *tuner.Limit) {
	if l == nil {
		return
	}
	text := fmt.Sprintf("GPU memory runs out at mem-fraction-static %.3f", l.Fraction)
	if l.SD > 0 {
		text += fmt.Sprintf(" ± %.3f", l.SD)
	}
	if m := l.MarginGiB; m != nil && *m >= 0 {
		text += fmt.Sprintf("; the best configuration keeps %.1f GiB away from that", *m)
	}
	_, _ = fmt.Fprintf(w, "\n%s\n", text) // Flush reports what went wrong
}

// printImportances lists the knobs that matter most, with how sure that is.
func printImportances(w io.Writer, all []tuner.Importance) {
	if len(all) == 0 {
		return
	}
	row(w, "")
	row(w, "KNOB", "MATTERS", "80% RANGE", "BEST VALUE")
	for _, i := range all[:min(len(all), knobsShown)] {
		row(w, i.Knob, share(i.Effect), share(i.Low)+" to "+share(i.High), sglang.FormatValue(i.Best))
	}
	if more := len(all) - knobsShown; more > 0 {
		row(w, fmt.Sprintf("%d more matter less", more))
	}
}

// share is a relative size in percent.
func share(x float64) string { return fmt.Sprintf("%.1f%%", 100*x) }

// printReason says in figures what the models expected before a launch.
func printReason(line func(name, value string), t *trial.Trial, objective string) {
	r := t.Reason
	if r == nil {
		return
	}
	if r.Value != nil {
		text := web.Number(*r.Value)
		if objective == "concurrency" { // clients are whole
			text = web.Number(math.Round(*r.Value))
		}
		if r.Spread != nil {
			text += fmt.Sprintf(" ± %.0f%%", 100**r.Spread)
		}
		if t.Value != nil {
			text += ", measured " + web.Amount(t, objective)
		}
		line("expected", text)
	}
	if r.Tokens != nil {
		line("KV tokens expected", web.Number(*r.Tokens))
	}
	if r.FreeGiB != nil {
		line("GPU memory free expected", fmt.Sprintf("%.1f GiB", *r.FreeGiB))
	}
}
