package chart

import (
	"html/template"
	"math"
	"strings"

	"sgtune/trial"
)

// Sizes of the best so far without JavaScript.
const (
	bestDrawn  = 80  // points at most
	bestPlot   = 210 // pixels
	bestTop    = 14
	bestLeft   = 13 // percent
	bestLane   = 16 // pixels of each class of failures
	bestBottom = 22
)

// bestDrawing is the best so far as SVG: points, steps, the baseline, and failures in a strip below.
func (d *Data) bestDrawing() template.HTML {
	steps := d.bestSteps()
	if len(steps) == 0 {
		return ""
	}
	low, high := d.valueRange()
	last := d.Rows[len(d.Rows)-1].Number
	x := scale{0, float64(max(last, 1)), bestLeft + 1, 98}
	y := scale{low, high, bestTop + bestPlot, bestTop}
	lanes := d.lanes()
	var s drawing
	s.open("Best so far. "+d.bestSentence(), bestTop+bestPlot+bestLane*len(lanes)+bestBottom+12)
	for _, t := range ticks(low, high) {
		s.rule("grid", bestLeft, int(y.at(t)), 99, int(y.at(t)))
		s.text("tick", "end", bestLeft-1, int(y.at(t))+4, Number(t))
	}
	for _, t := range ticks(0, float64(max(last, 1))) {
		if t == math.Trunc(t) {
			s.text("tick", "middle", x.at(t), s.height-6, Number(t))
		}
	}
	if l, ok := d.baselineLine(); ok {
		s.rule("baseline", bestLeft, int(y.at(l.Value)), 99, int(y.at(l.Value)))
		s.text("tick", "end", 99, int(y.at(l.Value))-4, l.Label)
	}
	s.steps(d, steps, x, y)
	d.points(&s, x, y, lanes)
	return s.close()
}

// steps draws the best so far as a staircase.
func (s *drawing) steps(d *Data, steps []int, x, y scale) {
	var line strings.Builder
	inner := scale{x.start, x.end, 0, frameWidth}
	for i, r := range steps {
		row := &d.Rows[r]
		at, high := short(inner.at(x.at(float64(row.Number)))), short(y.at(row.Value))
		if i == 0 {
			line.WriteString("M" + at + " " + high)
		} else {
			line.WriteString("H" + at + "V" + high)
		}
	}
	s.frame(x.start, x.end)
	s.path("best", line.String()+"H"+short(frameWidth))
	s.endFrame()
}

// points draws every trial, thinned when there are many.
func (d *Data) points(s *drawing, x, y scale, lanes []int) {
	byClass := map[int][]glyph{}
	var again []glyph // confirmation launches
	rows := upTo(min(bestDrawn, len(d.Rows)), len(d.Rows))
	for _, i := range rows {
		r := &d.Rows[i]
		switch {
		case r.counts() && r.Role == trial.RoleConfirm:
			again = append(again, glyph{x.at(float64(r.Number)), y.at(r.Value)})
		case r.counts():
			byClass[r.Class] = append(byClass[r.Class], glyph{x.at(float64(r.Number)), y.at(r.Value)})
		case failure(r.Class):
			for lane, c := range lanes {
				if c == r.Class {
					byClass[c] = append(byClass[c], glyph{x.at(float64(r.Number)), float64(bestTop + bestPlot + bestLane*lane + 14)})
				}
			}
		}
	}
	for lane, c := range lanes {
		top := bestTop + bestPlot + bestLane*lane
		s.rule("grid", bestLeft, top+bestLane+5, 99, top+bestLane+5)
		s.text("glyph c-"+Classes[c].Key, "end", bestLeft-1, top+18, Classes[c].Shape)
	}
	for c := range classCount {
		s.glyphs(c, byClass[c])
	}
	s.shapes("○", Classes[classOK].Key, again)
}

// lanes are the classes of failures there are, in order.
func (d *Data) lanes() []int {
	var there [classCount]bool
	for i := range d.Rows {
		there[d.Rows[i].Class] = true
	}
	var out []int
	for c, is := range there {
		if is && failure(c) {
			out = append(out, c)
		}
	}
	return out
}

// valueRange is what the value axis shows: the values with a little room, never from 0 for its own sake.
func (d *Data) valueRange() (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for i := range d.Rows {
		if r := &d.Rows[i]; r.counts() {
			low, high = math.Min(low, r.Value), math.Max(high, r.Value)
		}
	}
	if l, ok := d.baselineLine(); ok {
		low, high = math.Min(low, l.Value), math.Max(high, l.Value)
	}
	room := math.Max((high-low)*0.06, math.Abs(high)*0.005)
	return low - room, high + room
}
