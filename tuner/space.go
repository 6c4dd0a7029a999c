package tuner

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

// Space is the search space in file order.
type Space []Dimension

// Size is the number of configurations in the space.
func (s Space) Size() int {
	n := 1
	for _, d := range s {
		n *= len(d.Values)
	}
	return n
}
