package tuner

import (
	"errors"
	"slices"

	"sgtune/sglang"
	"sgtune/trial"
)

// Feasibility is the memory side of a study as a map: mem-fraction-static across, hicache-size up,
// every other knob at the chosen point. A page draws it, and says where no start is worth trying.
type Feasibility struct {
	At        sglang.Config       `json:"at"`        // the chosen point: what the other knobs are held at
	Fractions []float64           `json:"fractions"` // columns, ascending
	HostPools []float64           `json:"host_pools"`
	Cells     [][]FeasibilityCell `json:"cells"`    // by host pool, then by fraction
	Measured  []FeasibilityTrial  `json:"measured"` // where trials were
	Shown     int                 `json:"shown"`    // trials the models learnt from
}

// FeasibilityCell is one configuration of the map. Figures that are not known yet are absent.
type FeasibilityCell struct {
	Tokens  *float64 `json:"kv_tokens,omitempty"` // KV tokens of a rank
	FreeGiB *float64 `json:"free_gib,omitempty"`  // free GPU memory after graph capture
	OOM     *float64 `json:"oom,omitempty"`       // chance to run out of GPU memory, at start or under load
	Refused string   `json:"refused,omitempty"`   // rule of admission against it: "host RAM", "KV tokens", ...; "" = admitted
	Why     string   `json:"why,omitempty"`       // that rule's sentence, with its numbers
}

// FeasibilityTrial is a finished trial's place on the map, whatever its other knobs were.
type FeasibilityTrial struct {
	Number   int     `json:"number"`
	Fraction float64 `json:"fraction"`
	HostPool float64 `json:"host_pool"`
	Failed   string  `json:"failed,omitempty"` // outcome of one that failed by its own fault
}

// Axes of a map where the space does not have them.
const (
	mapColumns = 14    // fractions at most: a page is no wider
	mapReach   = 0.05  // fractions below and above the one in force
	mapStep    = 0.005 // between two of them
	mapRows    = 8     // host pools at most
)

// feasibility draws the map around a configuration of the space, the recommended one where at is nil. ok is false when no
// start has shown its memory yet: there is nothing to draw.
func (v *view) feasibility(at sglang.Config) (m Feasibility, ok bool) {
	p := v.problem
	shown := func(t *trial.Trial) bool { return t.Memory.Tokens > 0 }
	if !slices.ContainsFunc(p.History, shown) {
		return Feasibility{}, false
	}
	if at == nil {
		at = v.chosen()
	}
	axes := p.axes(at)
	if !axes.known { // fractions that the space does not have: the models must know of them
		p.Space = axes.extended(p.Space)
		if v, ok = reviewed(p); !ok {
			return Feasibility{}, false
		}
	}
	m = Feasibility{At: at, Fractions: axes.fractions, HostPools: axes.pools, Shown: v.learnt}
	for _, pool := range axes.pools {
		var row []FeasibilityCell
		for _, fraction := range axes.fractions {
			c := sglang.Merge(at, sglang.Config{memFraction: fraction})
			if axes.searched {
				c[hicacheSize] = pool
			}
			row = append(row, v.cell(c))
		}
		m.Cells = append(m.Cells, row)
	}
	for _, t := range p.History {
		fraction, known := v.code.valueOf(Dimension{Name: memFraction}, t.Config, t.Memory).(float64)
		if _, said := v.code.observe(p, t); !known || !said {
			continue
		}
		mark := FeasibilityTrial{Number: t.Number, Fraction: fraction, HostPool: hostPool(t.Config)}
		if blamed(t) {
			mark.Failed = string(t.Verdict.Outcome)
		}
		m.Measured = append(m.Measured, mark)
	}
	return m, true
}

// chosen is what the models would export, what runs today before anything has a value.
func (v *view) chosen() sglang.Config {
	if c, ok := v.recommended(); ok {
		return c
	}
	return v.problem.today()
}

// cell is one configuration of the map.
func (v *view) cell(c sglang.Config) FeasibilityCell {
	c = Canonical(c)
	point, _ := v.code.point(c, sglang.Observation{})
	p := v.search.Predict(point)
	cell := FeasibilityCell{Tokens: figure(p.Tokens), FreeGiB: figure(p.FreeGiB), OOM: figure(1 - p.Survive)}
	if v.problem.Admit == nil {
		return cell
	}
	if err := v.problem.Admit(sglang.Merge(v.problem.Base, c)); err != nil {
		cell.Refused, cell.Why = "other", err.Error()
		var why *Infeasible
		if errors.As(err, &why) {
			cell.Refused, cell.Why = why.Rule, why.Text
		}
	}
	return cell
}

// axes are the two sides of a map. Where host pools are not searched there is one row, as every trial
// has it.
type axes struct {
	fractions, pools []float64
	searched         bool // host pools are
	known            bool // the space has the fractions
}

// axes are those of the map around a configuration.
func (p Problem) axes(at sglang.Config) axes {
	a := axes{fractions: p.numbersOf(memFraction, mapColumns), pools: p.numbersOf(hicacheSize, mapRows)}
	if a.known = len(a.fractions) > 0; !a.known {
		in, _ := newCodedSpace(p).valueOf(Dimension{Name: memFraction}, at, sglang.Observation{}).(float64)
		a.fractions = around(in)
	}
	if a.searched = len(a.pools) > 0; !a.searched {
		a.pools = []float64{hostPool(sglang.Merge(p.Flags, at))}
	}
	return a
}

// extended is a space with the map's fractions in it, which are asked about as if it had them.
func (a axes) extended(s Space) Space {
	d := Dimension{Name: memFraction, Kind: Numeric}
	for _, f := range a.fractions {
		d.Values = append(d.Values, f)
	}
	s = slices.DeleteFunc(slices.Clone(s), func(d Dimension) bool { return d.Name == memFraction })
	return append(s, d)
}

// around are fractions near the one in force.
func around(in float64) []float64 {
	var out []float64
	for d := -mapReach; d < mapReach+mapStep/2; d += mapStep {
		if f := in + d; f > 0 && f < 1 {
			out = append(out, fourDigits(f))
		}
	}
	return out
}

// numbersOf are the values of a knob of the space, thinned to at most so many with both ends kept;
// nil where the space does not have it.
func (p Problem) numbersOf(name string, most int) []float64 {
	d, searched := p.Space.Dim(name)
	if !searched || d.Kind != Numeric {
		return nil
	}
	n := len(d.Values)
	var out []float64
	for i := range min(n, most) {
		at := i
		if n > most {
			at = i * (n - 1) / (most - 1)
		}
		if x, ok := d.Values[at].(float64); ok {
			out = append(out, x)
		}
	}
	return out
}
