package tuner

import (
	"math"
	"slices"

	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner/physics"
)

// codedSpace is a study's space in the words of the search engine (tuner/physics), and the way back.
// The engine knows positions in lists of numbers; names and values stay here.
type codedSpace struct {
	space Space
	base  sglang.Config // laid under every configuration
	knobs []codedKnob
	coded physics.Space
	start physics.Point

	running sglang.Observation // what the newest launch of the baseline says of itself; zero before
	auto    sglang.Auto        // what SGLang chooses by itself, before a log tells
	paired  float64            // share of a launch's own standard error that replaying the same rows leaves
}

// codedKnob is one dimension. Its places may be more than the dimension's values: a value that a trial
// had outside of the space (what runs today often is) has a place of its own, so that what was
// measured there is learnt there and nowhere else.
type codedKnob struct {
	dim     Dimension
	whole   float64   // chunked-prefill-size alone: what -1 amounts to, tokens
	numbers []float64 // by place: the value, or the place itself for choices
	launch  []int     // by place: position among the dimension's values; -1 = not to be launched
	texts   []string  // by place: the value as a log or a file spells it
}

// noLaunch is a place of a codedKnob that has no value of the dimension to be launched with.
const noLaunch = -1

// manyValues is from when on a list of numbers is a range, and the value next to one outside of it is
// nearly the same.
const manyValues = 6

// newCodedSpace codes the space of a problem. What no trial of history and no flag says is taken as
// SGLang's default.
func newCodedSpace(p Problem) *codedSpace {
	s := &codedSpace{space: p.Space, base: p.Base, auto: sglang.AutoDefaults(p.autoInput()), paired: pairedShare(firstOf(p.History))}
	for _, t := range p.History {
		if t.Memory.Fraction > 0 && sameConfig(t.Config, p.Baseline) {
			s.running = t.Memory
		}
	}
	today := p.today()
	for _, d := range p.Space {
		k := newCodedKnob(d, longestPrompt(p.Workload))
		k.add(s.valueOf(d, today, s.running))
		for _, t := range p.History {
			k.add(s.valueOf(d, t.Config, t.Memory))
		}
		k.adopt(p.History)
		s.knobs = append(s.knobs, k)
	}
	for i := range s.knobs {
		s.coded = append(s.coded, s.engineKnob(i))
	}
	s.start, _ = s.point(today, s.running)
	return s
}

func newCodedKnob(d Dimension, longest int) codedKnob {
	k := codedKnob{dim: d}
	for i, v := range d.Values {
		k.numbers, k.launch, k.texts = append(k.numbers, float64(i)), append(k.launch, i), append(k.texts, sglang.FormatValue(v))
		if x, ok := v.(float64); ok && d.Kind == Numeric {
			k.numbers[i] = x
		}
	}
	if len(d.Values) == 2 && d.Values[0] == true && d.Values[1] == false { // off is 0, on is 1
		slices.Reverse(k.launch)
		slices.Reverse(k.texts)
	}
	if d.Name == chunkedSize && d.Kind == Numeric {
		k.whole = max(usualPrefill, float64(longest), 1+slices.Max(k.numbers))
		if k.numbers[0] < 0 { // the whole prompt at once is the largest
			k.numbers[0] = k.whole
			k.numbers, k.launch, k.texts = rotate(k.numbers), rotate(k.launch), rotate(k.texts)
		}
	}
	return k
}

// usualPrefill is SGLang's max-prefill-tokens: how many prompt tokens one step takes without chunks.
// So chunked-prefill-size -1 amounts to a step's worth of prompts, or the longest one in one piece.
const usualPrefill = 16_384

func rotate[T any](list []T) []T { return append(list[1:len(list):len(list)], list[0]) }

