package physics

import (
	"math"
	"slices"

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
	prior []float64   // chance to survive that the other models gave beforehand
	pull  []float64   // label less chance at the solution: what each trial still argues for
	shift [][]float64 // of log odds, by knob and value
	blind bool        // no other model speaks
	odd   int         // failures that the other models had all but ruled out
}

const (
	failureSD      = 0.35 // of log odds, by knob
	failureBlindSD = 1.5  // where no other model speaks
	newtonSteps    = 12
	newtonHalvings = 6
	blindSurvival  = 0.8  // chance to survive anywhere, where no other model speaks
	oddFailure     = 0.02 // chance to fail below which a failure is not what the other models know of
	oddFailures    = 2    // so many of them, and the other models are not trusted beyond that chance
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
	if label == 1 && survive > 1-oddFailure {
		f.odd++
	}
	f.rows = append(f.rows, f.k.row(o.Point))
	f.label = append(f.label, label)
	f.prior = append(f.prior, survive)
	if len(f.rows) > mostRows {
		least := leastOf(func(i, j int) bool { return f.label[i] > f.label[j] })
		f.rows, f.label, f.prior = slices.Delete(f.rows, least, least+1), slices.Delete(f.label, least, least+1), slices.Delete(f.prior, least, least+1)
	}
	if !f.l.later {
		f.learn()
	}
}

// learn fits the shifts to all that was observed.
func (f *Failures) learn() {
	if len(f.rows) == 0 {
		return
	}
	f.solve()
	f.shift = f.k.table(f.rows, f.pull, f.variance())
}

// wide reports whether the other models say little of failures here.
func (f *Failures) wide() bool { return f.blind || f.odd >= oddFailures }

// variance is the prior variance of a knob's own shift.
func (f *Failures) variance() float64 {
	if f.wide() {
		return failureBlindSD * failureBlindSD
	}
	return failureSD * failureSD
}

// solve finds the most probable shifts by Newton's method: shift = K(label - chance) at the solution. A
// step that overshoots is halved: from odds far off, a whole one would jump to and fro.
func (f *Failures) solve() {
	n := len(f.rows)
	k := mat.NewSymDense(n, nil)
	for a := range n {
		for b := a; b < n; b++ {
			k.SetSym(a, b, f.variance()*f.k.additive(&f.rows[a], f.rows[b].point))
		}
	}
	shift, pull := mat.NewVecDense(n, nil), mat.NewVecDense(n, nil)
	f.pull = pull.RawVector().Data
	at := f.posterior(pull, shift)
	for range newtonSteps {
		next, ok := f.newton(k, shift)
		if !ok {
			return
		}
		var moved mat.VecDense
		moved.MulVec(k, next)
		better := f.posterior(next, &moved)
		for range newtonHalvings {
			if better >= at {
				break
			}
			next.AddVec(next, pull)
			next.ScaleVec(.5, next)
			moved.MulVec(k, next)
			better = f.posterior(next, &moved)
		}
		most := 0.0
		for a := range n {
			most = math.Max(most, math.Abs(moved.AtVec(a)-shift.AtVec(a)))
		}
		pull.CopyVec(next)
		shift.CopyVec(&moved)
		at = better
		if most < 1e-3 {
			return
		}
	}
}

// posterior is the log density of the shifts that a pull makes, up to a constant.
func (f *Failures) posterior(pull, shift mat.Vector) float64 {
	sum := -.5 * mat.Dot(pull, shift)
	for a, label := range f.label {
		odds := shift.AtVec(a) - f.logOdds(f.prior[a], 0.005)
		if label == 0 {
			odds = -odds
		}
		sum += math.Log(chance(odds))
	}
	return sum
}

// newton is one step from the given shifts: the pull for which the next ones are K times it
// (Rasmussen, Williams 2006, algorithm 3.1).
func (f *Failures) newton(k *mat.SymDense, shift *mat.VecDense) (pull *mat.VecDense, ok bool) {
	n := len(f.rows)
	root, right := make([]float64, n), mat.NewVecDense(n, nil)
	for a := range n {
		p := chance(shift.AtVec(a) - f.logOdds(f.prior[a], 0.005))
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

// logOdds are those of a chance to survive, which is taken to be no nearer to 0 and 1 than least.
func (f *Failures) logOdds(survive, least float64) float64 {
	if f.odd >= oddFailures {
		least = oddFailure
	}
	survive = clamp(survive, least, 1-least)
	return math.Log(survive / (1 - survive))
}

func chance(logOdds float64) float64 { return 1 / (1 + math.Exp(-clamp(logOdds, -40, 40))) }

// Predict is the chance to survive at p, given what the other models say of it.
func (f *Failures) Predict(p Point, survive float64) float64 {
	if len(f.rows) == 0 {
		return survive
	}
	shift := f.k.lookup(f.shift, p)
	return chance(f.logOdds(survive, 1e-6) - shift)
}
