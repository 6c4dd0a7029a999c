// Package chart makes what the charts of the web page show: it folds a study's trials into columns, says in one
// sentence what each chart shows, lays the same rows out as a table and as CSV, and draws the charts that must work
// without JavaScript as SVG.
//
// What it promises:
//
//   - A chart, its table, its CSV and its sentence come from the same rows.
//   - Every failure, every step of the best so far, the baseline and the confirmation are sent, and at most maxPoints
//     other points; what was left out is counted and said.
//   - Texts from outside (knob values, events, log lines) are escaped where they enter SVG.
//   - Lines on the map of memory are arithmetic (sglang.Calibration, tuner.Problem.Admit); nothing is smoothed.
//
// What it is not: it reads no database, no request and no file name; it renders no page.
//
// Reading order: data.go (Collect: trials to rows), class.go (shapes and words), then one file for a chart: night.go,
// best.go, levels.go, area.go and lines.go (the map), knobs.go, importance.go, tradeoff.go, series.go and log.go (one
// trial); columns.go is what is sent, figure.go and table.go what a page is given, svg*.go the drawings.
package chart