// add gives a value outside of the dimension a place; nil (not known, or without effect) has none.
func (k *codedKnob) add(v any) {
	if v == nil || k.place(v) >= 0 {
		return
	}
	text := sglang.FormatValue(v)
	x, number := v.(float64)
	if k.dim.Kind != Numeric {
		k.numbers, k.launch, k.texts = append(k.numbers, float64(len(k.numbers))), append(k.launch, noLaunch), append(k.texts, text)
		return
	}
	if !number {
		return
	}
	if x < 0 && k.whole > 0 {
		x = k.whole
	}
	at, _ := slices.BinarySearch(k.numbers, x)
	k.numbers, k.launch, k.texts = slices.Insert(k.numbers, at, x), slices.Insert(k.launch, at, k.neighbour(x)), slices.Insert(k.texts, at, text)
}

// neighbour is the position of the dimension's value that is launched for a number outside of it,
// where that is nearly the same; for the memory fraction never a larger one, if there is a smaller.
func (k *codedKnob) neighbour(x float64) int {
	role := physics.RoleOf(k.dim.Name)
	if role == physics.RoleOther && len(k.dim.Values) < manyValues {
		return noLaunch
	}
	at := k.dim.Nearest(x)
	if v, ok := k.dim.Values[at].(float64); ok && role == physics.RoleMemFraction && v > x && at > 0 {
		at--
	}
	return at
}

// adopt gives places that have nothing to be launched with the first value of the dimension that came
// up in a trial: close to what runs today as far as it can be, and no untried choice is taken on trust.
func (k *codedKnob) adopt(history []*trial.Trial) {
	ran := noLaunch
	for _, t := range history {
		if i := k.dim.Index(t.Config[k.dim.Name]); ran == noLaunch && i >= 0 && t.Startup > 0 && t.Void == "" {
			ran = i
		}
	}
	for at, i := range k.launch {
		if i == noLaunch {
			k.launch[at] = ran
		}
	}
}

// place is where a value is coded, -1 for nowhere.
func (k *codedKnob) place(v any) int {
	if i := k.dim.Index(v); i >= 0 { // a number computed elsewhere may differ in its last digit
		v = k.dim.Values[i]
	}
	return slices.Index(k.texts, sglang.FormatValue(v))
}

func (s *codedSpace) engineKnob(i int) physics.Knob {
	k := &s.knobs[i]
	out := physics.Knob{Name: k.dim.Name, Role: physics.RoleOf(k.dim.Name), Kind: physics.Ordered, Values: k.numbers, Needs: -1}
	if k.dim.Kind != Numeric {
		out.Kind = physics.Unordered
		if out.Role != physics.RoleKVDtype {
			out.Role = physics.RoleOther // physics counts in numbers
		}
	}
	out.Log = k.dim.Log && k.numbers[0] > 0
	if deadWithoutHicache(k.dim.Name) {
		for j, d := range s.space {
			if d.Name == hicacheSize && d.Kind == Numeric {
				out.Needs = j
			}
		}
	}
	return out
}

// valueOf is the value of a knob in a launch: as configured, else as its log says, else SGLang's own;
// nil where it has no effect or nobody knows.
func (s *codedSpace) valueOf(d Dimension, c sglang.Config, log sglang.Observation) any {
	name := d.Name
	v, has := c[name]
	_, sized := c.Float(hicacheSize)
	switch {
	case has && (name != kvDtype || v != "auto" || d.Index(v) >= 0):
		return v
	case name == hicacheSize:
		return 0.0
	case deadWithoutHicache(name) && (!sized || hicacheOff(c)):
		return nil
	}
	if v := s.ofLog(name, log); v != nil {
		return v
	}
	if v := s.ofLog(name, s.running); v != nil {
		return v
	}
	return s.usual(name)
}

// ofLog is what a start-up log says of a flag that was not given.
func (s *codedSpace) ofLog(name string, o sglang.Observation) any {
	switch {
	case name == memFraction && o.Fraction > 0:
		return o.Fraction
	case name == chunkedSize && o.ChunkedPrefill != 0:
		return float64(o.ChunkedPrefill)
	case name == maxRunning && o.MaxRunning > 0:
		return float64(o.MaxRunning)
	case name == pageSize && o.PageSize > 0:
		return float64(o.PageSize)
	case name == kvDtype && o.KVDtype == "torch.bfloat16":
		return "bf16"
	case name == kvDtype && o.KVDtype != "":
		return o.KVDtype
	}
	return nil
}

