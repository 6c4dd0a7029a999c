package tuner

import (
	"math"

	"sgtune/sglang"
)

// Learnt is what the models make of a study's history, for people to look at: `sgtune show`, a page. Its parts are
// absent while the models cannot tell.
type Learnt struct {
	Trials      int          `json:"trials"`                // trials they learnt from
	Importances []Importance `json:"importances,omitempty"` // the most important first
	Feasibility *Feasibility `json:"feasibility,omitempty"` // the map of memory around the recommended configuration
	Limit       *Limit       `json:"limit,omitempty"`       // the line of GPU memory there
}

// Limit is the line that was learnt for mem-fraction-static, every other knob at the recommended configuration: where
// a server runs out of GPU memory, at start or in one measuring time, with a chance of one half.
type Limit struct {
	Fraction  float64  `json:"fraction"`
	SD        float64  `json:"sd"`                   // half of where the chance goes from 16% to 84%; 0 where the space ends before
	MarginGiB *float64 `json:"margin_gib,omitempty"` // GPU memory that the recommended configuration leaves to the line, GiB; negative beyond it
}

// LookTrials is how many trials a look at a stored study learns from at most: its first and its newest. No night has as
// many; more would take longer than a page may.
const LookTrials = 1000

// Look is Learn of a stored study, the same for `sgtune show` and the page: h are its trials by number, or its first and
// its newest LookTrials - 1, and events its first. It is empty where the study's file cannot be understood any more.
func Look(r *Record, h History, events []Event) Learnt {
	if n := len(h); n > LookTrials {
		h = append(h[:1:1], h[n-LookTrials+1:]...)
	}
	p, ok := StoredProblem(r, h, events)
	if !ok {
		return Learnt{}
	}
	return Learn(p)
}

// Learn has the models look at a problem's history (StoredProblem's, of a stored study). All of it comes of one look,
// which takes up to a second of CPU at 1,000 trials and a tenth at 30.
func Learn(p Problem) Learnt {
	v, ok := reviewed(p)
	if !ok {
		return Learnt{}
	}
	out := Learnt{Trials: v.learnt, Importances: v.importances()}
	if m, ok := v.feasibility(nil); ok {
		out.Feasibility = &m
		out.Limit = v.limit(v.chosen())
	}
	return out
}

// limit is the line of GPU memory around a configuration, nil where the space does not reach it.
func (v *view) limit(at sglang.Config) *Limit {
	fractions := v.problem.numbersOf(memFraction, math.MaxInt)
	var odds, free []float64 // by fraction: log odds to run out of memory, and what is left of it
	for _, f := range fractions {
		point, _ := v.code.point(Canonical(sglang.Merge(at, sglang.Config{memFraction: f})), sglang.Observation{})
		p := v.search.Predict(point)
		oom := math.Min(math.Max(1-p.Survive, 1e-9), 1-1e-9)
		odds, free = append(odds, math.Log(oom/(1-oom))), append(free, p.FreeGiB)
	}
	line, ok := crossing(fractions, odds, 0)
	if !ok {
		return nil
	}
	out := &Limit{Fraction: fourDigits(line)}
	one := math.Log(0.84 / 0.16)
	low, lowOK := crossing(fractions, odds, -one)
	high, highOK := crossing(fractions, odds, one)
	if lowOK && highOK {
		out.SD = fourDigits((high - low) / 2)
	}
	if in, ok := v.code.valueOf(Dimension{Name: memFraction}, at, sglang.Observation{}).(float64); ok {
		out.MarginGiB = figure(between(fractions, free, in) - between(fractions, free, line))
	}
	return out
}

// crossing is where y, drawn through its points from the left, first comes from below a level up to it.
func crossing(x, y []float64, level float64) (at float64, ok bool) {
	for i := 1; i < len(x); i++ {
		if y[i-1] < level && y[i] >= level {
			return x[i-1] + (x[i]-x[i-1])*(level-y[i-1])/(y[i]-y[i-1]), true
		}
	}
	return 0, false
}

// between is y at a place between its points; beyond its ends it goes on as it does there.
func between(x, y []float64, at float64) float64 {
	i := 1
	for i < len(x)-1 && x[i] < at {
		i++
	}
	return y[i-1] + (y[i]-y[i-1])*(at-x[i-1])/(x[i]-x[i-1])
}
