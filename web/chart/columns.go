package chart

import (
	"math"
	"slices"
	"strconv"
	"time"

	"sgtune/trial"
	"sgtune/tuner"
)

// restLines is how many trials of the best tenth, and how many of the others, the chart of all knobs draws.
const restLines = 400

// column is figures as JSON: four significant digits, null for NaN.
type column []float64

// MarshalJSON implements json.Marshaler.
func (c column) MarshalJSON() ([]byte, error) {
	out := make([]byte, 0, 2+6*len(c))
	out = append(out, '[')
	for i, v := range c {
		if i > 0 {
			out = append(out, ',')
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			out = append(out, "null"...)
			continue
		}
		out = strconv.AppendFloat(out, rounded(v), 'f', -1, 64)
	}
	return append(out, ']'), nil
}

// Columns is what the charts of a study draw, as it is sent.
type Columns struct {
	Study     string `json:"study"`
	Simulated bool   `json:"simulated"`
	Unit      string `json:"unit"`
	Offset    int    `json:"offset_s"` // of the server's clock from UTC
	Trials    int    `json:"trials"`

	Classes []Class    `json:"classes"`
	Rows    rowColumns `json:"rows"`
	LeftOut int        `json:"left_out"` // trials with a value or pruned that are not among the rows

	Night    nightColumns  `json:"night"`
	Best     bestColumns   `json:"best"`
	Levels   []curveColumn `json:"levels"`
	Area     *areaColumns  `json:"area"`
	Knobs    knobColumns   `json:"knobs"`
	Matter   matterColumns `json:"matter"`
	Tradeoff []int         `json:"tradeoff"` // rows that no other beats in both, the fastest first
}

type rowColumns struct {
	Number  []int  `json:"number"`
	Class   []int  `json:"class"`
	Role    []int  `json:"role"` // 0 baseline, 1 search, 2 confirm
	Void    []int  `json:"void"` // rows that are void
	Value   column `json:"value"`
	Low     column `json:"low"`
	High    column `json:"high"`
	Clients []int  `json:"clients"`
	TTFT    column `json:"ttft_s"`
}

type nightColumns struct {
	Start   int64        `json:"start"` // Unix seconds
	Phases  []string     `json:"phases"`
	Keys    []string     `json:"keys"`
	Number  []int        `json:"number"`
	Class   []int        `json:"class"`
	Began   []int64      `json:"began"` // seconds after start
	Spent   [][]int      `json:"spent"` // by phase, seconds
	LeftOut int          `json:"left_out"`
	Marks   []markColumn `json:"marks"`
}

type markColumn struct {
	At   int64  `json:"at"`
	Kind string `json:"kind"`
	Text string `json:"text"`
}

type bestColumns struct {
	Rows     []int       `json:"rows"` // that raised the best so far
	Baseline *lineColumn `json:"baseline"`
	Verdict  *int        `json:"verdict"` // row of the trial that was confirmed
}

type lineColumn struct {
	Value column `json:"value"` // value, and its interval where it has one
	Label string `json:"label"`
}

type curveColumn struct {
	Number  int    `json:"number"`
	Label   string `json:"label"`
	Clients []int  `json:"clients"`
	Tokens  column `json:"tok_s"`
	Low     column `json:"low"`
	High    column `json:"high"`
	TTFT    column `json:"ttft_s"`
}

type areaColumns struct {
	Fractions column       `json:"fractions"`
	Pools     column       `json:"pools"`
	X         []int        `json:"x"`
	Y         []int        `json:"y"`
	Value     column       `json:"value"`
	Trials    []int        `json:"trials"`
	Best      []int        `json:"best"`
	Failures  []int        `json:"failures"`
	Worst     []int        `json:"worst"`
	Lines     []lineOnArea `json:"lines"`
	Chosen    *chosenPoint `json:"chosen"`
}

type lineOnArea struct {
	Kind  string `json:"kind"`
	Label string `json:"label"`
	X     column `json:"x"`
	Y     column `json:"y"`
}

type chosenPoint struct {
	At    column `json:"at"` // fraction, pool, learnt limit, margin in GiB
	Label string `json:"label"`
}

type knobColumns struct {
	Names   []string   `json:"names"`
	Values  [][]string `json:"values"`
	Index   [][]int16  `json:"index"` // by knob, then as Best and Rest
	Best    []int      `json:"best"`  // rows of the best tenth
	Rest    []int      `json:"rest"`
	LeftOut int        `json:"left_out"`
}

