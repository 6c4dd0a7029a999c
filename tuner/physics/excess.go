package physics

import (
	"slices"

	"gonum.org/v1/gonum/mat"
)

// excess is what low-water marks of free memory say beyond Memory and Risk's linear need: a Gaussian
// process over all knobs (additive, see kernel) on the need that was seen less the need that was
// expected, GiB. Where a part of the memory follows a knob that the arithmetic does not know of, a
// measured point and its neighbours are judged by what they showed.
type excess struct {
	k     *kernel
	rows  []row
	low   []float64   // least free memory under load that each showed, GiB
	shift [][]float64 // the mean, by knob and value
}

// excessSD is the prior standard deviation of a knob's own part of the excess need, GiB.
const excessSD = 0.08

func (e *excess) observe(o Observation) {
	if known(o.LowWaterGiB) && o.LowWaterGiB >= 0 {
		e.rows = append(e.rows, e.k.row(o.Point))
		e.low = append(e.low, bounded(o.LowWaterGiB))
	}
	if len(e.rows) > mostRows {
		roomiest := leastOf(func(i, j int) bool { return e.low[i] < e.low[j] })
		e.rows, e.low = slices.Delete(e.rows, roomiest, roomiest+1), slices.Delete(e.low, roomiest, roomiest+1)
	}
}

// fit solves for the mean, given the low-water mark that is expected at a point and how far one
// launch's may lie from it.
func (e *excess) fit(expect func(p Point) float64, noise float64) {
	n := len(e.rows)
	if n == 0 {
		return
	}
	k, y := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	for a := range n {
		for b := a; b < n; b++ {
			v := e.k.additive(&e.rows[a], e.rows[b].point) * excessSD * excessSD
			if a == b {
				v += noise * noise
			}
			k.SetSym(a, b, v)
		}
		excess := expect(e.rows[a].point) - e.low[a]
		if !known(excess) {
			return // no figure of memory says yet what is expected
		}
		y.SetVec(a, excess)
	}
	var chol mat.Cholesky
	var w mat.VecDense
	if !chol.Factorize(k) || chol.SolveVecTo(&w, y) != nil {
		return
	}
	e.shift = e.k.table(e.rows, w.RawVector().Data, excessSD*excessSD)
}

// at is the excess need at p, GiB.
func (e *excess) at(p Point) float64 { return e.k.lookup(e.shift, p) }
