package physics

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Search is the optimizer: its facts, what it has seen, and the models made of that.
type Search struct {
	l     *layout
	space Space
	facts Facts

	memory     *Memory
	risk       *Risk
	crashes    *Crashes
	failures   *Failures
	throughput *Throughput
	noise      *Noise
	residual   *Residual
	cost       *cost

	seen  []Observation
	tried map[string]bool
}

// New starts a search. The space needs at least one knob, each with at least one value, and
// facts.Start an index of each.
func New(space Space, facts Facts) *Search {
	l := newLayout(space, facts)
	s := &Search{l: l, space: space, facts: l.facts, tried: map[string]bool{}}
	s.memory = newMemory(l)
	s.risk = newRisk(l, s.memory, s.random(1))
	s.crashes = newCrashes(l)
	s.throughput = newThroughput(l, s.memory, s.random(2))
	s.noise = &Noise{}
	s.residual = newResidual(l, s.throughput, s.noise)
	s.failures = newFailures(l, s.residual.k)
	s.cost = newCost(l)
	return s
}

// random is a source that depends on the seed, its purpose and how much was seen.
func (s *Search) random(purpose uint64) *rand.Rand {
	return rand.New(rand.NewPCG(s.facts.Seed, purpose<<32|uint64(len(s.seen))))
}

// Observe takes what a trial showed, in the order of the trials.
func (s *Search) Observe(o Observation) {
	o = o.plausible()
	o.Point = s.space.Mask(o.Point, s.l.home)
	o.Frac = clamp(o.Frac, 0, 1)
	if math.IsNaN(o.Frac) {
		o.Frac = 1
	}
	s.seen = append(s.seen, o)
	s.tried[key(o.Point)] = true
	tokens, free, sd := s.memory.Predict(o.Point)
	survive, _ := s.risk.Predict(o.Point, free, sd, math.Max(o.Frac, .3))
	survive *= s.memory.Start(tokens, free, sd)
	s.l.host.Observe(s.l.pool(o.Point), o.Status)
	s.memory.Observe(o)
	s.risk.Observe(o)
	if s.failures.blind {
		survive = blindSurvival
	}
	s.failures.Observe(o, survive)
	s.crashes.Observe(o)
	s.cost.Observe(o)
	s.throughput.Observe(o)
	s.residual.Observe(o)
}

// Renew replaces the facts that only the next suggestion depends on: what host pools may take, the budget
// and what may be launched. Nothing was learnt by them.
func (s *Search) Renew(f Facts) {
	s.facts.HostGB, s.facts.Budget, s.facts.Admit = f.HostGB, f.Budget, f.Admit
	s.l.facts.HostGB, s.l.facts.Budget, s.l.facts.Admit = f.HostGB, f.Budget, f.Admit
}

// Seen is how many observations were taken.
func (s *Search) Seen() int { return len(s.seen) }

// Prediction is what the models say of a point.
type Prediction struct {
	Mean, Spread float64 // objective: median and relative standard deviation
	Start        float64 // chance that there is GPU memory to start
	Survive      float64 // chance that it has it and survives one full measuring time under load
	Crash        float64 // chance that it fails to start for another reason than memory
	Tokens       float64 // KV tokens, Unknown before any log or fact
	FreeGiB      float64 // free GPU memory after graphs, Unknown before any log or fact
	FreeSD       float64 // its standard deviation

	logMean float64
}

// Predict is what the models say of a point now.
func (s *Search) Predict(p Point) Prediction { return s.predict(p, 1) }

// predict is Predict for surviving so many full measuring times.
func (s *Search) predict(p Point, windows float64) Prediction {
	p = s.space.Mask(p, s.l.home)
	var out Prediction
	out.Tokens, out.FreeGiB, out.FreeSD = s.memory.Predict(p)
	out.Start = s.memory.Start(out.Tokens, out.FreeGiB, out.FreeSD)
	out.Survive = s.survive(p, out.Tokens, out.FreeGiB, out.FreeSD, windows)
	out.Start = math.Max(out.Start, out.Survive)
	out.Crash = 1 - s.crashes.Predict(p)
	out.logMean, out.Spread = s.residual.Predict(p, out.Tokens)
	out.Mean = math.Exp(clamp(out.logMean, -200, 200))
	return out
}

// survive is the chance to start and to survive so many full measuring times, as far as GPU memory
// goes.
func (s *Search) survive(p Point, tokens, freeGiB, sdGiB, windows float64) float64 {
	if s.failures.blind {
		return math.Pow(s.failures.Predict(p, blindSurvival), windows)
	}
	load, _ := s.risk.Predict(p, freeGiB, sdGiB, windows)
	return s.failures.Predict(p, load*s.memory.Start(tokens, freeGiB, sdGiB))
}

func key(p Point) string {
	b := make([]byte, 0, 4*len(p))
	for _, v := range p {
		b = append(b, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
	}
	return string(b)
}

// measured are the distinct points with a value, oldest first.
func (s *Search) measured(full bool) []Point {
	var out []Point
	for _, o := range s.seen {
		if o.measured() && (!full || o.Status == OK) && !slices.ContainsFunc(out, o.Point.Equal) {
			out = append(out, o.Point)
		}
	}
	return out
}

// left is how many trials of the budget remain; many when it is unknown.
func (s *Search) left() int {
	if s.facts.Budget <= 0 {
		return 1 << 20
	}
	return max(0, s.facts.Budget-len(s.seen))
}
