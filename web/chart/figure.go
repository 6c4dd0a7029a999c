package chart

import (
	"html/template"
	"strconv"
	"strings"

	"sgtune/tuner"
)

// Figure is one chart on a page: everything about it that is text, and its drawing without JavaScript.
type Figure struct {
	Name     string // in addresses: "night", "best", "levels", "area", "knobs", "matter", "tradeoff", "life"
	Title    string
	Sentence string        // what it shows
	Label    string        // for those who cannot see it
	Note     string        // what was left out, "" for nothing
	Drawing  template.HTML // SVG, "" where there is none
	Table    Table
	Panels   int  // of a trial's chart, 0 for others: how high it is
	Empty    bool // nothing to draw yet: the sentence stands alone
}

// Names lists the charts of a study in the order of its page.
var Names = []string{"night", "best", "area", "matter", "levels", "tradeoff", "knobs"}

// Figures are all charts of a study. matter are the importances, nil when the models cannot tell.
func (d *Data) Figures(matter []tuner.Importance) []Figure {
	var out []Figure
	for _, name := range Names {
		if f, ok := d.Figure(name, matter, shown); ok {
			out = append(out, f)
		}
	}
	return out
}

// Figure is one chart of a study with at most so many rows in its table, 0 = all; ok is false for a name that is none.
func (d *Data) Figure(name string, matter []tuner.Importance, most int) (f Figure, ok bool) {
	f.Name = name
	switch name {
	case "night":
		rows, left := d.night()
		f.Title, f.Sentence, f.Table, f.Empty = "The night", d.nightSentence(), d.nightTable(most), len(rows) == 0
		f.Note = leftOut(left, "older trial", "the table has all")
		f.Drawing = d.nightDrawing()
	case "best":
		f.Title, f.Sentence, f.Table, f.Empty = "Best so far", d.bestSentence(), d.bestTable(most), len(d.bestSteps()) == 0
		_, left := d.kept()
		f.Note = leftOut(left, "trial", "every failure and every step of the best is drawn")
		if d.confirmed() {
			f.Note = strings.TrimSpace("Hollow points are confirmation launches. " + f.Note)
		}
		f.Drawing = d.bestDrawing()
	case "area":
		a, drawn := d.Area()
		f.Title, f.Empty, f.Sentence = "Where it works", !drawn, "No trial has shown its memory yet."
		if drawn {
			f.Sentence, f.Table, f.Drawing = d.areaSentence(a), d.areaTable(a, most), d.areaDrawing(a)
			f.Note = "Lines are arithmetic, drawn for " + a.At + ". Empty places were not tried."
		}
	case "matter":
		f.Title, f.Sentence, f.Table, f.Empty = "What mattered", importanceSentence(matter), importanceTable(matter, most), len(matter) == 0
	case "levels":
		f.Title, f.Sentence, f.Table, f.Empty = "Load levels", d.levelsSentence(), d.levelsTable(most), len(d.levelCurves()) == 0
	case "tradeoff":
		all, _ := d.tradeoff()
		f.Title, f.Sentence, f.Table, f.Empty = "Speed against wait", d.tradeoffSentence(), d.tradeoffTable(most), len(all) == 0
		_, left := d.kept()
		f.Note = leftOut(left, "trial", "every trial on the line is drawn")
	case "knobs":
		f.Title, f.Sentence, f.Table = "All knobs", d.knobsSentence(), d.knobsTable(most)
		f.Empty = len(d.bestTenth()) == 0 || len(d.knobs.knobs) == 0
		_, _, left := d.knobLines()
		f.Note = leftOut(left, "trial", "the table has all")
	default:
		return Figure{}, false
	}
	f.Label = f.Title + ": " + f.Sentence
	return f, true
}

// Figure is a trial's chart over its time.
func (l *Life) Figure() Figure {
	f := Figure{Name: "life", Title: "Over its time", Sentence: l.Sentence(), Table: l.Summary(), Empty: len(l.Series) == 0}
	var there [panelCount]bool
	for _, s := range l.Series {
		if !there[s.Panel] {
			there[s.Panel] = true
			f.Panels++
		}
	}
	f.Label = "Trial " + strconv.Itoa(l.Trial.Number) + " over its time: " + f.Sentence
	for i, n := range l.Notes {
		if i > 0 {
			f.Note += " "
		}
		f.Note += n
	}
	return f
}

// leftOut says how many were left out, "" for none.
func leftOut(n int, what, but string) string {
	if n == 0 {
		return ""
	}
	return count(n, what) + " left out of the drawing; " + but + "."
}
