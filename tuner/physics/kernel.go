package physics

import "math"

// kernel is how alike two configurations are to the residual model: a sum over knobs, so that each
// knob's own effect is learnt from trials that differ in all of them at once, and a weak product for
// what knobs do together (Duvenaud, Nickisch, Rasmussen 2011, Additive Gaussian processes).
type kernel struct {
	l   *layout
	amp []float64 // prior standard deviation of log value by knob
}

// Prior amplitudes, as standard deviations of log value. Which knob matters is learnt (see
// Residual); these are only where it starts.
const (
	ampKnown    = 0.055 // a knob whose main effect physics has
	ampPool     = 0.10  // the host pool, whose effect physics only sketches
	ampOther    = 0.07
	ampProduct  = 0.06
	lengthScale = 0.4
	productSpan = 0.45
)

func newKernel(l *layout) *kernel {
	k := &kernel{l: l}
	for _, knob := range l.space {
		switch {
		case len(knob.Values) < 2 || knob.Role == RoleKVDtype && len(l.facts.CellScale) == 0:
			k.amp = append(k.amp, 0)
		case knob.Role == RoleHostPool:
			k.amp = append(k.amp, ampPool)
		case knob.Role != RoleOther:
			k.amp = append(k.amp, ampKnown)
		default:
			k.amp = append(k.amp, ampOther)
		}
	}
	return k
}

// pair is knob i's part for two of its values: the similarity, and the squared distance that enters
// the product.
func (k *kernel) pair(i, a, b int) (alike, distance float64) {
	if k.l.space[i].Kind == Unordered {
		if a == b {
			return 1, 0
		}
		return 0, 1
	}
	d := k.l.numbers[i][a] - k.l.numbers[i][b]
	return math.Exp(-.5 * d * d / (lengthScale * lengthScale)), d * d / (productSpan * productSpan)
}

// row holds pair of one observed point against every value of every knob: a lookup is all that a
// prediction needs.
type row struct {
	point    Point
	alive    []bool
	alike    [][]float64
	distance [][]float64
}

func (k *kernel) row(p Point) row {
	r := row{point: p}
	for i, knob := range k.l.space {
		alike, distance := make([]float64, len(knob.Values)), make([]float64, len(knob.Values))
		for j := range knob.Values {
			alike[j], distance[j] = k.pair(i, p[i], j)
		}
		r.alike, r.distance = append(r.alike, alike), append(r.distance, distance)
		r.alive = append(r.alive, k.l.space.Alive(p, i))
	}
	return r
}

// additive is how alike an observed point is to another, summed over the knobs that do something at
// both.
func (k *kernel) additive(r *row, p Point) float64 {
	sum := 0.0
	for i, j := range p {
		if len(k.l.space[i].Values) > 1 && r.alive[i] && k.alive(p, i) {
			sum += r.alike[i][j]
		}
	}
	return sum
}

func (k *kernel) alive(p Point, i int) bool {
	return k.l.space[i].Needs < 0 || k.l.space.Alive(p, i)
}

// table is a weighted sum of additive over observed points, by knob and value: as the kernel is a sum
// over knobs, so is every function made of it.
func (k *kernel) table(rows []row, weight []float64, factor float64) [][]float64 {
	out := make([][]float64, len(k.l.space))
	for i, knob := range k.l.space {
		out[i] = make([]float64, len(knob.Values))
		if len(knob.Values) < 2 {
			continue
		}
		for a := range rows {
			if !rows[a].alive[i] {
				continue
			}
			for j, v := range rows[a].alike[i] {
				out[i][j] += factor * weight[a] * v
			}
		}
	}
	return out
}

// lookup is the value of a table at p.
func (k *kernel) lookup(table [][]float64, p Point) float64 {
	sum := 0.0
	for i := range table {
		if k.alive(p, i) {
			sum += table[i][p[i]]
		}
	}
	return sum
}
