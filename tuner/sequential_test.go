package tuner

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The bound holds at all looks at once, and is not much wider than that needs.
func TestAnytimeBound(t *testing.T) {
	t.Parallel()
	runs := 4000
	if testing.Short() {
		runs = 1000
	}
	r := rand.New(rand.NewPCG(1, 2))
	const sd, alpha, looks = 0.3, 0.05, 200
	crossed := 0
	for range runs {
		sum := 0.0
		for n := 1; n <= looks; n++ {
			if sum += sd * r.NormFloat64(); sum/float64(n) > anytime(n, sd, alpha) {
				crossed++
				break
			}
		}
	}
	if share := float64(crossed) / float64(runs); share > alpha || share < alpha/5 {
		t.Errorf("the mean left the bound in %.2f%% of runs, at most %.0f%% may", 100*share, 100*alpha)
	}
	for n := 1; n < looks; n++ {
		if anytime(n+1, sd, alpha) >= anytime(n, sd, alpha) {
			t.Fatalf("the bound does not shrink from %d to %d values", n, n+1)
		}
		if once := 1.645 * sd / math.Sqrt(float64(n)); anytime(n, sd, alpha) < once {
			t.Errorf("%d values: %g is narrower than a bound for a single look, %g", n, anytime(n, sd, alpha), once)
		}
	}
	if !math.IsInf(anytime(0, sd, alpha), 1) || anytime(3, 0, alpha) != 0 {
		t.Error("no values say nothing; values without noise say all")
	}
}
