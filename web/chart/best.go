package chart

import (
	"fmt"
	"slices"

	"sgtune/trial"
)

// bestSteps are the indexes of rows that raised the best so far: search and baseline trials that count, in order.
func (d *Data) bestSteps() []int {
	var out []int
	for i := range d.Rows {
		r := &d.Rows[i]
		if r.Role == trial.RoleConfirm || !r.counts() {
			continue
		}
		if len(out) == 0 || r.Value > d.Rows[out[len(out)-1]].Value {
			out = append(out, i)
		}
	}
	return out
}

// Line is a level that others are compared with.
type Line struct {
	Value     float64
	Low, High float64 // NaN without an interval
	Launches  int
	Label     string
}

// baselineLine is what runs today: the verdict's figure over its launches, else that of trial 0 with its own interval.
func (d *Data) baselineLine() (Line, bool) {
	if v := d.Record.Verdict; v != nil && v.BaselineValue > 0 {
		return Line{Value: v.BaselineValue, Low: nan, High: nan, Launches: v.Launches, Label: "baseline, " + count(v.Launches, "launch")}.plural(), true
	}
	r := d.first()
	if r == nil {
		return Line{}, false
	}
	return Line{Value: r.Value, Low: r.Low, High: r.High, Launches: 1, Label: fmt.Sprintf("baseline, trial %d", r.Number)}, true
}

func (l Line) plural() Line {
	if l.Launches != 1 {
		l.Label = fmt.Sprintf("baseline, %d launches", l.Launches)
	}
	return l
}

func (d *Data) bestSentence() string {
	steps := d.bestSteps()
	if len(steps) == 0 {
		return "No trial has a value yet."
	}
	tried := 0
	for i := range d.Rows {
		if d.Rows[i].Role != trial.RoleConfirm && d.Rows[i].Class != classWaiting && d.Rows[i].Class != classRunning {
			tried++
		}
	}
	first, last := &d.Rows[steps[0]], &d.Rows[steps[len(steps)-1]]
	if len(steps) == 1 {
		return fmt.Sprintf("Trial %d makes %s, and none of %s made more.", first.Number, d.amount(first.Value), count(tried, "trial"))
	}
	unconfirmed := ", unconfirmed"
	if v := d.Record.Verdict; v != nil && v.Answer == "better" && v.Trial == last.Number {
		unconfirmed = ""
	}
	return fmt.Sprintf("Best rose from %s to %s in %s (trial %d%s).", Number(first.Value), d.amount(last.Value), count(tried, "trial"),
		last.Number, unconfirmed)
}

func (d *Data) bestTable(most int) Table {
	t := Table{most: most, page: 4, Caption: "Values and the best so far", Head: []string{"Trial", "Outcome", d.Unit(), "Best so far", "Low", "High"}}
	best := nan
	for i := range d.Rows {
		r := &d.Rows[i]
		if r.counts() && r.Role != trial.RoleConfirm && !(best >= r.Value) {
			best = r.Value
		}
		t.add(d.trialCell(r), d.outcomeCell(r), Cell{Text: Number(r.Value)}, Cell{Text: Number(best)}, Cell{Text: Number(r.Low)}, Cell{Text: Number(r.High)})
	}
	return t
}

// interval spells both ends.
func interval(low, high float64) string {
	if low != low || high != high { // NaN
		return none
	}
	return Number(low) + " to " + Number(high)
}

// confirmed reports whether there is a confirmation launch.
func (d *Data) confirmed() bool {
	return slices.ContainsFunc(d.Rows, func(r Row) bool { return r.Role == trial.RoleConfirm })
}
