package chart

import (
	"errors"
	"fmt"
	"math"

	"sgtune/sglang"
	"sgtune/tuner"
)

// lineSteps is how many points a curved line of the map has.
const lineSteps = 8

// draw adds the lines and the chosen point to a map. Each is arithmetic over what launches showed of their memory.
func (d *Data) draw(a *Area) {
	at := d.topConfig()
	a.At = d.chosenWords()
	p, ok := tuner.StoredProblem(d.Record, d.models, d.Events)
	frontier := tuner.NewFrontier(d.models)
	limit := nan
	if ok {
		predict := predictor(p, d)
		if predict != nil {
			a.tokenLines(predict, at)
			a.uselessLine(predict, at)
		}
		a.ramLine(p, at)
	}
	if f, found := d.learntLimit(frontier, a, at); found {
		limit = f
		a.Lines = append(a.Lines, AreaLine{Kind: "limit", Label: "learnt GPU limit " + fraction(f), X: []float64{f, f}, Y: a.sideY()})
	}
	a.choose(d, frontier, at, limit)
}

// predictor is the memory arithmetic of the newest launch that showed its memory, nil before.
func predictor(p tuner.Problem, d *Data) func(sglang.Config) sglang.Prediction {
	for i := len(d.models) - 1; i >= 0; i-- {
		if c, err := sglang.Calibrate(d.models[i].Memory); err == nil {
			return func(at sglang.Config) sglang.Prediction { return c.Predict(sglang.Merge(p.Flags, at)) }
		}
	}
	return nil
}

// sideX and sideY are the ends of the map, half a cell beyond the outermost middles.
func (a *Area) sideX() []float64 { return ends(a.Fractions, 0.01) }
func (a *Area) sideY() []float64 { return ends(a.Pools, 8) }

func ends(v []float64, single float64) []float64 {
	if len(v) == 1 {
		return []float64{v[0] - single/2, v[0] + single/2}
	}
	n := len(v)
	return []float64{v[0] - (v[1]-v[0])/2, v[n-1] + (v[n-1]-v[n-2])/2}
}

// tokenLines are where a rank holds a round number of KV tokens.
func (a *Area) tokenLines(predict func(sglang.Config) sglang.Prediction, at sglang.Config) {
	x, y := a.sideX(), a.sideY()
	tokensAt := func(f, gb float64) float64 {
		return predict(sglang.Merge(at, sglang.Config{memFraction: f, hicacheSize: math.Max(0, gb)})).Tokens.Mid
	}
	low, high := tokensAt(x[0], 0), tokensAt(x[1], 0)
	for _, n := range round(low, high) {
		line := AreaLine{Kind: "tokens", Label: tokens(n)}
		for _, gb := range y {
			f, ok := crossing(x[0], x[1], func(f float64) float64 { return tokensAt(f, gb) - n })
			if !ok {
				break
			}
			line.X, line.Y = append(line.X, f), append(line.Y, gb)
		}
		if len(line.X) == len(y) {
			a.Lines = append(a.Lines, line)
		}
	}
}

// uselessLine is where the host pool holds as many tokens as the GPU does: below it it adds nothing.
func (a *Area) uselessLine(predict func(sglang.Config) sglang.Prediction, at sglang.Config) {
	x, y := a.sideX(), a.sideY()
	line := AreaLine{Kind: "useless", Label: "host pool as large as the GPU's: adds nothing below"}
	for i := range lineSteps {
		f := x[0] + (x[1]-x[0])*float64(i)/(lineSteps-1)
		more := func(gb float64) float64 {
			p := predict(sglang.Merge(at, sglang.Config{memFraction: f, hicacheSize: gb}))
			return p.HostPoolTokens.Mid - p.Tokens.Mid
		}
		if gb, ok := crossing(0.1, math.Max(y[1], 1), more); ok {
			line.X, line.Y = append(line.X, f), append(line.Y, gb)
		}
	}
	if len(line.X) > 1 {
		a.Lines = append(a.Lines, line)
	}
}

// ramLine is the largest host pool that the host's RAM takes, by the rules of admission.
func (a *Area) ramLine(p tuner.Problem, at sglang.Config) {
	if p.Admit == nil || len(a.Pools) < 2 {
		return
	}
	refused := func(gb float64) float64 {
		err := p.Admit(sglang.Merge(sglang.Merge(p.Base, at), sglang.Config{hicacheSize: gb}))
		var why *tuner.Infeasible
		if errors.As(err, &why) && why.Rule == tuner.RuleHostRAM {
			return 1
		}
		return -1
	}
	top := a.Pools[len(a.Pools)-1]
	gb, ok := crossing(1, 4*top, refused)
	if !ok {
		return
	}
	a.Lines = append(a.Lines, AreaLine{Kind: "ram", Label: "host RAM limit " + Number(math.Floor(gb*10)/10) + " GB a rank", X: a.sideX(), Y: []float64{gb, gb}})
}

// learntLimit is the lowest fraction that is proven or suggested to run out of GPU memory.
func (d *Data) learntLimit(f *tuner.Frontier, a *Area, at sglang.Config) (float64, bool) {
	x := a.sideX()
	refused := func(fraction float64) float64 {
		err := f.Cautious(sglang.Merge(at, sglang.Config{memFraction: fraction}))
		var why *tuner.Infeasible
		if errors.As(err, &why) && (why.Rule == tuner.RuleFrontier || why.Rule == tuner.RuleLine) {
			return 1
		}
		return -1
	}
	return crossing(x[0], math.Min(x[1]+0.02, 0.995), refused)
}

// choose marks the configuration to look at.
func (a *Area) choose(d *Data, f *tuner.Frontier, at sglang.Config, limit float64) {
	top := d.top()
	if top == nil || !top.placed() {
		return
	}
	a.Chosen = &AreaPoint{Fraction: top.Fraction, Pool: top.Pool, Label: d.chosenWords(), Limit: limit, Margin: nan}
	if gib, ok := f.Margin(at); ok {
		a.Chosen.Margin = gib
	}
}

// chosenWords names the trial the lines are drawn for.
func (d *Data) chosenWords() string {
	top := d.top()
	switch v := d.Record.Verdict; {
	case top == nil:
		return "what runs today"
	case v != nil && v.Answer == "better" && v.Trial == top.Number:
		return fmt.Sprintf("the confirmed trial %d", top.Number)
	case v != nil && v.Trial == top.Number:
		return fmt.Sprintf("candidate trial %d", top.Number)
	}
	return fmt.Sprintf("trial %d", top.Number)
}

// crossing finds where a growing function passes 0 between two ends; ok is false where it does not.
func crossing(from, to float64, f func(float64) float64) (float64, bool) {
	if f(from) > 0 || f(to) < 0 {
		return 0, false
	}
	for range 40 {
		mid := (from + to) / 2
		if f(mid) > 0 {
			to = mid
		} else {
			from = mid
		}
	}
	return from, true
}

// round are three to seven round numbers between two.
func round(low, high float64) []float64 {
	if !(high > low) || high <= 0 {
		return nil
	}
	step := math.Pow(10, math.Floor(math.Log10((high-low)/2)))
	for (high-low)/step > 7 {
		if step *= 2; (high-low)/step > 7 {
			step *= 2.5
		}
	}
	var out []float64
	for n := math.Ceil(math.Max(low, step)/step) * step; n <= high && len(out) < 9; n += step {
		out = append(out, n)
	}
	return out
}
