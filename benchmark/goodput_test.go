package benchmark_test

import (
	"testing"
	"time"

	"sgtune/benchmark"
)

// Goodput counts the requests that meet every limit, each by itself; without limits all of them.
func TestGoodput(t *testing.T) {
	for _, c := range []struct {
		name string
		slo  benchmark.SLO
		good bool
	}{
		{"no limit", benchmark.SLO{}, true},
		{"both met", benchmark.SLO{TTFT: 250 * time.Millisecond, TPOT: 25 * time.Millisecond}, true},
		{"first token late", benchmark.SLO{TTFT: 150 * time.Millisecond, TPOT: 25 * time.Millisecond}, false},
		{"answer in time", benchmark.SLO{E2E: 600 * time.Millisecond}, true},
		{"answer late", benchmark.SLO{TTFT: 250 * time.Millisecond, E2E: 400 * time.Millisecond}, false},
		{"tokens slow", benchmark.SLO{TTFT: 250 * time.Millisecond, TPOT: 15 * time.Millisecond}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtually(t, func(t *testing.T) {
				server := &fakeServer{ttft: 200 * time.Millisecond, tpot: 20 * time.Millisecond, perEvent: 1}
				r, err := benchmark.Run(t.Context(), server.virtual(t), feedOf(lengths(1000, 100, 16)), benchmark.Options{
					Concurrency: 4, Window: 5 * time.Second, Cap: 30 * time.Second, SLO: c.slo,
				}, nil)
				if err != nil {
					t.Fatal(err)
				}
				want := 0.0
				if c.good {
					want = r.RequestsS
				}
				if r.RequestsS == 0 || r.GoodputS != want {
					t.Errorf("goodput %g of %g requests/s, want %g", r.GoodputS, r.RequestsS, want)
				}
			})
		})
	}
}
