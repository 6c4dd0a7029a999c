package physics

import (
	"cmp"
	"math"
	"slices"
)

// Importance is how much of the objective a knob accounts for around the best configuration, with
// its uncertainty.
type Importance struct {
	Name     string
	Effect   float64 // largest ratio less 1 between two of its values, the others held at the best point
	Low, Top float64 // 10th and 90th percentile of Effect by the models' own uncertainty
	Best     int     // index of its best value
}

// Importances are all knobs, the most important first. They are of the posterior mean along each
// knob through the recommended point; values that would hardly survive are left out.
func (s *Search) Importances() []Importance {
	center, ok := s.Recommend()
	if !ok {
		return nil
	}
	var out []Importance
	for i, k := range s.space {
		best, worst := -1, -1
		var top, low Prediction
		for _, j := range s.sweep(k, center[i]) {
			q := slices.Clone(center)
			q[i] = j
			at := s.predict(q, 1)
			if at.Survive < searchAlive || at.Crash > .5 {
				continue
			}
			if best < 0 || at.logMean > top.logMean {
				best, top = j, at
			}
			if worst < 0 || at.logMean < low.logMean {
				worst, low = j, at
			}
		}
		if best < 0 {
			out = append(out, Importance{Name: k.Name, Best: center[i]})
			continue
		}
		effect := top.logMean - low.logMean
		sd := math.Hypot(top.Spread, low.Spread) / 2 // the two share most of what is not known
		if best == worst {
			sd = 0
		}
		out = append(out, Importance{
			Name: k.Name, Best: best, Effect: math.Expm1(effect),
			Low: math.Expm1(math.Max(0, effect-1.2816*sd)), Top: math.Expm1(effect + 1.2816*sd),
		})
	}
	slices.SortStableFunc(out, func(x, y Importance) int { return cmp.Compare(y.Effect, x.Effect) })
	return out
}

// sweep are values of a knob to look at: at first, then all of a short list, else 24 spread over the
// range. Where all are alike, at is the best.
func (s *Search) sweep(k Knob, at int) []int {
	n := len(k.Values)
	looks := min(n, 24)
	out := []int{at}
	for j := range looks {
		if v := j * (n - 1) / max(looks-1, 1); v != at {
			out = append(out, v)
		}
	}
	return out
}

// noiseFactor is how far the learnt noise is from the usual one.
func (g *Residual) noiseFactor() float64 {
	sum := 0.0
	for _, h := range g.hyp {
		sum += h.weight * h.noise
	}
	if sum <= 0 {
		return 1
	}
	return sum
}

// teaches is the knob whose own effect is least sure at p, with its share of the variance of all
// knobs' effects.
func (g *Residual) teaches(p Point) (name string, share float64) {
	hyp := &g.hyp[0]
	if g.hyp[1].weight > hyp.weight {
		hyp = &g.hyp[1]
	}
	n := len(g.rows)
	if n == 0 || len(hyp.inv) != n*n {
		return "", 0
	}
	total, most, which := 0.0, 0.0, -1
	part := make([]float64, n)
	for i, k := range g.l.space {
		amp := g.k.amp[i] * hyp.gain[i] * hyp.scale
		if amp == 0 || !g.l.space.Alive(p, i) {
			continue
		}
		for a := range g.rows {
			part[a] = 0
			if g.rows[a].alive[i] {
				part[a] = amp * amp * g.rows[a].alike[i][p[i]]
			}
		}
		v := amp * amp
		for a := range part {
			for b := range part {
				v -= part[a] * hyp.inv[a*n+b] * part[b]
			}
		}
		v = math.Max(v, 0)
		total += v
		if v > most && len(k.Values) > 1 {
			most, which = v, i
		}
	}
	if which < 0 || total <= 0 {
		return "", 0
	}
	return g.l.space[which].Name, most / total
}
