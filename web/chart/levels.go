package chart

import (
	"fmt"
	"math"
)

var nan = math.NaN()

// curves is how many trials' load levels are drawn: the baseline's, the top's, and those measured most widely.
const curves = 4

// Curve is one trial's load levels.
type Curve struct {
	Row    *Row
	Label  string
	Levels []Level
}

// levelCurves picks the trials worth comparing, the baseline first.
func (d *Data) levelCurves() []Curve {
	var out []Curve
	add := func(r *Row, label string) {
		if r == nil || len(r.Levels) == 0 || len(out) == curves {
			return
		}
		for _, c := range out {
			if c.Row == r {
				return
			}
		}
		out = append(out, Curve{Row: r, Label: label, Levels: r.Levels})
	}
	add(d.first(), "baseline")
	if top := d.top(); top != nil {
		add(top, fmt.Sprintf("trial %d", top.Number))
	}
	steps := d.bestSteps()
	for i := len(steps) - 1; i >= 0; i-- {
		if r := &d.Rows[steps[i]]; len(r.Levels) > 1 {
			add(r, fmt.Sprintf("trial %d", r.Number))
		}
	}
	return out
}

func (d *Data) levelsSentence() string {
	all := d.levelCurves()
	if len(all) == 0 {
		return "No load level was measured yet."
	}
	words := func(c Curve) string {
		at := c.Levels[0]
		for _, l := range c.Levels {
			if l.Tokens > at.Tokens {
				at = l
			}
		}
		wait := ""
		if !math.IsNaN(at.TTFT) {
			wait = ", TTFT p95 " + seconds(at.TTFT)
		}
		return fmt.Sprintf("%s makes %s output tok/s at %s%s", c.Label, Number(at.Tokens), count(at.Clients, "client"), wait)
	}
	text := words(all[0])
	if len(all) > 1 {
		text += "; " + words(all[1])
	}
	return upper(text) + "."
}

func (d *Data) levelsTable(most int) Table {
	t := Table{
		most:    most,
		Caption: "Load levels of the baseline and the leading trials",
		Head:    []string{"Trial", "Clients", "Output tok/s", "95% interval", "TTFT p95"},
	}
	for _, c := range d.levelCurves() {
		for _, l := range c.Levels {
			t.add(d.trialCell(c.Row), Cell{Text: Number(float64(l.Clients))}, Cell{Text: Number(l.Tokens)}, Cell{Text: interval(l.Low, l.High)},
				Cell{Text: seconds(l.TTFT)})
		}
	}
	return t
}

// upper makes the first letter large.
func upper(s string) string {
	if s != "" && s[0] >= 'a' && s[0] <= 'z' {
		return string(s[0]-'a'+'A') + s[1:]
	}
	return s
}
