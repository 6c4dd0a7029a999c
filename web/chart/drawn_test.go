package chart_test

import (
	"encoding/xml"
	"fmt"
	"strings"
	"testing"

	"sgtune/sglang"
	"sgtune/test/webbed"
	"sgtune/trial"
	"sgtune/tuner"
)

// TestDrawn holds that a document without scripts has every chart drawn, and that no name or value leaves its place.
func TestDrawn(t *testing.T) {
	t.Parallel()
	nasty := small()
	for _, one := range nasty.Trials {
		one.Config = sglang.Merge(one.Config, sglang.Config{"env." + hostile: fmt.Sprint(hostile, one.Number)})
	}
	nasty.Record.Name, nasty.Record.Objective = hostile, hostile
	one := small()
	one.Trials = one.Trials[:1]
	failed := small()
	failed.Trials = failed.Trials[2:3]
	none := small()
	none.Trials = nil
	matter := []tuner.Importance{
		{Knob: "mem-fraction-static", Effect: 0.12, Low: 0.04, High: 0.2, Best: 0.88},
		{Knob: hostile, Effect: 0.01, Low: -0.02, High: 0.03, Best: hostile},
		{Knob: "flat", Best: true},
	}
	tests := []struct {
		name   string
		night  webbed.Night
		matter []tuner.Importance
		drawn  string
	}{
		{"hostile", nasty, matter, "night best area matter levels tradeoff knobs"},
		{"40", webbed.Make("n", 40, 7), matter, "night best area matter levels tradeoff knobs"},
		{"one trial", one, nil, ""},
		{"one failure", failed, nil, ""},
		{"no trial", none, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var drawn []string
			for _, f := range collect(t, tt.night).Drawn(tt.matter) {
				if f.Empty {
					continue
				}
				drawn = append(drawn, f.Name)
				if f.Drawing == "" {
					t.Errorf("%s is not drawn", f.Name)
				}
				wellFormed(t, f.Drawing, func(e xml.StartElement) {
					for _, a := range e.Attr {
						if a.Name.Local == "style" || strings.HasPrefix(a.Name.Local, "on") || e.Name.Local == "script" {
							t.Errorf("%s: %s %s", f.Name, e.Name.Local, a.Name.Local)
						}
					}
				})
				for _, not := range []string{"NaN", "Inf", "e+", ">−0<", ">-0"} {
					if strings.Contains(string(f.Drawing), not) {
						t.Errorf("%s: %s in the drawing", f.Name, not)
					}
				}
			}
			if got := strings.Join(drawn, " "); tt.drawn != "" && got != tt.drawn {
				t.Errorf("drawn %q, want %q", got, tt.drawn)
			}
		})
	}
}

// TestDrawnFigures holds that drawings show what their tables say.
func TestDrawnFigures(t *testing.T) {
	t.Parallel()
	night := small()
	night.Trials[3].Levels = append(night.Trials[3].Levels, trial.Level{Concurrency: 160, Report: night.Trials[3].Levels[0].Report})
	byName := map[string]string{}
	for _, f := range collect(t, night).Drawn([]tuner.Importance{{Knob: "mem-fraction-static", Effect: 0.12, Low: 0.04, High: 0.2, Best: 0.88}}) {
		byName[f.Name] = string(f.Drawing)
	}
	for name, wants := range map[string][]string{
		"matter":   {"mem-fraction-static", "best 0.88", "20.0%"},
		"levels":   {"baseline", "trial 3", "output tok/s", "TTFT p95, s", "clients", ">120<", ">160<"},
		"tradeoff": {"TTFT p95", "trial 5", "trial 1", "output tok/s"},
		"knobs":    {"mem-fraction-static", "hicache-size", ">0.93<", ">0.8<", ">48<"},
	} {
		for _, want := range wants {
			if !strings.Contains(byName[name], want) {
				t.Errorf("%s: no %q in %s", name, want, byName[name])
			}
		}
	}
}
