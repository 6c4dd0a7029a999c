package tuner

import (
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"

	"sgtune/sglang"
)

// Dimension is one knob of the search space: an ordered list of values (a range becomes its grid).
type Dimension struct {
	Name   string
	Values []any // float64, string or bool; numbers ascending
	Kind   DimensionKind
	Log    bool
}

// DimensionKind tells samplers how values relate.
type DimensionKind string

// Kinds of dimensions.
const (
	Numeric     DimensionKind = "numeric"     // ordered numbers
	Categorical DimensionKind = "categorical" // no order
)

// Index is the position of v among the dimension's values, -1 when it is not one of them. Numbers
// are compared to a billionth, so that 0.85 computed elsewhere is found.
func (d Dimension) Index(v any) int {
	for i, w := range d.Values {
		if sameValue(v, w) {
			return i
		}
	}
	return -1
}

// Nearest is the position of the number closest to x; 0 for a dimension without numbers.
func (d Dimension) Nearest(x float64) int {
	best, gap := 0, math.Inf(1)
	for i, w := range d.Values {
		if f, ok := w.(float64); ok && math.Abs(f-x) < gap {
			best, gap = i, math.Abs(f-x)
		}
	}
	return best
}

// At maps a point of [0,1) to a value by equal cells; 1 and above give the last value.
func (d Dimension) At(unit float64) any { return d.Values[d.Cell(unit)] }

// Cell is the position At maps unit to.
func (d Dimension) Cell(unit float64) int {
	n := len(d.Values)
	if !(unit > 0) { // NaN too
		return 0
	}
	return int(math.Min(unit*float64(n), float64(n-1)))
}

func sameValue(a, b any) bool {
	x, ok1 := a.(float64)
	y, ok2 := b.(float64)
	if ok1 && ok2 {
		return math.Abs(x-y) <= 1e-9*math.Max(1, math.Abs(y))
	}
	return !ok1 && !ok2 && sglang.FormatValue(a) == sglang.FormatValue(b)
}

// Space is the search space in file order.
type Space []Dimension

// Size is the number of configurations in the space.
func (s Space) Size() int {
	n := 1
	for _, d := range s {
		if len(d.Values) > 0 && n > math.MaxInt/len(d.Values) {
			return math.MaxInt
		}
		n *= len(d.Values)
	}
	return n
}

// Names lists the knobs in file order.
func (s Space) Names() []string {
	names := make([]string, len(s))
	for i, d := range s {
		names[i] = d.Name
	}
	return names
}

// Dim returns a knob's dimension; ok is false when the space does not have it.
func (s Space) Dim(name string) (d Dimension, ok bool) {
	for _, d := range s {
		if d.Name == name {
			return d, true
		}
	}
	return Dimension{}, false
}

// At maps a point of the unit cube, one coordinate a dimension in file order, to a configuration
// by equal cells. Dead knobs are left out (see Canonical).
func (s Space) At(unit []float64) sglang.Config {
	index := make([]int, len(s))
	for i, d := range s {
		if i < len(unit) {
			index[i] = d.Cell(unit[i])
		}
	}
	return s.Config(index)
}

// Config is the configuration at the given position of each dimension, without dead knobs.
func (s Space) Config(index []int) sglang.Config {
	c := sglang.Config{}
	for i, d := range s {
		c[d.Name] = d.Values[index[i]]
	}
	return Canonical(c)
}

// Index is the position of a configuration in each dimension; ok is false when it lies outside
// the space. A knob the configuration lacks because it is dead, and a hicache-size it lacks
// because the cache is off, count as the first value and as 0.
func (s Space) Index(c sglang.Config) (index []int, ok bool) {
	index = make([]int, len(s))
	_, sized := c[hicacheSize]
	off := hicacheOff(c) || !sized
	for i, d := range s {
		v, has := c[d.Name]
		switch {
		case has:
			index[i] = d.Index(v)
		case d.Name == hicacheSize:
			index[i] = d.Index(0.0)
		case deadWithoutHicache(d.Name) && off:
			index[i] = 0
		default:
			return nil, false
		}
		if index[i] < 0 {
			return nil, false
		}
	}
	return index, true
}

// Key is the canonical text of a configuration: two configurations that differ only in dead knobs
// have the same one.
func (s Space) Key(c sglang.Config) string { return Key(c) }

// All yields every configuration of the space, dead duplicates included once each, in file order
// with the last dimension running fastest.
func (s Space) All() iter.Seq[sglang.Config] {
	return func(yield func(sglang.Config) bool) {
		if s.Size() == 0 {
			return
		}
		index := make([]int, len(s))
		for {
			if s.living(index) && !yield(s.Config(index)) {
				return
			}
			i := len(s) - 1
			for ; i >= 0; i-- {
				if index[i]++; index[i] < len(s[i].Values) {
					break
				}
				index[i] = 0
			}
			if i < 0 {
				return
			}
		}
	}
}

// living reports whether index stands for itself: among points that differ only in dead knobs the
// one with the first value of each does.
func (s Space) living(index []int) bool {
	off := false
	for i, d := range s {
		if d.Name == hicacheSize && sameValue(d.Values[index[i]], 0.0) {
			off = true
		}
	}
	if !off {
		return true
	}
	for i, d := range s {
		if deadWithoutHicache(d.Name) && index[i] > 0 {
			return false
		}
	}
	return true
}

const (
	hicacheSize = "hicache-size"
	hicacheOn   = "enable-hierarchical-cache"
	kvDtype     = "kv-cache-dtype"
)

func deadWithoutHicache(name string) bool {
	return name != hicacheSize && strings.HasPrefix(name, "hicache-")
}

// hicacheOff reports whether a configuration itself says that the hierarchical cache is off.
func hicacheOff(c sglang.Config) bool {
	size, ok := c.Float(hicacheSize)
	return ok && size <= 0
}

// Canonical returns c without the knobs that do nothing in it: with hicache-size 0 every other
// hicache knob is ignored by SGLang.
func Canonical(c sglang.Config) sglang.Config {
	out := c.Clone()
	if hicacheOff(c) {
		for name := range c {
			if deadWithoutHicache(name) {
				delete(out, name)
			}
		}
	}
	return out
}

// Key is the text by which two configurations are the same launch: dead knobs and a hicache-size
// of 0 (the same as none) are left out.
func Key(c sglang.Config) string {
	out := Canonical(c)
	if hicacheOff(out) {
		delete(out, hicacheSize)
	}
	return out.Key()
}

// maxGrid is the largest number of values a range may have.
const maxGrid = 10_000

// grid lists min, min+step, ... up to max, each exactly as its decimal text reads: 0.815, never
// 0.8150000000000001.
func grid(low, high, step float64) ([]any, error) {
	n := math.Floor((high-low)/step + 1e-6)
	if n+1 > maxGrid {
		return nil, fmt.Errorf("has %.0f values, more than %d", n+1, maxGrid)
	}
	places := max(decimals(low), decimals(step))
	values := make([]any, 0, int(n)+1)
	for i := range int(n) + 1 {
		text := strconv.FormatFloat(low+float64(i)*step, 'f', places, 64)
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("value %d of the range: %w", i, err)
		}
		values = append(values, v)
	}
	return values, nil
}

// decimals counts the digits after the point of a number's shortest text.
func decimals(x float64) int {
	_, frac, _ := strings.Cut(strconv.FormatFloat(x, 'f', -1, 64), ".")
	return len(frac)
}
