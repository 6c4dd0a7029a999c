package chart

import (
	"fmt"
	"html/template"
	"strings"
	"time"
)

// Sizes of the night without JavaScript.
const (
	nightWhole = 60 // trials: so many are drawn all
	nightDrawn = 25 // trials of a longer night, the newest
	nightRow   = 15 // pixels
	nightTop   = 34
	nightLeft  = 13 // percent
)

// nightDrawing is the night as SVG: a row for each of the newest trials.
func (d *Data) nightDrawing() template.HTML {
	rows, _ := d.night()
	if len(rows) == 0 {
		return ""
	}
	older := 0
	if len(rows) > nightWhole {
		older = len(rows) - nightDrawn
	}
	rows = rows[older:]
	from, to := nightTimes(rows)
	across := scale{0, max(1, to.Sub(from).Seconds()), 0, frameWidth}
	percent := scale{0, across.to, nightLeft, 99}
	var s drawing
	height := nightTop + nightRow*len(rows) + 6
	if older > 0 {
		height += nightRow
	}
	s.open("The night. "+d.nightSentence(), height)
	s.legend()
	if older > 0 {
		s.text("tick", "start", 0, height-4, "The newest "+Number(nightDrawn)+" trials.")
	}
	for _, t := range clockTicks(from, to) {
		x := percent.at(t.Sub(from).Seconds())
		s.rule("grid", x, nightTop-4, x, nightTop+nightRow*len(rows))
		s.text("tick", "middle", min(x, 96), nightTop-8, clock(t))
	}
	s.trials(rows, from, across)
	s.frame(nightLeft, 99)
	var marks strings.Builder
	for _, m := range d.marks() {
		if !m.At.Before(from) && !m.At.After(to) {
			x := across.at(m.At.Sub(from).Seconds())
			fmt.Fprintf(&marks, "M%s %dv6", short(x), nightTop-6)
		}
	}
	s.path("mark", marks.String())
	s.endFrame()
	return s.close()
}

// trials draws a row for each: its number, its shape and its bar.
func (s *drawing) trials(rows []*Row, from time.Time, across scale) {
	bars := make([]strings.Builder, len(phases))
	var numbers strings.Builder
	var ended [classCount][]glyph
	for i, r := range rows {
		at := r.began().Sub(from).Seconds()
		y := float64(nightTop + nightRow*i + 8)
		for p, sec := range r.spent() {
			if w := across.at(at+sec) - across.at(at); w > 0 {
				bars[p].WriteString(bar(across.at(at), y, max(w, 2)))
			}
			at += sec
		}
		fmt.Fprintf(&numbers, `<text y="%d">%d</text>`, nightTop+nightRow*i+12, r.Number)
		ended[r.Class] = append(ended[r.Class], glyph{nightLeft - 2, y})
	}
	s.b.WriteString(`<g class="tick">` + numbers.String() + "</g>")
	for c := range classCount {
		s.glyphs(c, ended[c])
	}
	s.frame(nightLeft, 99)
	for p := range phases {
		s.path("bar b-"+phases[p].Key, bars[p].String())
	}
	s.endFrame()
}

// legend names the phases above the night.
func (s *drawing) legend() {
	x := 0.0
	for _, p := range phases {
		s.text("swatch p-"+p.Key, "start", x, 11, "■")
		s.text("tick", "start", x+4, 11, p.Word)
		x += 7.5 + 2*float64(len(p.Word))
	}
}

// clockTicks are full hours, or parts of one, between two times.
func clockTicks(from, to time.Time) []time.Time {
	step := time.Minute
	for _, s := range []time.Duration{5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 12 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 28 * 24 * time.Hour} {
		if to.Sub(from)/step <= 6 {
			break
		}
		step = s
	}
	first := from.Local()
	midnight := time.Date(first.Year(), first.Month(), first.Day(), 0, 0, 0, 0, first.Location())
	var out []time.Time
	for t := midnight.Add(first.Sub(midnight).Truncate(step) + step); !t.After(to); t = t.Add(step) {
		out = append(out, t)
		if len(out) > 12 {
			break
		}
	}
	return out
}