type matterColumns struct {
	Knob   []string `json:"knob"`
	Effect column   `json:"effect"`
	Low    column   `json:"low"`
	High   column   `json:"high"`
}

// Columns lays a study out for its charts. matter are the importances, nil when the models cannot tell.
func (d *Data) Columns(matter []tuner.Importance) *Columns {
	_, offset := time.Now().Zone()
	c := &Columns{
		Study: d.Record.Name, Simulated: d.Record.Simulated, Unit: d.Unit(), Offset: offset, Trials: len(d.Rows), Classes: Classes[:],
	}
	kept, left := d.kept()
	c.LeftOut = left
	at := make(map[int]int, len(kept)) // index of a row to its place among those sent
	for i, r := range kept {
		at[r] = i
		c.Rows.add(i, &d.Rows[r])
	}
	places := func(rows []int) []int {
		out := make([]int, len(rows))
		for i, r := range rows {
			out[i] = at[r]
		}
		return out
	}
	_, front := d.tradeoff()
	c.Tradeoff = places(front)
	c.Best.Rows = places(d.bestSteps())
	if l, ok := d.baselineLine(); ok {
		c.Best.Baseline = &lineColumn{Value: column{l.Value, l.Low, l.High}, Label: l.Label}
	}
	if v := d.Record.Verdict; v != nil && v.Trial > 0 {
		if i := slices.IndexFunc(kept, func(r int) bool { return d.Rows[r].Number == v.Trial }); i >= 0 {
			c.Best.Verdict = &i
		}
	}
	c.Night = d.nightColumns()
	for _, curve := range d.levelCurves() {
		c.Levels = append(c.Levels, curve.columns())
	}
	if a, ok := d.Area(); ok {
		c.Area = a.columns()
	}
	c.Knobs = d.knobColumns(places, matter)
	for _, m := range matter {
		c.Matter.Knob = append(c.Matter.Knob, m.Knob)
		c.Matter.Effect, c.Matter.Low, c.Matter.High = append(c.Matter.Effect, m.Effect), append(c.Matter.Low, m.Low), append(c.Matter.High, m.High)
	}
	return c
}

// Area is the map of memory with its lines; ok is false where no trial has a place on it.
func (d *Data) Area() (Area, bool) {
	if d.drawn != nil {
		return *d.drawn, true
	}
	a, ok := d.area()
	if ok {
		d.draw(&a)
		d.drawn = &a
	}
	return a, ok
}

// kept are the indexes of the rows that are sent, ascending: every failure, step of the best so far, unbeaten trial,
// baseline and confirmation launch, and so many of the others that lines through them look the same.
func (d *Data) kept() (kept []int, left int) {
	must := map[int]bool{}
	for _, i := range d.bestSteps() {
		must[i] = true
	}
	_, front := d.tradeoff()
	for _, i := range front {
		must[i] = true
	}
	var others []int
	var x, y []float64
	for i := range d.Rows {
		r := &d.Rows[i]
		switch {
		case must[i], failure(r.Class), r.Role != trial.RoleSearch:
			kept = append(kept, i)
		default:
			others, x = append(others, i), append(x, float64(r.Number))
			if math.IsNaN(r.Value) {
				y = append(y, 0)
			} else {
				y = append(y, r.Value)
			}
		}
	}
	picked := thin(x, y, maxPoints)
	for _, i := range picked {
		kept = append(kept, others[i])
	}
	slices.Sort(kept)
	return kept, len(others) - len(picked)
}

func (c *rowColumns) add(i int, r *Row) {
	c.Number, c.Class, c.Clients = append(c.Number, r.Number), append(c.Class, r.Class), append(c.Clients, r.Clients)
	c.Role = append(c.Role, slices.Index([]trial.Role{trial.RoleBaseline, trial.RoleSearch, trial.RoleConfirm}, r.Role))
	if r.Void {
		c.Void = append(c.Void, i)
	}
	c.Value, c.Low, c.High, c.TTFT = append(c.Value, r.Value), append(c.Low, r.Low), append(c.High, r.High), append(c.TTFT, r.TTFT)
}

