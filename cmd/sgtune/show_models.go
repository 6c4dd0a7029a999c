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

// importances are the knobs of a stored study by what they matter, nil while the models cannot tell. events are
// the study's first.
func importances(r *tuner.Record, trials []*trial.Trial, events []tuner.Event) []tuner.Importance {
	p, ok := tuner.StoredProblem(r, trials, events)
	if !ok {
		return nil
	}
	return tuner.Importances(p)
}

// modelled are the importances and the map of memory of a stored study, nil where the models cannot tell.
func modelled(r *tuner.Record, trials []*trial.Trial, events []tuner.Event) ([]tuner.Importance, *tuner.Feasibility) {
	p, ok := tuner.StoredProblem(r, trials, events)
	if !ok {
		return nil, nil
	}
	knobs := tuner.Importances(p)
	if m, ok := tuner.FeasibilityMap(p, nil); ok {
		return knobs, &m
	}
	return knobs, nil
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