// usual is what SGLang takes where nothing is given, nil where that is not known.
func (s *codedSpace) usual(name string) any {
	switch name {
	case memFraction:
		return s.auto.Fraction
	case chunkedSize:
		return float64(s.auto.Chunk)
	case graphBatch, graphDecode:
		return float64(s.auto.GraphMax)
	}
	k, _ := sglang.Lookup(name)
	switch v := k.Default.(type) {
	case int:
		return float64(v)
	case float64, string, bool:
		return v
	}
	if k.Kind == sglang.KindBool {
		return false
	}
	if d, _ := s.space.Dim(name); d.Kind == Categorical {
		return notSet
	}
	return nil
}

// notSet stands for a choice that was left to the server, where its own is not known.
const notSet = "not set"

// point codes a configuration. moved counts the knobs whose value is not known or has no place: they
// stand at the nearest, or where the start has them.
func (s *codedSpace) point(c sglang.Config, log sglang.Observation) (p physics.Point, moved int) {
	p = make(physics.Point, len(s.knobs))
	for i := range s.knobs {
		k := &s.knobs[i]
		v := s.valueOf(k.dim, c, log)
		at := -1
		if v != nil {
			at = k.place(v)
		}
		if at < 0 {
			at = s.standIn(i)
			if x, ok := v.(float64); ok && k.dim.Kind == Numeric {
				at = s.coded[i].Nearest(x)
			}
			if v != nil || !deadWithoutHicache(k.dim.Name) {
				moved++
			}
		}
		p[i] = at
	}
	return p, moved
}

// standIn is where a knob without a known value stands: as at the start, at SGLang's default, else at
// its first value.
func (s *codedSpace) standIn(i int) int {
	if s.start != nil {
		return s.start[i]
	}
	k := &s.knobs[i]
	if v := s.usual(k.dim.Name); v != nil && k.dim.Index(v) >= 0 {
		return k.place(v)
	}
	return k.place(k.dim.Values[0])
}

// config is the configuration that is launched for a point; ok is false when a living knob stands
// where nothing is to be launched.
func (s *codedSpace) config(p physics.Point) (c sglang.Config, ok bool) {
	index := make([]int, len(s.knobs))
	for i := range s.knobs {
		at := s.knobs[i].launch[p[i]]
		if at == noLaunch {
			if s.coded.Alive(p, i) {
				return nil, false
			}
			at = 0
		}
		index[i] = at
	}
	return Canonical(sglang.Merge(s.base, s.space.Config(index))), true
}

// same reports whether two points are the same launch: knobs that do nothing do not count.
func (s *codedSpace) same(a, b physics.Point) bool {
	return s.coded.Mask(a, s.start).Equal(s.coded.Mask(b, s.start))
}

// knob is a coded knob by its name, nil when there is none.
func (s *codedSpace) knob(name string) *codedKnob {
	for i := range s.knobs {
		if s.knobs[i].dim.Name == name {
			return &s.knobs[i]
		}
	}
	return nil
}

// shown is the value at a place for a person or a page: of the dimension, else as it was seen.
func (k *codedKnob) shown(place int) any {
	if i := k.launch[place]; i != noLaunch && sglang.FormatValue(k.dim.Values[i]) == k.texts[place] {
		return k.dim.Values[i]
	}
	if k.dim.Kind == Numeric {
		return k.numbers[place]
	}
	return k.texts[place]
}

// cellScale is the size of a KV token for each place of the KV-dtype knob relative to bf16, nil
// without such a knob. auto counts as bf16, which is what it is but for checkpoints that say so.
func (s *codedSpace) cellScale() []float64 {
	i := s.coded.Role(physics.RoleKVDtype)
	if i < 0 {
		return nil
	}
	scale := make([]float64, len(s.knobs[i].texts))
	for j, text := range s.knobs[i].texts {
		scale[j] = 1
		if bytes, ok := sglang.DtypeBytes(text); ok {
			scale[j] = bytes / 2
		}
	}
	return scale
}

// finite is a figure of a log or a report; one that was not there is unknown to the engine.
func finite(v float64) float64 {
	if v <= 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return physics.Unknown
	}
	return v
}
