package physics

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// Failures is what memory arithmetic and Risk do not explain of the trials that ran out of GPU
// memory: a Gaussian process classifier over all knobs (Laplace's approximation; Rasmussen, Williams
// 2006, section 3.4) that shifts the log odds they give. Where physics knows no knob, because none is
// called as it should be or the cause is another, it is all there is.
type Failures struct {
	l     *layout
	k     *kernel
	rows  []row
	label []float64   // 1 = failed
	prior []float64   // log odds of failure that the other models gave beforehand
	pull  []float64   // label less chance at the solution: what each trial still argues for
	shift [][]float64 // of log odds, by knob and value
	blind bool        // no other model speaks
}

const (
	failureSD      = 0.35 // of log odds, by knob
	failureBlindSD = 1.5  // where no other model speaks
	newtonSteps    = 12
	blindSurvival  = 0.8 // chance to survive anywhere, where no other model speaks
)

func newFailures(l *layout, k *kernel) *Failures {
	return &Failures{l: l, k: k, blind: !known(l.value(l.home, RoleMemFraction))}
}

// Observe learns from a trial that ran out of GPU memory or that did not, and from the chance to
// survive that the other models gave it beforehand.
func (f *Failures) Observe(o Observation, survive float64) {
	label := 0.0
	switch o.Status {
	case StartOOM, LoadOOM:
		label = 1
	case OK, Pruned, Worthless:
	default:
		return
	}
	survive = clamp(survive, 0.005, 0.995)
	f.rows = append(f.rows, f.k.row(o.Point))
	f.label = append(f.label, label)
	f.prior = append(f.prior, math.Log((1-survive)/survive))
	f.solve()
	f.shift = f.k.table(f.rows, f.pull, f.variance())
}

// variance is the prior variance of a knob's own shift.
func (f *Failures) variance() float64 {
	if f.blind {
		return failureBlindSD * failureBlindSD
	}
	return failureSD * failureSD
}

// solve finds the most probable shifts by Newton's method: shift = K(label - chance) at the solution.
func (f *Failures) solve() {
	n := len(f.rows)
	k := mat.NewSymDense(n, nil)
	for a := range n {
		for b := a; b < n; b++ {
			k.SetSym(a, b, f.variance()*f.k.additive(&f.rows[a], f.rows[b].point))
		}
	}
	shift := mat.NewVecDense(n, nil)
	f.pull = make([]float64, n)
	for range newtonSteps {
		pull, ok := f.newton(k, shift)
		if !ok {
			return
		}
		copy(f.pull, pull.RawVector().Data)
		var next mat.VecDense
		next.MulVec(k, pull)
		moved := 0.0
		for a := range n {
			moved = math.Max(moved, math.Abs(next.AtVec(a)-shift.AtVec(a)))
		}
		shift.CopyVec(&next)
		if moved < 1e-3 {
			return
		}
	}
}

// newton is one step from the given shifts: the pull for which the next ones are K times it
// (Rasmussen, Williams 2006, algorithm 3.1).
func (f *Failures) newton(k *mat.SymDense, shift *mat.VecDense) (pull *mat.VecDense, ok bool) {
	n := len(f.rows)
	root, right := make([]float64, n), mat.NewVecDense(n, nil)
	for a := range n {
		p := chance(f.prior[a] + shift.AtVec(a))
		w := p * (1 - p)
		root[a] = math.Sqrt(w)
		right.SetVec(a, w*shift.AtVec(a)+f.label[a]-p)
	}
	b := mat.NewSymDense(n, nil) // I + W^1/2 K W^1/2
	for a := range n {
		for c := a; c < n; c++ {
			b.SetSym(a, c, root[a]*root[c]*k.At(a, c))
		}
		b.SetSym(a, a, 1+b.At(a, a))
	}
	var scaled, solved mat.VecDense
	scaled.MulVec(k, right)
	for a := range n {
		scaled.SetVec(a, root[a]*scaled.AtVec(a))
	}
	var chol mat.Cholesky
	if !chol.Factorize(b) || chol.SolveVecTo(&solved, &scaled) != nil {
		return nil, false
	}
	for a := range n {
		right.SetVec(a, right.AtVec(a)-root[a]*solved.AtVec(a))
	}
	return right, true
}

func chance(logOdds float64) float64 { return 1 / (1 + math.Exp(-clamp(logOdds, -40, 40))) }

// Predict is the chance to survive at p, given what the other models say of it.
func (f *Failures) Predict(p Point, survive float64) float64 {
	if len(f.rows) == 0 {
		return survive
	}
	shift := f.k.lookup(f.shift, p)
	survive = clamp(survive, 1e-6, 1-1e-6)
	return chance(math.Log(survive/(1-survive)) - shift)
}