func (d *Data) nightColumns() nightColumns {
	rows, left := d.night()
	n := nightColumns{LeftOut: left}
	for _, p := range phases {
		n.Phases, n.Keys = append(n.Phases, p.Word), append(n.Keys, p.Key)
	}
	from, to := nightTimes(rows)
	n.Start = from.Unix()
	n.Spent = make([][]int, len(phases))
	for _, r := range rows {
		n.Number, n.Class = append(n.Number, r.Number), append(n.Class, r.Class)
		n.Began = append(n.Began, int64(r.began().Sub(from).Seconds()))
		for p, s := range r.spent() {
			n.Spent[p] = append(n.Spent[p], int(math.Round(s)))
		}
	}
	for _, m := range d.marks() {
		if !m.At.Before(from) && !m.At.After(to.Add(time.Hour)) {
			n.Marks = append(n.Marks, markColumn{At: int64(m.At.Sub(from).Seconds()), Kind: m.Kind, Text: m.Text})
		}
	}
	n.Marks = n.Marks[max(0, len(n.Marks)-nightRows):]
	return n
}

func (c Curve) columns() curveColumn {
	out := curveColumn{Number: c.Row.Number, Label: c.Label}
	for _, l := range c.Levels {
		out.Clients = append(out.Clients, l.Clients)
		out.Tokens, out.Low, out.High, out.TTFT = append(out.Tokens, l.Tokens), append(out.Low, l.Low), append(out.High, l.High), append(out.TTFT, l.TTFT)
	}
	return out
}

func (a Area) columns() *areaColumns {
	out := &areaColumns{Fractions: a.Fractions, Pools: a.Pools, Lines: []lineOnArea{}} // a list where there is no line, too
	for _, c := range a.Cells {
		out.X, out.Y, out.Value = append(out.X, c.X), append(out.Y, c.Y), append(out.Value, c.Value)
		out.Trials, out.Best = append(out.Trials, c.Trials), append(out.Best, c.Best)
		out.Failures, out.Worst = append(out.Failures, c.Failures), append(out.Worst, c.Worst)
	}
	for _, l := range a.Lines {
		out.Lines = append(out.Lines, lineOnArea{Kind: l.Kind, Label: l.Label, X: l.X, Y: l.Y})
	}
	if p := a.Chosen; p != nil {
		out.Chosen = &chosenPoint{At: column{p.Fraction, p.Pool, p.Limit, p.Margin}, Label: p.Label}
	}
	return out
}

// knobLines are the rows that the chart of all knobs draws: of the best tenth and of the others, and how many of those
// with a value were left out.
func (d *Data) knobLines() (best, rest []int, left int) {
	tenth := d.bestTenth()
	isBest := make(map[int]bool, len(tenth))
	for _, i := range tenth {
		isBest[i] = true
	}
	kept, _ := d.kept()
	sent := make(map[int]bool, len(kept))
	var others []int
	for _, i := range kept {
		sent[i] = true
		if r := &d.Rows[i]; !isBest[i] && r.counts() && r.Role != trial.RoleConfirm {
			others = append(others, i)
		}
	}
	for _, i := range tenth {
		if sent[i] && len(best) < restLines {
			best = append(best, i)
		}
	}
	for _, i := range upTo(min(restLines, len(others)), len(others)) {
		rest = append(rest, others[i])
	}
	for i := range d.Rows {
		if r := &d.Rows[i]; r.counts() && r.Role != trial.RoleConfirm {
			left++
		}
	}
	return best, rest, left - len(best) - len(rest)
}

// knobColumns are the lines of the chart of all knobs, the knobs that matter most first.
func (d *Data) knobColumns(places func([]int) []int, matter []tuner.Importance) knobColumns {
	best, rest, left := d.knobLines()
	out := knobColumns{Best: places(best), Rest: places(rest), LeftOut: left}
	rows := slices.Concat(best, rest)
	for _, k := range d.knobOrder(matter) {
		out.Names, out.Values = append(out.Names, d.knobs.knobs[k].Name), append(out.Values, d.knobs.knobs[k].Values)
		index := make([]int16, len(rows))
		for i, r := range rows {
			index[i] = d.Rows[r].knobs[k]
		}
		out.Index = append(out.Index, index)
	}
	return out
}

// knobOrder are the knobs that differ, the most important first.
func (d *Data) knobOrder(matter []tuner.Importance) []int {
	order := upTo(len(d.knobs.knobs), len(d.knobs.knobs))
	place := func(k int) int {
		if i := slices.IndexFunc(matter, func(m tuner.Importance) bool { return m.Knob == d.knobs.knobs[k].Name }); i >= 0 {
			return i
		}
		return len(matter)
	}
	slices.SortStableFunc(order, func(a, b int) int { return place(a) - place(b) })
	return order
}
