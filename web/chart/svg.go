package chart

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
)

// drawing builds SVG. Places across are in percent, so that a drawing is as wide as its page and its words keep their
// size; places down are in pixels. Colours are classes of the style sheet: no style attribute, which the page's
// Content-Security-Policy would refuse.
type drawing struct {
	b      strings.Builder
	height int
}

// open begins a drawing that says label to those who cannot see it.
func (s *drawing) open(label string, height int) {
	s.height = height
	fmt.Fprintf(&s.b, `<svg xmlns="http://www.w3.org/2000/svg" class="drawing" width="100%%" height="%d" role="img" aria-label="%s">`, height, template.HTMLEscapeString(label))
}

// close ends it.
func (s *drawing) close() template.HTML {
	s.b.WriteString("</svg>")
	return template.HTML(s.b.String()) //nolint:gosec // every text in it went through text, open or glyphs, which escape
}

// text writes words at x percent and y pixels; anchor is start, middle or end.
func (s *drawing) text(class, anchor string, x float64, y int, words string) {
	fmt.Fprintf(&s.b, `<text class="%s" x="%s%%" y="%d"`, class, short(x), y)
	if anchor != "start" {
		fmt.Fprintf(&s.b, ` text-anchor="%s"`, anchor)
	}
	s.b.WriteString(">" + template.HTMLEscapeString(words) + "</text>")
}

// rule draws a straight line.
func (s *drawing) rule(class string, x1 float64, y1 int, x2 float64, y2 int) {
	fmt.Fprintf(&s.b, `<line class="%s" x1="%s%%" y1="%d" x2="%s%%" y2="%d"/>`, class, short(x1), y1, short(x2), y2)
}

// glyph is the place of one shape.
type glyph struct{ x, y float64 }

// glyphs draws the shape of a class at many places with one element.
func (s *drawing) glyphs(class int, at []glyph) {
	s.shapes(Classes[class].Shape, Classes[class].Key, at)
}

// shapes draws a shape in the colour of a class.
func (s *drawing) shapes(shape, key string, at []glyph) {
	if len(at) == 0 {
		return
	}
	var x, y strings.Builder
	for i, g := range at {
		if i > 0 {
			x.WriteByte(' ')
			y.WriteByte(' ')
		}
		x.WriteString(short(g.x) + "%")
		y.WriteString(strconv.Itoa(int(math.Round(g.y)) + 4))
	}
	fmt.Fprintf(&s.b, `<text class="glyph c-%s" text-anchor="middle" x="%s" y="%s">%s</text>`, key, x.String(), y.String(),
		template.HTMLEscapeString(strings.Repeat(shape, len(at))))
}

// frame opens a part whose places across are from 0 to frameWidth; its lines keep their width.
func (s *drawing) frame(left, right float64) {
	fmt.Fprintf(&s.b, `<svg x="%s%%" width="%s%%" height="%d" viewBox="0 0 %d %d" preserveAspectRatio="none">`, short(left), short(right-left), s.height, frameWidth, s.height)
}

func (s *drawing) endFrame() { s.b.WriteString("</svg>") }

// frameWidth is the resolution of a frame.
const frameWidth = 1000

// path draws an outline given as SVG's path commands.
func (s *drawing) path(class, d string) {
	if d != "" {
		fmt.Fprintf(&s.b, `<path class="%s" d="%s"/>`, class, d)
	}
}

// bar is a stroke from x to x+w at y; its class says how thick.
func bar(x, y, w float64) string {
	return fmt.Sprintf("M%d %dh%d", int(math.Round(x)), int(math.Round(y)), int(math.Round(w)))
}

// box is a rectangle as a path.
func box(x, y, w, h float64) string {
	x0, y0, x1, y1 := math.Round(x), math.Round(y), math.Round(x+w), math.Round(y+h)
	return fmt.Sprintf("M%d %dh%dv%dH%dz", int(x0), int(y0), int(x1-x0), int(y1-y0), int(x0))
}

// short spells a coordinate.
func short(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "0"
	}
	return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
}

// scale maps from one range to another.
type scale struct{ from, to, start, end float64 }

func (s scale) at(v float64) float64 {
	if s.to == s.from {
		return (s.start + s.end) / 2
	}
	return s.start + (v-s.from)/(s.to-s.from)*(s.end-s.start)
}

// ticks are two to six round numbers between two.
func ticks(low, high float64) []float64 {
	if !(high > low) {
		return []float64{low}
	}
	step := math.Pow(10, math.Floor(math.Log10((high-low)/2)))
	for i := 0; (high-low)/step > 6; i++ {
		step *= []float64{2, 2.5, 2}[i%3]
	}
	var out []float64
	for n := math.Ceil(low/step-1e-9) * step; n <= high+step*1e-9; n += step {
		out = append(out, n)
	}
	return out
}
