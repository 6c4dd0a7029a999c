package tuner

import (
	"maps"
	"math"
	"slices"
	"time"

	"sgtune/sglang"
	"sgtune/trial"
)

// estimate is what is believed of a configuration's value before it is launched again.
type estimate struct {
	Mean, SD float64 // of log value
	Survive  float64 // chance that it starts and survives one measuring time; 1 where nothing tells
}

// standings are the estimates of all configurations that were measured, by their keys.
//
// The highest of many noisy values is too high (the winner's curse), so configurations are compared by what is
// expected of them. With a physics sampler's models at hand that is their posterior; else each value is shrunk
// towards the mean of all, by how much configurations differ beside the noise (Efron and Morris, "Stein's
// estimation rule and its competitors", JASA 68, 1973).
type standings struct {
	of    map[string]estimate
	noise Noise
	drift Drift

	objective Objective // of the study, for words; the zero value is output tok/s
}

// judged are the standings by the loop's models. Confirmation launches do not count: every choice made by them
// is made before.
func (l *Loop) judged(h History) standings {
	h = h.where(func(t *trial.Trial) bool { return t.Role != trial.RoleConfirm })
	s := standingsOf(h)
	s.objective = l.Study.Objective
	even := undrifted(h, s.drift)
	v, ok := physicsView(l.problem(even, nil))
	if !ok {
		return s
	}
	for _, t := range even {
		if e, ok := v.of(t.Config); counts(t) && ok && e.Mean > 0 && e.Spread > 0 {
			s.of[Key(t.Config)] = estimate{Mean: math.Log(e.Mean), SD: e.Spread, Survive: e.Survive}
		}
	}
	s.doubtDrift(h)
	return s
}

// fieldPrior is how much configurations differ before anything was measured, relative.
const fieldPrior = 0.1

// standingsOf are the standings without any model of what knobs do.
func standingsOf(h History) standings {
	s := standings{of: map[string]estimate{}, drift: driftOf(h)}
	s.noise = noiseOf(h, s.drift)
	values := map[string][]float64{}
	for _, t := range undrifted(h, s.drift) {
		if counts(t) && *t.Value > 0 {
			values[Key(t.Config)] = append(values[Key(t.Config)], math.Log(*t.Value))
		}
	}
	launch := s.noise.Launch * s.noise.Launch
	var means []float64
	noise := 0.0
	for _, key := range slices.Sorted(maps.Keys(values)) {
		mean, _ := meanAndSpread(values[key])
		means = append(means, mean)
		noise += launch / float64(len(values[key])) / float64(len(values))
	}
	middle, sd := meanAndSpread(means)
	n := float64(len(means))
	spread := (priorWeight*fieldPrior*fieldPrior + (n-1)*math.Max(0, sd*sd-noise)) / (priorWeight + n - 1)
	for key, x := range values {
		mean, _ := meanAndSpread(x)
		known, believed := float64(len(x))/launch, 1/spread
		s.of[key] = estimate{Mean: (known*mean + believed*middle) / (known + believed), SD: 1 / math.Sqrt(known+believed), Survive: 1}
	}
	s.doubtDrift(h)
	return s
}

// doubtDrift adds what the drift's own uncertainty does to values of long ago.
func (s standings) doubtDrift(h History) {
	if !s.drift.Found {
		return
	}
	last, newest := lastEnd(h), map[string]time.Time{}
	for _, t := range h {
		if counts(t) {
			newest[Key(t.Config)] = t.EndedAt
		}
	}
	for key, at := range newest {
		if e, ok := s.of[key]; ok {
			e.SD = math.Hypot(e.SD, s.drift.SD*last.Sub(at).Hours())
			s.of[key] = e
		}
	}
}

// best is the highest estimate, ok false without any.
func (s standings) best() (best estimate, ok bool) {
	for _, key := range slices.Sorted(maps.Keys(s.of)) {
		if e := s.of[key]; !ok || e.Mean > best.Mean {
			best, ok = e, true
		}
	}
	return best, ok
}

// survivals are how many measuring times a candidate's value is weighed by. It has to survive more than that to
// be exported, but the confirmation's own launches show that, and one that fails there is out.
const survivals = 2

// worth is what a configuration is expected to be worth to its user: its value, less for each measuring time
// that it may not survive.
func (e estimate) worth() float64 {
	return e.Mean + survivals*math.Log(math.Max(e.Survive, 1e-6))
}

// gain is what is expected of a configuration beside the baseline (relative), and the chance that it is better
// at all; ok is false when one of them was never measured.
func (s standings) gain(c, baseline sglang.Config) (gain, chance float64, ok bool) {
	a, okA := s.of[Key(baseline)]
	b, okB := s.of[Key(c)]
	if !okA || !okB {
		return 0, 0, false
	}
	d := b.Mean - a.Mean
	return math.Expm1(d), 0.5 * math.Erfc(-d/math.Hypot(a.SD, b.SD)/math.Sqrt2), true
}
