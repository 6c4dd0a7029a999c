package benchmark_test

import (
	"strings"
	"testing"
	"time"

	"sgtune/benchmark"
)

// A program that was stopped for a while (SIGSTOP, a suspended laptop, a blocked terminal) did not measure the server,
// and nobody is asked whether such a level is hopeless.
func TestRunNoticesThatItStoodStill(t *testing.T) {
	virtually(t, func(t *testing.T) {
		server := &fakeServer{ttft: 100 * time.Millisecond, tpot: 10 * time.Millisecond, perEvent: 1}
		target, windows := server.virtual(t), 0
		r, err := benchmark.Run(t.Context(), target, feedOf(lengths(100, 100, 10)), benchmark.Options{
			Concurrency: 2, Window: 5 * time.Second, Cap: time.Minute,
			OnWindow: func(benchmark.Window) {
				if windows++; windows == 6 {
					time.Sleep(8 * time.Second)
				}
			},
			Prune: func(outputs []float64) bool { return len(outputs) > 6 },
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Valid || r.Invalid != benchmark.InvalidClientHung || r.Pruned || !strings.Contains(r.Advice, "stood still for 3s") {
			t.Errorf("valid %v, invalid %q, pruned %v: %s", r.Valid, r.Invalid, r.Pruned, r.Advice)
		}
	})
}
