package physics

import "math"

// linear is a Bayesian linear regression with a normal prior, updated one observation at a time
// (the Kalman form of recursive least squares; Bishop, Pattern Recognition and Machine Learning,
// 2006, section 3.3). Features are sparse: the indices that are not zero.
type linear struct {
	mean []float64
	cov  [][]float64
}

// sparse is a feature vector: value[i] at index[i], zero elsewhere.
type sparse struct {
	index []int
	value []float64
}

func (s *sparse) add(i int, v float64) { s.index, s.value = append(s.index, i), append(s.value, v) }

func (s *sparse) reset() { s.index, s.value = s.index[:0], s.value[:0] }

func newLinear(mean, sd []float64) *linear {
	l := &linear{mean: mean, cov: make([][]float64, len(mean))}
	for i := range mean {
		l.cov[i] = make([]float64, len(mean))
		l.cov[i][i] = sd[i] * sd[i]
	}
	return l
}

// predict is the mean and variance at x, noise left out.
func (l *linear) predict(x *sparse) (mean, variance float64) {
	for a, i := range x.index {
		mean += x.value[a] * l.mean[i]
		row := l.cov[i]
		for b, j := range x.index {
			variance += x.value[a] * x.value[b] * row[j]
		}
	}
	return mean, math.Max(variance, 0)
}

// observe takes y at x with noise of the given standard deviation.
func (l *linear) observe(x *sparse, y, sd float64) {
	mean, variance := l.predict(x)
	gain := make([]float64, len(l.mean))
	for i := range gain {
		for b, j := range x.index {
			gain[i] += l.cov[i][j] * x.value[b]
		}
	}
	total := variance + sd*sd
	for i := range gain {
		l.mean[i] += gain[i] / total * (y - mean)
		for j := range gain {
			l.cov[i][j] -= gain[i] * gain[j] / total
		}
	}
}
