package chart

import (
	"html/template"
	"math"
	"strings"
)

// Sizes of the map of memory without JavaScript.
const (
	areaPlot   = 240 // pixels
	areaTop    = 30
	areaLeft   = 13 // percent
	areaBottom = 36
	areaLegend = 16 // pixels of each line that is named below
	shades     = 10 // steps of the colour scale: classes v0 to v9
)

// areaDrawing is the map of memory as SVG.
func (d *Data) areaDrawing(a Area) template.HTML {
	sideX, sideY := a.sideX(), a.sideY()
	x, y := scale{sideX[0], sideX[1], areaLeft, 99}, scale{sideY[0], sideY[1], areaTop + areaPlot, areaTop}
	inner := scale{sideX[0], sideX[1], 0, frameWidth}
	var s drawing
	s.open("Where it works. "+d.areaSentence(a), areaTop+areaPlot+areaBottom+areaLegend*a.named())
	cells, low, high := a.shaded(inner, y)
	s.frame(areaLeft, 99)
	s.path("plain", box(0, areaTop, frameWidth, areaPlot))
	for i, c := range cells {
		s.path("v"+string(rune('0'+i)), c)
	}
	s.path("tried", a.unmeasured(inner, y))
	for _, l := range a.Lines {
		s.path("line-"+l.Kind, polyline(l, inner, y))
	}
	s.endFrame()
	failures := map[int][]glyph{}
	for _, c := range a.Cells {
		if 2*c.Failures > c.Trials && c.Worst >= 0 {
			failures[c.Worst] = append(failures[c.Worst], glyph{x.at(a.Fractions[c.X]), y.at(a.Pools[c.Y])})
		}
	}
	for c := range classCount {
		s.glyphs(c, failures[c])
	}
	a.labels(&s, x, y)
	speed := "nothing has a value yet"
	if !math.IsInf(low, 0) {
		speed = "light is fast: " + Number(low) + " to " + d.amount(high)
	}
	s.below(a, speed)
	return s.close()
}

// shaded are the cells with a value, by step of the colour scale, and its ends.
func (a Area) shaded(x, y scale) (paths [shades]string, low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, c := range a.Cells {
		if !math.IsNaN(c.Value) {
			low, high = math.Min(low, c.Value), math.Max(high, c.Value)
		}
	}
	var b [shades]strings.Builder
	shade := scale{low, high, 0, shades - 1}
	for _, c := range a.Cells {
		if !math.IsNaN(c.Value) {
			b[int(math.Round(shade.at(c.Value)))].WriteString(a.outline(c, x, y))
		}
	}
	for i := range b {
		paths[i] = b[i].String()
	}
	return paths, low, high
}

// unmeasured are the cells that were tried and have no value.
func (a Area) unmeasured(x, y scale) string {
	var b strings.Builder
	for _, c := range a.Cells {
		if math.IsNaN(c.Value) {
			b.WriteString(a.outline(c, x, y))
		}
	}
	return b.String()
}

// outline is a cell: it reaches half way to its neighbours.
func (a Area) outline(c AreaCell, x, y scale) string {
	left, right := half(a.Fractions, c.X, a.sideX())
	bottom, top := half(a.Pools, c.Y, a.sideY())
	x0, y0 := x.at(left), y.at(top)
	return box(x0+1, y0+1, x.at(right)-x0-2, y.at(bottom)-y0-2)
}

// half is where a cell begins and ends.
func half(v []float64, i int, side []float64) (from, to float64) {
	from, to = side[0], side[1]
	if i > 0 {
		from = (v[i-1] + v[i]) / 2
	}
	if i < len(v)-1 {
		to = (v[i] + v[i+1]) / 2
	}
	return from, to
}

// polyline is a line of the map, cut at its sides.
func polyline(l AreaLine, x, y scale) string {
	var b strings.Builder
	for i := range l.X {
		b.WriteString("ML"[min(i, 1):min(i, 1)+1] + short(x.at(l.X[i])) + " " + short(y.at(l.Y[i])))
	}
	return b.String()
}

// labels names the axes, the lines and the chosen point.
func (a Area) labels(s *drawing, x, y scale) {
	for _, t := range ticks(x.from, x.to) {
		s.text("tick", "middle", x.at(t), areaTop+areaPlot+14, fraction(t))
	}
	s.text("tick", "end", 99, areaTop+areaPlot+30, memFraction)
	for _, p := range a.Pools {
		s.text("tick", "end", areaLeft-1, int(y.at(p))+4, Number(p))
	}
	s.text("tick", "start", 0, 11, "GB a rank")
	for _, l := range a.Lines {
		n := len(l.X) - 1
		if at := x.at(l.X[n]); l.Kind == "tokens" && at < 97 && at > areaLeft {
			s.text("tick", "middle", at, areaTop-3, l.Label)
		}
	}
	if c := a.Chosen; c != nil {
		s.text("chosen", "middle", x.at(c.Fraction), int(y.at(c.Pool))+6, "◎")
	}
}

// named is how many lines are named below the map: KV tokens carry their numbers above it.
func (a Area) named() int {
	n := 0
	for _, l := range a.Lines {
		if l.Kind != "tokens" {
			n++
		}
	}
	if a.Chosen != nil {
		n++
	}
	return n + 3
}

// below says what the lines are.
func (s *drawing) below(a Area, speed string) {
	y := areaTop + areaPlot + areaBottom + areaLegend - 4
	say := func(class, sign, words string) {
		s.text("tick "+class, "start", 0, y, sign)
		s.text("tick", "start", 6, y, words)
		y += areaLegend
	}
	say("c-ok", "■", speed)
	say("", "▲", "shapes where more than half of the trials failed")
	say("", "│", "KV tokens of a rank, by the numbers above")
	for _, l := range a.Lines {
		switch l.Kind {
		case "ram":
			say("c-host", "━", l.Label)
		case "limit":
			say("c-gpu", "╏", l.Label)
		case "useless":
			say("", "┄", l.Label)
		}
	}
	if a.Chosen != nil {
		say("", "◎", a.Chosen.Label)
	}
}
