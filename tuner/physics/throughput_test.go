package physics

import (
	"math"
	"testing"
)

// TestThroughputIsANumber holds for every exponent of the hit ratio: values from 1e-6 to 1e9 took it
// below 0 once, and all predictions with it to no number.
func TestThroughputIsANumber(t *testing.T) {
	t.Parallel()
	w := &Load{Clients: 100, InputTokens: 2000, OutputTokens: 400, SharedTokens: 1900}
	for _, al := range []float64{-5, -0.3, 0, 0.1, 0.6, 5} {
		c := coefficientsOf([]float64{3, -1.4, -2.4, -3.9, 14, al, 0, 0, 2.5, 5.7})
		for _, tokens := range []float64{1, 5_000, 200_000, 1e9} {
			for _, host := range []bool{false, true} {
				f := features{tokens: tokens, pool: tokens, cap: 100, sig: 1, chunk: 8192, graph: 64, host: host}
				y, n, hit := c.at(w, &f)
				if !known(y) || !(n >= 1 && n <= 100) || !(hit >= 0 && hit <= 1) {
					t.Errorf("exponent %v, %v tokens, host pool %v: log value %v, running %v, hit ratio %v", al, tokens, host, y, n, hit)
				}
			}
		}
	}
	if got := power(0.25, 0.5); math.Abs(got-0.5) > 1e-12 {
		t.Errorf("power(0.25, 0.5) = %v, want 0.5", got)
	}
}
