package physics

import (
	"math"
	"slices"
)

// Kind tells how the values of a knob relate.
type Kind uint8

// Kinds of knobs.
const (
	Ordered   Kind = iota // numbers, ascending
	Unordered             // choices without an order
)

// Role is what physics knows a knob as. Everything else is RoleOther, whatever its name: the
// residual model learns it like any other.
type Role uint8

// Roles, by SGLang's flag names.
const (
	RoleOther            Role = iota
	RoleMemFraction           // mem-fraction-static
	RoleHostPool              // hicache-size, in Facts.PoolBytes a rank
	RoleChunk                 // chunked-prefill-size, tokens; -1 is the whole prompt
	RoleMaxRunning            // max-running-requests
	RoleGraphBS               // cuda-graph-max-bs
	RoleKVDtype               // kv-cache-dtype, its effect on a token's bytes in Facts.CellScale
	RoleConservativeness      // schedule-conservativeness
	roles
)

// RoleOf is the role of a flag by SGLang's own name (with dashes).
func RoleOf(flag string) Role {
	switch flag {
	case "mem-fraction-static":
		return RoleMemFraction
	case "hicache-size":
		return RoleHostPool
	case "chunked-prefill-size":
		return RoleChunk
	case "max-running-requests":
		return RoleMaxRunning
	case "cuda-graph-max-bs", "cuda-graph-max-bs-decode": // its name from 0.5.15 on
		return RoleGraphBS
	case "kv-cache-dtype":
		return RoleKVDtype
	case "schedule-conservativeness":
		return RoleConservativeness
	}
	return RoleOther
}

// Knob is one dimension of the space: a finite list of values.
type Knob struct {
	Name   string // as the caller spells it; only shown
	Role   Role
	Kind   Kind
	Values []float64 // Ordered: the numbers, ascending. Unordered: 0, 1, 2 ... standing for the choices
	Log    bool      // Ordered: ratios matter, not differences
	Needs  int       // index of a knob without whose value above 0 this one does nothing, -1 = none; that knob needs none itself
}

// Space is the search space.
type Space []Knob

// Point is a configuration: the index of each knob's value, in the space's order.
type Point []int

// Equal reports whether two points are the same.
func (p Point) Equal(o Point) bool { return slices.Equal(p, o) }

// Role is the index of the knob with a role, -1 when the space has none.
func (s Space) Role(r Role) int {
	return slices.IndexFunc(s, func(k Knob) bool { return k.Role == r && r != RoleOther })
}

// Value is knob i's number at p.
func (s Space) Value(p Point, i int) float64 { return s[i].Values[p[i]] }

// Alive reports whether knob i does anything at p.
func (s Space) Alive(p Point, i int) bool {
	n := s[i].Needs
	return n < 0 || s[n].Values[p[n]] > 0
}

// Mask returns p with every knob that does nothing at its value in home, so that two points that
// differ only in such knobs are one.
func (s Space) Mask(p, home Point) Point {
	var out Point
	for i := range s {
		if p[i] != home[i] && !s.Alive(p, i) {
			if out == nil {
				out = slices.Clone(p)
			}
			out[i] = home[i]
		}
	}
	if out == nil {
		return p
	}
	return out
}

// Unit is the value at index j on a scale from 0 to 1: by ratio for Log knobs whose numbers are above
// 0, by rank for short lists, else by difference.
func (k Knob) Unit(j int) float64 {
	n := len(k.Values)
	low, high, v := k.Values[0], k.Values[n-1], k.Values[j]
	switch {
	case n < 2 || high == low:
		return 0
	case k.Log && low > 0:
		return math.Log(v/low) / math.Log(high/low)
	case k.byRank():
		return float64(j) / float64(n-1)
	}
	return (v - low) / (high - low)
}

// byRank reports whether a list is short, and so spaced by position: such lists grow by factors (2048,
// 4096, 8192) or have gaps, and where they are even it is the same.
func (k Knob) byRank() bool { return len(k.Values) <= 12 }

// Nearest is the index of the value closest to x.
func (k Knob) Nearest(x float64) int {
	best := 0
	for j, v := range k.Values {
		if math.Abs(v-x) < math.Abs(k.Values[best]-x) {
			best = j
		}
	}
	return best
}
