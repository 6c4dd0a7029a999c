package physics

import (
	"math"
	"math/rand/v2"
)

// guess is one function drawn from the residual model's posterior together with one vector of
// physics' coefficients: what the truth may be. Proposing its best point (Thompson 1933, On the
// likelihood that one unknown probability exceeds another) changes every knob that is still open at
// once, each as often as it may be better: a trial then tells something of all of them, as in a
// factorial design, where steps of one knob at a time would use up the night.
//
// The draw is by Matheron's rule (Wilson et al. 2020, Efficiently sampling functions from Gaussian
// process posteriors): a function from the prior plus the correction that the data ask for.
type guess struct {
	g      *Residual
	mean   int // vector of the throughput model, -1 = the constant mean
	center float64
	value  [][]float64 // by knob and value
}

// fourierTerms is how many random cosines stand for the prior of an ordered knob (Rahimi, Recht
// 2007, Random features for large-scale kernel machines).
const fourierTerms = 20

// guess draws a function; ok is false before there is a value.
func (g *Residual) guess(r *rand.Rand) (*guess, bool) {
	hyp := &g.hyp[0]
	if _, flat := g.odds(); r.Float64() < flat {
		hyp = &g.hyp[1]
	}
	n := len(g.rows)
	if !hyp.ready(n) {
		return nil, false
	}
	f := &guess{g: g, mean: -1, center: hyp.center}
	share := pick(r, hyp.share)
	if !hyp.flat {
		f.mean = share
	}
	for i := range g.l.space {
		f.value = append(f.value, g.prior(r, i, g.k.amp[i]*hyp.gain[i]*hyp.scale))
	}
	level := math.Sqrt(hyp.level()) * r.NormFloat64()
	bias := biasSD * r.NormFloat64()
	gap := make([]float64, n) // data less the drawn function
	for a := range gap {
		gap[a] = g.y[a] - level - bias*(1-g.frac[a]) - math.Sqrt(g.noiseVar(hyp, a)+sq(ampProduct*hyp.product))*r.NormFloat64() - f.at(g.rows[a].point)
	}
	for a := range gap {
		w := 0.0
		for b, v := range gap {
			w += hyp.inv[a*n+b] * v
		}
		f.center += w * hyp.level()
		for i := range f.value {
			if !g.rows[a].alive[i] {
				continue
			}
			amp := sq(g.k.amp[i] * hyp.gain[i] * hyp.scale)
			if amp == 0 {
				continue
			}
			for j := range f.value[i] {
				f.value[i][j] += amp * w * g.rows[a].alike[i][j]
			}
		}
	}
	f.center += level
	return f, true
}

func sq(x float64) float64 { return x * x }

// pick draws an index by weight.
func pick(r *rand.Rand, weights []float64) int {
	u := r.Float64()
	for i, w := range weights {
		if u -= w; u < 0 {
			return i
		}
	}
	return len(weights) - 1
}

// prior draws knob i's own effect at each of its values.
func (g *Residual) prior(r *rand.Rand, i int, amp float64) []float64 {
	k := g.l.space[i]
	out := make([]float64, len(k.Values))
	if amp == 0 {
		return out
	}
	if k.Kind == Unordered {
		for j := range out {
			out[j] = amp * r.NormFloat64()
		}
		return out
	}
	for range fourierTerms {
		frequency, phase := r.NormFloat64()/lengthScale, 2*math.Pi*r.Float64()
		for j, u := range g.l.numbers[i] {
			out[j] += amp * math.Sqrt(2.0/fourierTerms) * math.Cos(frequency*u+phase)
		}
	}
	return out
}

// at is the drawn log value at p.
func (f *guess) at(p Point) float64 {
	v := f.center
	if f.mean >= 0 {
		tokens, _, _ := f.g.t.m.Predict(p)
		v += f.g.t.one(f.mean, p, tokens)
	}
	for i, j := range p {
		if f.g.l.space.Alive(p, i) {
			v += f.value[i][j]
		}
	}
	return v
}
