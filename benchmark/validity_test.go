package benchmark_test

import (
	"testing"
	"time"

	"sgtune/benchmark"
)

// slowFeed builds prompts so slowly that requests leave late: a client without CPU.
type slowFeed struct {
	benchmark.Feed
	delay time.Duration
}

func (f slowFeed) Next() benchmark.Prompt {
	time.Sleep(f.delay)
	return f.Feed.Next()
}

func TestRunFlagsALimitedClient(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		feed   benchmark.Feed
		server *fakeServer
		cpu    float64
		want   string
	}{
		{"slow server", feedOf(lengths(50, 10, 4)), &fakeServer{ttft: 300 * time.Millisecond}, 0.2, ""},
		{"server slow to end its answers", feedOf(lengths(50, 10, 4)), &fakeServer{ttft: 100 * time.Millisecond, linger: 50 * time.Millisecond}, 0.2, ""},
		{"cpu", feedOf(lengths(50, 10, 4)), &fakeServer{ttft: 300 * time.Millisecond}, 0.9, "client_limited"},
		{"late", slowFeed{feedOf(lengths(50, 10, 4)), 30 * time.Millisecond}, &fakeServer{ttft: 300 * time.Millisecond}, 0.2, "client_limited"},
		{"late but within 10 ms", slowFeed{feedOf(lengths(50, 10, 4)), 9 * time.Millisecond}, &fakeServer{ttft: 300 * time.Millisecond}, 0.2, ""},
		{"late but within 2%", slowFeed{feedOf(lengths(50, 10, 4)), 30 * time.Millisecond}, &fakeServer{ttft: 3 * time.Second}, 0.2, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtually(t, func(t *testing.T) {
				target := c.server.virtual(t)
				r, err := benchmark.Run(t.Context(), target, c.feed, benchmark.Options{
					Concurrency: 4, Requests: 40, CPUShare: func() float64 { return c.cpu },
				}, nil)
				if err != nil {
					t.Fatal(err)
				}
				if r.Invalid != c.want || r.Valid != (c.want == "") {
					t.Errorf("invalid = %q, want %q (lag p99 %.1f ms)", r.Invalid, c.want, r.Client.SendLagMs.P99)
				}
			})
		})
	}
}
