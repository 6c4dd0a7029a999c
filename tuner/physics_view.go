package tuner

import (
	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner/physics"
)

// view is what the models of the physics sampler make of a history: what each configuration is worth
// by everything that was measured, and what it risks. It does not matter who proposed the trials.
type view struct{ *model }

// standing is what the models believe of one configuration.
type standing struct {
	Mean    float64 // posterior median of the objective, in its own unit
	Spread  float64 // relative standard deviation of Mean
	Survive float64 // chance that it has the GPU memory to start and survives one full measuring time
	Crash   float64 // chance that it does not start for another reason than memory
	Tokens  float64 // KV tokens, NaN before the first log
	FreeGiB float64 // free GPU memory after graphs, NaN before
	FreeSD  float64 // its standard deviation
}

// physicsView builds the view of p.History that a study decides by; whoever must not see some trials leaves them
// out. ok is false when the space is empty or no trial said anything. Of a history that is longer than any night's
// it is the reviewed one: what is decided does not hang on the difference, and it takes a second, not a quarter of a
// minute.
func physicsView(p Problem) (v *view, ok bool) {
	if len(p.History) > longHistory {
		return reviewed(p)
	}
	return viewBy((&keptEngine{}).of, p)
}

// longHistory is how many trials a night may have at most to be learnt one after the other for one look.
const longHistory = 100

// reviewed is the view for people to look at: of all of the history at once.
func reviewed(p Problem) (v *view, ok bool) { return viewBy(physics.Review, p) }

func viewBy(engine func(physics.Space, physics.Facts, []physics.Observation) *physics.Search, p Problem) (v *view, ok bool) {
	if len(p.Space) == 0 || p.Space.Size() == 0 {
		return nil, false
	}
	m := modelBy(engine, p)
	return &view{m}, m.learnt > 0
}

// of is the standing of a configuration. Its knobs that have no place in the space stand at the nearest
// value; ok is false where that says nothing: flags outside of the space differ.
func (v *view) of(c sglang.Config) (s standing, ok bool) {
	if v.code.foreign(&trial.Trial{Config: c}) && !sameConfig(c, v.problem.Baseline) {
		return standing{}, false
	}
	point, _ := v.code.point(c, sglang.Observation{})
	return v.at(point), true
}

func (v *view) at(point physics.Point) standing {
	p := v.search.Predict(point)
	return standing{
		Mean: p.Mean / v.ratio, Spread: p.Spread, Survive: p.Survive, Crash: p.Crash,
		Tokens: p.Tokens, FreeGiB: p.FreeGiB, FreeSD: p.FreeSD,
	}
}

// recommended is the configuration to export by the models alone, as it was launched: measured, away
// from the memory line, better than what runs today with some confidence, else what runs today. ok is
// false when nothing has a value.
func (v *view) recommended() (sglang.Config, bool) {
	point, ok := v.search.Recommend()
	if !ok {
		return nil, false
	}
	if t := v.trialAt(point); t != nil {
		return t.Config, true
	}
	return v.code.config(point)
}

// Importance is how much one knob matters around the best configuration, with its uncertainty.
type Importance struct {
	Knob   string  `json:"knob"`
	Effect float64 `json:"effect"`      // gain between the worst and the best of its values, the other knobs at the best configuration (0.05 = 5%)
	Low    float64 `json:"effect_low"`  // 10th percentile of Effect
	High   float64 `json:"effect_high"` // 90th percentile
	Best   any     `json:"best"`        // its best value there
}

// importances are the knobs of the space by what they matter, the most important first, as the history shows them; nil
// before anything has a value. A knob whose 10th percentile is 0 may not matter at all.
func (v *view) importances() []Importance {
	var out []Importance
	for _, i := range v.search.Importances() {
		k := v.code.knob(i.Name)
		if k == nil || len(k.dim.Values) < 2 || figure(i.Effect) == nil || figure(i.Low) == nil || figure(i.Top) == nil {
			continue
		}
		out = append(out, Importance{Knob: i.Name, Effect: i.Effect, Low: i.Low, High: i.Top, Best: k.shown(i.Best)})
	}
	return out
}
