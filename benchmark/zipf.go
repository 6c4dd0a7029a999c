package benchmark

import (
	"math"
	"sort"
)

// zipf draws ranks 0 ... n-1 with probabilities proportional to 1/(rank+1)^alpha: few ranks are drawn most
// of the time (as SGLang's generated-shared-prefix with --gsp-group-distribution zipf).
type zipf struct {
	upTo []float64 // probability of a rank or one below it
}

func newZipf(n int, alpha float64) zipf {
	z := zipf{upTo: make([]float64, n)}
	sum := 0.0
	for i := range z.upTo {
		sum += math.Pow(float64(i+1), -alpha)
		z.upTo[i] = sum
	}
	for i := range z.upTo {
		z.upTo[i] /= sum
	}
	return z
}

// rank is the rank a number u, 0 <= u < 1, stands for.
func (z zipf) rank(u float64) int {
	return min(sort.Search(len(z.upTo), func(i int) bool { return z.upTo[i] > u }), len(z.upTo)-1)
}
