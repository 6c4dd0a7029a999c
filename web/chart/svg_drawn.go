package chart

import (
	"fmt"
	"html/template"
	"math"
	"strings"

	"sgtune/sglang"
	"sgtune/tuner"
)

// Drawn are all charts of a study, each with its SVG: for a document that no script is in.
func (d *Data) Drawn(matter []tuner.Importance) []Figure {
	all := d.Figures(matter)
	for i := range all {
		f := &all[i]
		if f.Empty || f.Drawing != "" {
			continue
		}
		switch f.Name {
		case "matter":
			f.Drawing = matterDrawing(matter)
		case "levels":
			f.Drawing = d.levelsDrawing()
		case "tradeoff":
			f.Drawing = d.tradeoffDrawing()
		case "knobs":
			f.Drawing = d.knobsDrawing(matter)
		}
	}
	return all
}

// Sizes of the bars of what mattered.
const (
	barsShown = 16
	barRow    = 24 // pixels
	barsTop   = 8
	barsLeft  = 34 // percent
	barsRight = 88
)

// matterDrawing are the importances as bars with their 80% range.
func matterDrawing(all []tuner.Importance) template.HTML {
	all = all[:min(len(all), barsShown)]
	most := 0.0
	for _, i := range all {
		most = math.Max(most, math.Max(i.Effect, i.High))
	}
	var s drawing
	s.open("What mattered. "+importanceSentence(all), barsTop+barRow*len(all)+30)
	x := scale{0, math.Max(most, 1e-6), barsLeft, barsRight}
	bottom := barsTop + barRow*len(all)
	for _, t := range ticks(0, x.to) {
		s.rule("grid", x.at(t), barsTop, x.at(t), bottom)
		s.text("tick", "middle", x.at(t), bottom+16, share(math.Abs(t))) // never −0
	}
	var bars strings.Builder
	for i, m := range all {
		y := barsTop + barRow*i
		bars.WriteString(box(0, float64(y+5), math.Max(0, m.Effect)/x.to*frameWidth, barRow-10))
		s.text("tick", "end", barsLeft-1, y+16, m.Knob)
	}
	s.frame(barsLeft, barsRight)
	s.path("c-ok", bars.String())
	s.endFrame()
	for i, m := range all {
		y := barsTop + barRow*i + barRow/2
		s.rule("range", x.at(math.Max(0, m.Low)), y, x.at(math.Max(0, m.High)), y)
		s.text("tick", "start", math.Min(x.at(math.Max(m.Effect, m.High))+1, 89), y+4, "best "+sglang.FormatValue(m.Best))
	}
	return s.close()
}

// Sizes of the curves of load levels, of both panels.
const (
	curveTop    = 34
	curvePanel  = 150 // pixels
	curveGap    = 44
	curvesLeft  = 13 // percent
	curvesRight = 97
)

// curveShapes tell curves apart without colour.
var curveShapes = [curves]string{"○", "●", "▲", "■"}

// levelsDrawing are the load levels as curves: output above, wait below.
func (d *Data) levelsDrawing() template.HTML {
	all := d.levelCurves()
	var s drawing
	s.open("Load levels. "+d.levelsSentence(), curveTop+2*curvePanel+curveGap+34)
	low, high := math.Inf(1), math.Inf(-1)
	for i, c := range all {
		for _, l := range c.Levels {
			low, high = math.Min(low, float64(l.Clients)), math.Max(high, float64(l.Clients))
		}
		at := 1 + 24*float64(i)
		s.shapes(curveShapes[i], fmt.Sprintf("k%d", i), []glyph{{at, 7}})
		s.text("tick", "start", at+1.5, 11, c.Label)
	}
	x := scale{low, high, curvesLeft + 2, curvesRight - 2}
	s.curvePanel(all, x, curveTop, "output tok/s", func(l Level) (float64, float64, float64) { return l.Tokens, l.Low, l.High })
	s.curvePanel(all, x, curveTop+curvePanel+curveGap, "TTFT p95, s", func(l Level) (float64, float64, float64) { return l.TTFT, nan, nan })
	for _, t := range ticks(low, high) {
		if t == math.Trunc(t) {
			s.text("tick", "middle", x.at(t), s.height-18, Number(t))
		}
	}
	s.text("tick", "middle", 55, s.height-3, "clients")
	return s.close()
}

// curvePanel draws one figure of all curves.
func (s *drawing) curvePanel(all []Curve, x scale, top int, unit string, figure func(Level) (v, low, high float64)) {
	least, most := math.Inf(1), math.Inf(-1)
	for _, c := range all {
		for _, l := range c.Levels {
			if v, low, high := figure(l); !math.IsNaN(v) {
				least, most = math.Min(least, v), math.Max(most, v)
				if !math.IsNaN(low) && !math.IsNaN(high) {
					least, most = math.Min(least, low), math.Max(most, high)
				}
			}
		}
	}
	s.text("tick", "start", 0, top-8, unit)
	if least > most {
		s.text("tick", "middle", 50, top+curvePanel/2, "not measured")
		return
	}
	room := math.Max((most-least)*0.06, math.Abs(most)*0.005)
	y := scale{least - room, most + room, float64(top + curvePanel), float64(top)}
	for _, t := range ticks(y.from, y.to) {
		s.rule("grid", curvesLeft, int(y.at(t)), curvesRight, int(y.at(t)))
		s.text("tick", "end", curvesLeft-1, int(y.at(t))+4, Number(t))
	}
	for i, c := range all {
		var line strings.Builder
		var points []glyph
		inner := scale{x.start, x.end, 0, frameWidth}
		for _, l := range c.Levels {
			v, low, high := figure(l)
			if math.IsNaN(v) {
				continue
			}
			at := x.at(float64(l.Clients))
			step := "L"
			if len(points) == 0 {
				step = "M"
			}
			line.WriteString(step + short(inner.at(at)) + " " + short(y.at(v)))
			points = append(points, glyph{at, y.at(v)})
			if !math.IsNaN(low) && !math.IsNaN(high) {
				s.rule("axis", at, int(y.at(low)), at, int(y.at(high)))
			}
		}
		s.frame(x.start, x.end)
		s.path(fmt.Sprintf("curve k%d dash%d", i, i), line.String())
		s.endFrame()
		s.shapes(curveShapes[i], fmt.Sprintf("k%d", i), points)
	}
}
