package chart

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"sgtune/sglang"
	"sgtune/trial"
)

// Knob is one knob that differs between trials: its values in order, and each row's as an index.
type Knob struct {
	Name   string
	Values []string // as SGLang spells them, numbers ascending
	number []float64
}

// knobTable numbers the values of each knob as they come and sorts them in the end.
type knobTable struct {
	knobs []Knob
	at    map[string]int
	seen  []map[string]int16
}

func newKnobTable() knobTable { return knobTable{at: map[string]int{}} }

// add numbers a configuration's values.
func (k *knobTable) add(c sglang.Config) []int16 {
	for _, name := range c.Names() {
		if _, known := k.at[name]; !known {
			k.at[name] = len(k.knobs)
			k.knobs = append(k.knobs, Knob{Name: name})
			k.seen = append(k.seen, map[string]int16{})
		}
	}
	out := make([]int16, len(k.knobs))
	for i := range k.knobs {
		out[i] = -1
		if _, set := c[k.knobs[i].Name]; set {
			out[i] = k.value(i, c)
		}
	}
	return out
}

func (k *knobTable) value(i int, c sglang.Config) int16 {
	text := c.Text(k.knobs[i].Name)
	n, known := k.seen[i][text]
	if !known {
		if len(k.knobs[i].Values) == math.MaxInt16 {
			return -1 // no knob has so many values that a chart could show
		}
		n = int16(len(k.knobs[i].Values)) //nolint:gosec // bounded above
		k.seen[i][text] = n
		f, ok := c.Float(k.knobs[i].Name)
		if !ok {
			f = math.NaN()
		}
		k.knobs[i].Values, k.knobs[i].number = append(k.knobs[i].Values, text), append(k.knobs[i].number, f)
	}
	return n
}

// finish drops knobs that never differ in the search and puts values in order.
func (k *knobTable) finish(rows []Row) {
	var kept []int
	var order [][]int16 // of each kept knob: old index to new
	for i := range k.knobs {
		unset := slices.ContainsFunc(rows, func(r Row) bool { return r.Role == trial.RoleSearch && (i >= len(r.knobs) || r.knobs[i] < 0) })
		if len(k.knobs[i].Values) > 1 || unset {
			kept, order = append(kept, i), append(order, k.knobs[i].sort())
		}
	}
	for r := range rows {
		old := rows[r].knobs
		rows[r].knobs = make([]int16, len(kept))
		for j, i := range kept {
			rows[r].knobs[j] = -1
			if i < len(old) && old[i] >= 0 {
				rows[r].knobs[j] = order[j][old[i]]
			}
		}
	}
	var out []Knob
	for _, i := range kept {
		out = append(out, k.knobs[i])
	}
	k.knobs, k.seen, k.at = out, nil, nil
}

// sort orders the values and returns where each went.
func (k *Knob) sort() []int16 {
	index := upTo(len(k.Values), len(k.Values))
	slices.SortStableFunc(index, func(a, b int) int {
		x, y := k.number[a], k.number[b]
		if math.IsNaN(x) || math.IsNaN(y) {
			return strings.Compare(k.Values[a], k.Values[b])
		}
		return cmp.Compare(x, y)
	})
	values, went := make([]string, len(index)), make([]int16, len(index))
	for to, from := range index {
		values[to], went[from] = k.Values[from], int16(to) //nolint:gosec // at most math.MaxInt16 values
	}
	k.Values = values
	return went
}

// bestTenth are the rows of the best tenth by value, at least one, best first: nil without any. Confirmation launches
// repeat what the search found and are left out.
func (d *Data) bestTenth() []int {
	var ranked []int
	for i := range d.Rows {
		if r := &d.Rows[i]; r.counts() && r.Role != trial.RoleConfirm {
			ranked = append(ranked, i)
		}
	}
	slices.SortStableFunc(ranked, func(a, b int) int { return cmp.Compare(d.Rows[b].Value, d.Rows[a].Value) })
	return ranked[:(len(ranked)+9)/10]
}

// knobsSentence says what the best trials have in common.
func (d *Data) knobsSentence() string {
	best := d.bestTenth()
	if len(best) == 0 || len(d.knobs.knobs) == 0 {
		return "No trial has a value yet."
	}
	var words []string
	for k, knob := range d.knobs.knobs {
		low, high := int16(math.MaxInt16), int16(-1)
		for _, i := range best {
			low, high = min(low, d.Rows[i].knobs[k]), max(high, d.Rows[i].knobs[k])
		}
		switch {
		case low < 0 || int(high-low) >= (len(knob.Values)+1)/2:
			continue // not set, or anywhere
		case low == high:
			words = append(words, knob.Name+" "+cut(knob.Values[low], valueShown))
		default:
			words = append(words, fmt.Sprintf("%s %s to %s", knob.Name, cut(knob.Values[low], valueShown), cut(knob.Values[high], valueShown)))
		}
	}
	who := fmt.Sprintf("The best tenth (%s) has ", count(len(best), "trial"))
	if len(words) == 0 {
		return fmt.Sprintf("The best tenth (%s) has no knob in common.", count(len(best), "trial"))
	}
	return who + strings.Join(words[:min(len(words), 4)], ", ") + "."
}

// setting is a row's value of knob k in words.
func (d *Data) setting(r *Row, k int) string {
	if r.knobs[k] < 0 {
		return "not set"
	}
	return d.knobs.knobs[k].Values[r.knobs[k]]
}

// knobNames are the knobs that differ between trials, as the heading of settingsOf.
func (d *Data) knobNames() string {
	var names []string
	for _, knob := range d.knobs.knobs {
		names = append(names, knob.Name)
	}
	return strings.Join(names, " · ")
}

// settingsOf are a row's values of the knobs that differ, in the order of knobNames.
func (d *Data) settingsOf(r *Row) string {
	var words []string
	for k := range d.knobs.knobs {
		words = append(words, d.setting(r, k))
	}
	return strings.Join(words, " · ")
}

// How many characters of a row's settings, and of one value, stand on a page; the CSV has all.
const (
	settingsShown = 100
	valueShown    = 40
)

func (d *Data) knobsTable(most int) Table {
	t := Table{most: most, page: 3, Caption: "Trials by value, with the knobs that differ", Head: []string{"Trial", d.Unit(), d.knobNames(), "Outcome"}}
	order := upTo(len(d.Rows), len(d.Rows))
	slices.SortStableFunc(order, func(a, b int) int { return d.Rows[a].worse(&d.Rows[b]) })
	for _, i := range order {
		r := &d.Rows[i]
		all := d.settingsOf(r)
		settings := Cell{Text: cut(all, settingsShown), Trial: -1, Class: -1, plain: all}
		t.add(d.trialCell(r), Cell{Text: Number(r.Value)}, settings, d.outcomeCell(r))
	}
	return t
}

// worse orders rows by value, best first, those without one at the end.
func (r *Row) worse(o *Row) int {
	switch {
	case r.counts() && !o.counts():
		return -1
	case !r.counts() && o.counts():
		return 1
	case !r.counts():
		return 0
	}
	return cmp.Compare(o.Value, r.Value)
}
