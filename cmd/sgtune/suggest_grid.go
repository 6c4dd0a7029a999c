package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// maxGrid is the most values a range becomes; a finer one is thinned evenly, both ends kept.
const maxGrid = 1000

// knobGrid is a range's values: low + i x step for i from 0 to last, in exact decimals.
type knobGrid struct {
	low, step *big.Rat
	last      int64
	whole     bool // integers
	log       bool // ratios matter
}

// newGrid reads the range of a knob.
func newGrid(s *suggestSpec) (*knobGrid, error) {
	low, err := decimal("low", s.Low)
	if err != nil {
		return nil, err
	}
	high, err := decimal("high", s.High)
	if err != nil {
		return nil, err
	}
	g := &knobGrid{low: low, whole: s.Type == "int", log: s.Log}
	switch {
	case low.Cmp(high) > 0:
		return nil, fmt.Errorf("low %s is above high %s; swap them", s.Low, s.High)
	case g.whole && (!low.IsInt() || !high.IsInt()):
		return nil, errors.New("low and high of an int must be whole numbers; use type float with a step for others")
	case g.log && low.Sign() <= 0:
		return nil, fmt.Errorf("low is %s; a log range begins above 0", s.Low)
	}
	span := new(big.Rat).Sub(high, low)
	if g.step, err = s.stepOf(span); err != nil {
		return nil, err
	}
	steps := new(big.Int).Quo(new(big.Rat).Quo(span, g.step).Num(), new(big.Rat).Quo(span, g.step).Denom())
	if !steps.IsInt64() || steps.Int64() > 1<<53 {
		return nil, fmt.Errorf("step %s is too fine for the range; make it larger", s.Step)
	}
	g.last = steps.Int64()
	return g, nil
}

// stepOf is the distance of two values: 1 for integers and a hundredth of the span for others, when none is given.
func (s *suggestSpec) stepOf(span *big.Rat) (*big.Rat, error) {
	switch {
	case len(s.Step) > 0 && string(s.Step) != "null":
		step, err := decimal("step", s.Step)
		switch {
		case err != nil:
			return nil, err
		case step.Sign() <= 0:
			return nil, fmt.Errorf("step is %s; it must be above 0", s.Step)
		case s.Type == "int" && !step.IsInt():
			return nil, fmt.Errorf("step is %s; that of an int must be a whole number", s.Step)
		}
		return step, nil
	case s.Type == "int" || span.Sign() == 0:
		return big.NewRat(1, 1), nil
	case s.Log:
		return new(big.Rat).Quo(span, big.NewRat(1_000_000, 1)), nil // thinned by ratio
	}
	return new(big.Rat).Quo(span, big.NewRat(100, 1)), nil
}

// clip leaves out what is above top; false when nothing is left.
func (g *knobGrid) clip(top float64) bool {
	limit := new(big.Rat).SetFloat64(top)
	if limit == nil || limit.Cmp(g.low) < 0 {
		return limit == nil // infinite: nothing to clip
	}
	limit.Sub(limit, g.low).Quo(limit, g.step)
	if steps := new(big.Int).Quo(limit.Num(), limit.Denom()); steps.IsInt64() {
		g.last = min(g.last, steps.Int64())
	}
	return true
}

// picks are the positions kept: all, or maxGrid of them evenly, by ratio for a log range.
func (g *knobGrid) picks() []int64 {
	n := g.last + 1
	if n <= maxGrid {
		all := make([]int64, n)
		for i := range all {
			all[i] = int64(i)
		}
		return all
	}
	low, step := ratFloat(g.low), ratFloat(g.step)
	ratio := (low + step*float64(g.last)) / low
	kept := make([]int64, 0, maxGrid)
	for j := range maxGrid {
		share := float64(j) / (maxGrid - 1)
		i := int64(math.Round(share * float64(g.last)))
		if g.log {
			i = int64(math.Round(low * (math.Pow(ratio, share) - 1) / step))
		}
		if j == maxGrid-1 {
			i = g.last
		}
		if i = min(i, g.last); len(kept) == 0 || i > kept[len(kept)-1] {
			kept = append(kept, i)
		}
	}
	return kept
}

// at is the value at a position and how it is written: exactly, integers without a point and others with one.
func (g *knobGrid) at(i int64) (float64, json.RawMessage) {
	v := new(big.Rat).Mul(g.step, new(big.Rat).SetInt64(i))
	v.Add(v, g.low)
	if g.whole {
		return ratFloat(v), json.RawMessage(v.Num().String())
	}
	digits, _ := v.FloatPrec() // sums and products of decimals are decimals
	return ratFloat(v), json.RawMessage(v.FloatString(max(digits, 1)))
}

func ratFloat(v *big.Rat) float64 {
	f, _ := v.Float64()
	return f
}

// decimal reads a JSON number exactly, within what a knob can mean.
func decimal(key string, raw json.RawMessage) (*big.Rat, error) {
	const longest, largest, smallest = 40, 1e15, 1e-15
	text := string(raw)
	if text == "" || text == "null" {
		return nil, fmt.Errorf("%s is missing; give a number", key)
	}
	if !strings.ContainsAny(text[:1], "-0123456789") {
		return nil, fmt.Errorf("%s is %s; give a number", key, shortened(text))
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || len(text) > longest || math.Abs(f) > largest || f != 0 && math.Abs(f) < smallest {
		return nil, fmt.Errorf("%s is %s; give a number of at most 40 characters, between 1e-15 and 1e15 in size", key, shortened(text))
	}
	v := new(big.Rat)
	if f != 0 {
		v.SetString(text)
	}
	return v, nil
}
