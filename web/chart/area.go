package chart

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Sides of the map at most; more distinct values share a cell.
const (
	mapColumns = 24
	mapRows    = 10
)

// Area is the map of memory: mem-fraction-static across, hicache-size up. Each cell is what was measured there; lines
// are arithmetic.
type Area struct {
	Fractions, Pools []float64 // middles of the cells, ascending
	Cells            []AreaCell
	Lines            []AreaLine
	Chosen           *AreaPoint
	At               string // what the other knobs are held at for the lines, in words
}

// AreaCell is a place where at least one trial was; there is none for a place that was not tried.
type AreaCell struct {
	X, Y     int     // indexes into Fractions and Pools
	Value    float64 // highest there, NaN without any
	Trials   int
	Best     int // trial of Value, -1
	Failures int
	Worst    int // class of its failures, the most frequent; -1 without any
}

// AreaPoint is a configuration on the map.
type AreaPoint struct {
	Fraction, Pool float64
	Label          string
	Limit          float64 // learnt fraction at which memory runs out, NaN unknown
	Margin         float64 // GiB free beyond what is needed, NaN unknown
}

// AreaLine is a line over the map.
type AreaLine struct {
	Kind  string // tokens | ram | limit | useless
	Label string
	X, Y  []float64
}

// area folds the rows into cells; ok is false where no trial has a place.
func (d *Data) area() (a Area, ok bool) {
	var xs, ys []float64
	for i := range d.Rows {
		if r := &d.Rows[i]; r.placed() {
			xs, ys = append(xs, r.Fraction), append(ys, r.Pool)
		}
	}
	if len(xs) == 0 {
		return Area{}, false
	}
	a.Fractions, a.Pools = middles(xs, mapColumns), middles(ys, mapRows)
	failures := map[[2]int]*[classCount]int{}
	at := map[[2]int]int{}
	for i := range d.Rows {
		r := &d.Rows[i]
		if !r.placed() {
			continue
		}
		key := [2]int{nearest(a.Fractions, r.Fraction), nearest(a.Pools, r.Pool)}
		n, known := at[key]
		if !known {
			n = len(a.Cells)
			at[key], failures[key] = n, &[classCount]int{}
			a.Cells = append(a.Cells, AreaCell{X: key[0], Y: key[1], Value: nan, Best: -1, Worst: -1})
		}
		c := &a.Cells[n]
		c.Trials++
		if r.counts() && !(c.Value >= r.Value) {
			c.Value, c.Best = r.Value, r.Number
		}
		if failure(r.Class) && r.Class != classInnocent {
			failures[key][r.Class]++
			c.Failures++
		}
	}
	for key, n := range at {
		if by := failures[key]; a.Cells[n].Failures > 0 {
			a.Cells[n].Worst = slices.Index(by[:], slices.Max(by[:]))
		}
	}
	return a, true
}

// placed reports whether a finished row stands on the map.
func (r *Row) placed() bool {
	return !math.IsNaN(r.Fraction) && r.Class != classWaiting && r.Class != classRunning
}

// middles are the distinct values, ascending, at most so many: else evenly spread ones.
func middles(v []float64, most int) []float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	v = slices.Compact(v)
	if len(v) <= most {
		return v
	}
	out := make([]float64, most)
	for i := range out {
		out[i] = rounded(v[0] + (v[len(v)-1]-v[0])*float64(i)/float64(most-1))
	}
	return out
}

// nearest is the index of the value next to x.
func nearest(v []float64, x float64) int {
	best := 0
	for i := range v {
		if math.Abs(v[i]-x) < math.Abs(v[best]-x) {
			best = i
		}
	}
	return best
}

// areaSentence says where it works and where memory ends.
func (d *Data) areaSentence(a Area) string {
	failed := map[int]int{}
	lowest := math.Inf(1)
	for i := range d.Rows {
		if r := &d.Rows[i]; r.placed() && r.Class == classGPU {
			lowest = math.Min(lowest, r.Fraction)
			failed[r.Class]++
		}
	}
	text := fmt.Sprintf("%d of %d places were tried", len(a.Cells), len(a.Fractions)*len(a.Pools))
	if n := failed[classGPU]; n > 0 {
		text += fmt.Sprintf("; GPU memory ran out in %s, from %s %s on", count(n, "trial"), memFraction, fraction(lowest))
	}
	if c := a.Chosen; c != nil {
		text += fmt.Sprintf("; %s is at %s with %s", c.Label, fraction(c.Fraction), pool(c.Pool))
		if !math.IsNaN(c.Margin) {
			text += fmt.Sprintf(", %s GiB from the learnt GPU limit", strconv.FormatFloat(c.Margin, 'f', 1, 64))
		}
	}
	return text + "."
}

// fraction spells a mem-fraction-static.
func fraction(f float64) string { return strconv.FormatFloat(math.Round(f*1000)/1000, 'f', -1, 64) }

// pool spells a hicache-size.
func pool(gb float64) string {
	if gb == 0 {
		return "no host pool"
	}
	return Number(gb) + " GB host pool a rank"
}

func (d *Data) areaTable(a Area, most int) Table {
	t := Table{
		most: most, page: 4, Caption: "Places tried, the highest value first",
		Head: []string{memFraction, "Host pool a rank, GB", "Highest " + d.Unit(), "Failed", "Tried", "Trial of the highest"},
	}
	cells := slices.Clone(a.Cells)
	slices.SortStableFunc(cells, func(x, y AreaCell) int {
		switch {
		case math.IsNaN(x.Value) && math.IsNaN(y.Value):
			return 0
		case math.IsNaN(x.Value) || x.Value < y.Value:
			return 1
		case math.IsNaN(y.Value) || x.Value > y.Value:
			return -1
		}
		return 0
	})
	for _, c := range cells {
		who := none
		if c.Best >= 0 {
			who = strconv.Itoa(c.Best)
		}
		failed := Cell{Text: fmt.Sprintf("%d of %d", c.Failures, c.Trials), Trial: -1, Class: c.Worst, plain: strconv.Itoa(c.Failures)}
		t.add(Cell{Text: fraction(a.Fractions[c.X])}, Cell{Text: Number(a.Pools[c.Y])}, Cell{Text: Number(c.Value)}, failed, Cell{Text: strconv.Itoa(c.Trials)}, Cell{Text: who})
	}
	return t
}
