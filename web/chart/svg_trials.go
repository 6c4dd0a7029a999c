package chart

import (
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"

	"sgtune/tuner"
)

// Sizes of speed against wait as SVG.
const (
	tradeDrawn  = 200 // points at most
	tradeTop    = 22
	tradePlot   = 260 // pixels
	tradeLeft   = 13  // percent
	tradeRight  = 97
	tradeBottom = 38
)

// tradeoffDrawing is speed against wait as SVG: trials, and the line of those that none beats in both.
func (d *Data) tradeoffDrawing() template.HTML {
	all, front := d.tradeoff()
	var s drawing
	s.open("Speed against wait. "+d.tradeoffSentence(), tradeTop+tradePlot+tradeBottom)
	left, right, low, high := math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, i := range all {
		r := &d.Rows[i]
		left, right = math.Min(left, r.TTFT), math.Max(right, r.TTFT)
		low, high = math.Min(low, r.Value), math.Max(high, r.Value)
	}
	roomX, roomY := math.Max((right-left)*0.04, right*0.005), math.Max((high-low)*0.06, high*0.005)
	x := scale{left - roomX, right + roomX, tradeLeft, tradeRight}
	y := scale{low - roomY, high + roomY, tradeTop + tradePlot, tradeTop}
	for _, t := range ticks(y.from, y.to) {
		s.rule("grid", tradeLeft, int(y.at(t)), tradeRight, int(y.at(t)))
		s.text("tick", "end", tradeLeft-1, int(y.at(t))+4, Number(t))
	}
	for _, t := range ticks(x.from, x.to) {
		s.rule("grid", x.at(t), tradeTop, x.at(t), tradeTop+tradePlot)
		s.text("tick", "middle", x.at(t), tradeTop+tradePlot+16, seconds(t))
	}
	s.text("tick", "start", 0, 12, d.Unit())
	s.text("tick", "middle", 55, s.height-4, "TTFT p95")
	byClass := map[int][]glyph{}
	for _, at := range upTo(min(tradeDrawn, len(all)), len(all)) {
		r := &d.Rows[all[at]]
		byClass[r.Class] = append(byClass[r.Class], glyph{x.at(r.TTFT), y.at(r.Value)})
	}
	for c := range classCount {
		s.glyphs(c, byClass[c])
	}
	s.front(d, front, x, y)
	return s.close()
}

// front draws the line through the trials that none beats, and names its ends.
func (s *drawing) front(d *Data, front []int, x, y scale) {
	var line strings.Builder
	inner := scale{x.start, x.end, 0, frameWidth}
	for n, i := range front {
		r := &d.Rows[i]
		at, high := short(inner.at(x.at(r.TTFT))), short(y.at(r.Value))
		if n == 0 {
			line.WriteString("M" + at + " " + high)
		} else {
			line.WriteString("V" + high + "H" + at)
		}
	}
	s.frame(x.start, x.end)
	s.path("front", line.String())
	s.endFrame()
	for n, i := range front {
		if n == 0 || n == len(front)-1 {
			r := &d.Rows[i]
			s.text("tick", "middle", min(max(x.at(r.TTFT), tradeLeft+4), tradeRight-4), int(y.at(r.Value))-8, "trial "+strconv.Itoa(r.Number))
		}
	}
}

// Sizes of all knobs as SVG.
const (
	knobAxes  = 6  // the most important; more cannot be read
	knobBest  = 30 // lines
	knobRest  = 60
	knobTop   = 46
	knobPlot  = 240 // pixels
	knobUnset = 22  // pixels below an axis: where a knob is not set
)

// knobsDrawing are the knobs as parallel axes: the best tenth stands out of the rest.
func (d *Data) knobsDrawing(matter []tuner.Importance) template.HTML {
	order := d.knobOrder(matter)
	order = order[:min(len(order), knobAxes)]
	var s drawing
	s.open("All knobs. "+d.knobsSentence(), knobTop+knobPlot+knobUnset+24)
	x := scale{0, float64(max(1, len(order)-1)), 8, 92}
	best, rest, _ := d.knobLines()
	s.frame(0, 100)
	s.path("rest", d.knobPaths(evenly(rest, knobRest), order, x))
	s.path("best", d.knobPaths(best[:min(len(best), knobBest)], order, x))
	s.endFrame()
	for n, k := range order {
		at, knob := x.at(float64(n)), d.knobs.knobs[k]
		s.rule("axis", at, knobTop, at, knobTop+knobPlot)
		s.text("tick", "middle", at, 12+14*(n%2), knob.Name)
		if last := len(knob.Values) - 1; last >= 0 {
			s.text("tick", "middle", at, knobTop-6, knob.Values[last])
			s.text("tick", "middle", at, knobTop+knobPlot+14, knob.Values[0])
		}
		unset := slices.ContainsFunc(slices.Concat(best, rest), func(i int) bool { return d.Rows[i].knobs[k] < 0 })
		if unset {
			s.text("tick", "middle", at, s.height-4, "not set")
		}
	}
	return s.close()
}

// knobPaths are the lines of some rows over the axes.
func (d *Data) knobPaths(rows, order []int, x scale) string {
	var b strings.Builder
	for _, i := range rows {
		for n, k := range order {
			y := float64(knobTop + knobPlot + knobUnset)
			if at := d.Rows[i].knobs[k]; at >= 0 {
				y = scale{0, float64(len(d.knobs.knobs[k].Values) - 1), knobTop + knobPlot, knobTop}.at(float64(at))
			}
			step := "L"
			if n == 0 {
				step = "M"
			}
			b.WriteString(step + short(x.at(float64(n))*frameWidth/100) + " " + short(y))
		}
	}
	return b.String()
}

// evenly keeps so many of some rows, evenly.
func evenly(rows []int, most int) []int {
	out := make([]int, 0, most)
	for _, i := range upTo(min(most, len(rows)), len(rows)) {
		out = append(out, rows[i])
	}
	return out
}
