package benchmark_test

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sgtune/benchmark"
)

func refuse(context.Context, string, string) (net.Conn, error) { return nil, errRefused }

// outputs is a workload of rows with given output lengths.
func outputs(lengths ...int) *benchmark.Workload {
	var rows []benchmark.Row
	for i, n := range lengths {
		rows = append(rows, benchmark.Row{Number: i, InputTokens: 20, OutputTokens: n})
	}
	return benchmark.NewWorkload(rows, 0)
}

// A number of requests is measured while the load is whole; where it never was, to the last answer.
func TestANumberOfRequestsIsMeasuredWhole(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name              string
		lengths           []int
		clients, requests int
		tokS, seconds     float64
		concurrency       float64
	}{
		// One each: 10, 20, 30 and 40 tokens at a token each 10 ms, 100 tokens in 400 ms.
		{"one for each client", []int{10, 20, 30, 40}, 4, 4, 250, 0.4, 2.5},
		{"fewer than clients", []int{10, 20, 30, 40}, 9, 4, 250, 0.4, 2.5},
		{"one client", []int{10}, 1, 10, 100, 1, 1},
		// Two clients are busy until the one that has had its fifth finds nothing: 10 tokens of ten requests.
		{"many for each client", []int{10}, 2, 10, 200, 0.5, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtually(t, func(t *testing.T) {
				server := &fakeServer{ttft: 10 * time.Millisecond, tpot: 10 * time.Millisecond, perEvent: 1}
				r, err := benchmark.Run(t.Context(), server.virtual(t), feedOf(outputs(c.lengths...)), benchmark.Options{
					Concurrency: c.clients, Requests: c.requests, Drain: 50 * time.Millisecond,
				}, nil)
				if err != nil {
					t.Fatal(err)
				}
				if r.Requests.OK != c.requests || r.Requests.Sent != c.requests || r.Cut != 0 || r.Concurrency.Peak != min(c.clients, c.requests) {
					t.Errorf("%+v, cut %d, peak %d", r.Requests, r.Cut, r.Concurrency.Peak)
				}
				near(t, "output tok/s", r.OutputTokS, c.tokS, 0.02)
				near(t, "seconds", r.Seconds, c.seconds, 0.02)
				near(t, "concurrency", r.Concurrency.Mean, c.concurrency, 0.02)
				near(t, "requests/s", r.RequestsS, float64(c.requests)/c.seconds, 0.02)
				near(t, "ITL max", r.ITLms.Max, 10, 0.02)
				near(t, "TTFT max", r.TTFTms.Max, 10, 0.05)
			})
		})
	}
}

func TestClosedLoopReachesItsPeak(t *testing.T) {
	virtually(t, func(t *testing.T) {
		server := &fakeServer{ttft: 30 * time.Millisecond}
		target := server.virtual(t)
		dial, dialled := target.Dial, atomic.Int64{}
		target.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			time.Sleep(500 * time.Millisecond) // a slow way to the server is in no latency
			dialled.Add(1)
			return dial(ctx, network, address)
		}
		r, err := benchmark.Run(t.Context(), target, feedOf(lengths(100, 20, 4)), benchmark.Options{Concurrency: 32, Requests: 96}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Concurrency.Peak != 32 || dialled.Load() != 32 || r.Requests.OK != 96 || r.TTFTms.Max > 40 {
			t.Errorf("peak %d over %d connections, ok %d, TTFT at most %g ms", r.Concurrency.Peak, dialled.Load(), r.Requests.OK, r.TTFTms.Max)
		}
	})
}

func TestRamp(t *testing.T) {
	virtually(t, func(t *testing.T) {
		server := &fakeServer{ttft: 300 * time.Millisecond}
		r, err := benchmark.Run(t.Context(), server.virtual(t), feedOf(lengths(100, 20, 4)), benchmark.Options{
			Concurrency: 5, Ramp: 5 * time.Second, Window: 2 * time.Second, Cap: 10 * time.Second,
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for second := range 5 {
			near(t, "in flight on the ramp", r.Series[second].InFlight, float64(second+1), 0.02)
		}
		if r.Windows[2].Steady || !r.Windows[3].Steady || r.Warmup == 0 {
			t.Errorf("the ramp takes two windows and a half: %+v", r.Windows)
		}
		near(t, "concurrency", r.Concurrency.Mean, 5, 0.01)
	})
}

func TestWarmupRequestsStandBesideTheCounts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		opts benchmark.Options
	}{
		{"closed loop", benchmark.Options{Concurrency: 4}},
		{"open loop", benchmark.Options{Arrivals: constant(10)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtually(t, func(t *testing.T) {
				server := &fakeServer{ttft: 100 * time.Millisecond}
				c.opts.Requests, c.opts.WarmupRequests, c.opts.WarmupFeed = 20, 6, feedOf(lengths(10, 99, 2))
				samples := 0
				r, err := benchmark.Run(t.Context(), server.virtual(t), feedOf(lengths(100, 20, 4)), c.opts, func(benchmark.Request) { samples++ })
				if err != nil {
					t.Fatal(err)
				}
				if r.Warmup != 6 || r.Requests.Sent != 20 || r.Tokens.Got != 80 || samples != 20 || len(server.requests) != 26 {
					t.Errorf("warm-up %d, sent %d, got %d, %d samples, the server saw %d", r.Warmup, r.Requests.Sent, r.Tokens.Got, samples, len(server.requests))
				}
				for i, q := range server.requests {
					if warm := len(q.ids) == 99; warm != (i < 6) {
						t.Errorf("request %d has %d tokens", i, len(q.ids))
					}
				}
				seconds := 0.0
				for _, p := range r.Series {
					seconds += p.OutputTokS
				}
				if seconds != 80 {
					t.Errorf("the series has %g tokens, want 80: none of the warm-up's", seconds)
				}
			})
		})
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name             string
		retries          int
		fails            func(n int) bool
		ok, failed, most int
		e2e              time.Duration // of the slowest complete one
	}{
		{"none asked for", 0, func(n int) bool { return n%5 == 2 }, 8, 2, 0, 100 * time.Millisecond},
		{"one is enough", 1, func(n int) bool { return n == 2 || n == 7 }, 10, 0, 12, 120 * time.Millisecond},
		{"three in a row", 3, func(n int) bool { return n >= 2 && n <= 4 }, 10, 0, 13, 240 * time.Millisecond},
		{"not enough", 1, func(n int) bool { return n == 2 || n == 3 }, 9, 1, 11, 100 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtually(t, func(t *testing.T) {
				server := &fakeServer{ttft: 100 * time.Millisecond}
				server.fault = func(n int) string {
					if c.fails(n) {
						return "http_status"
					}
					return ""
				}
				var slowest benchmark.Request
				r, err := benchmark.Run(t.Context(), server.virtual(t), feedOf(lengths(10, 20, 4)), benchmark.Options{
					Concurrency: 1, Requests: 10, Retries: c.retries,
				}, func(q benchmark.Request) {
					if q.Failed == "" && q.E2E > slowest.E2E {
						slowest = q
					}
				})
				if err != nil {
					t.Fatal(err)
				}
				if r.Requests.OK != c.ok || r.Requests.Failed["http_status"] != c.failed || r.Requests.Sent != 10 || r.Attempts != c.most {
					t.Errorf("%+v after %d attempts", r.Requests, r.Attempts)
				}
				near(t, "slowest E2E", ms(slowest.E2E), ms(c.e2e), 0.03)
				if slowest.Sent.Sub(slowest.Intended) > 5*time.Millisecond {
					t.Errorf("the first try left after %v", slowest.Sent.Sub(slowest.Intended))
				}
			})
		})
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// A number of requests is waited for as long as anything comes, and no longer.
func TestANumberOfRequestsIsDrainedPatiently(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		tpot    time.Duration
		ok, cut int
	}{
		{"slow", 5 * time.Second, 9, 0},
		{"silent", 50 * time.Second, 7, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtually(t, func(t *testing.T) {
				server := &fakeServer{ttft: time.Second, tpot: c.tpot, perEvent: 1}
				r, err := benchmark.Run(t.Context(), server.virtual(t), feedOf(outputs(1, 1, 1, 1, 1, 1, 20, 20, 1)), benchmark.Options{
					Concurrency: 3, Requests: 9, Drain: 12 * time.Second,
				}, nil)
				if err != nil {
					t.Fatal(err)
				}
				if r.Requests.OK != c.ok || r.Cut != c.cut {
					t.Errorf("ok %d, cut %d; want %d, %d", r.Requests.OK, r.Cut, c.ok, c.cut)
				}
			})
		})
	}
}

func TestReportTellsWhatItNeedsToBeRead(t *testing.T) {
	virtually(t, func(t *testing.T) {
		server := &fakeServer{ttft: 100 * time.Millisecond}
		rows := []benchmark.Row{
			{Number: 0, InputTokens: 500, OutputTokens: 2},
			{Number: 1, InputTokens: 1024, OutputTokens: 2},
			{Number: 2, InputTokens: 5000, OutputTokens: 2},
		}
		r, err := benchmark.Run(t.Context(), server.virtual(t), feedOf(benchmark.NewWorkload(rows, 0)), benchmark.Options{
			Concurrency: 1, Requests: 6, SLO: benchmark.SLO{TTFT: time.Second, E2E: 50 * time.Millisecond},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Buckets) != 3 || r.Buckets[0].To != 1024 || r.Buckets[1].From != 1024 || r.Buckets[2].From != 4096 || r.Buckets[2].To != 8192 || r.Buckets[2].Requests != 2 {
			t.Errorf("buckets = %+v", r.Buckets)
		}
		if r.Tokens.PromptWanted != 2*6524 || r.Tokens.Prompt != 2*6524 || r.SLO == nil || r.SLO.E2Ems != 50 || r.SLO.TTFTms != 1000 || r.GoodputS != 0 {
			t.Errorf("tokens %+v, SLO %+v, goodput %g", r.Tokens, r.SLO, r.GoodputS)
		}
		if r.Client.Cores < 1 || r.Arrivals != nil || r.Schema != benchmark.ReportSchema {
			t.Errorf("client %+v, arrivals %+v, schema %d", r.Client, r.Arrivals, r.Schema)
		}
		if flags := strings.Join(r.Flags, "\n"); !strings.Contains(flags, "not steady") || strings.Contains(flags, "prompts") {
			t.Errorf("flags = %q", flags)
		}
	})
}

// texts is a feed whose prompts say how long they are, which the fake server, that counts ids, contradicts.
type texts struct{}

func (texts) Next() benchmark.Prompt {
	return benchmark.Prompt{InputTokens: 30, Text: "thirty tokens", OutputTokens: 2}
}
func (texts) Passes() int { return 1 }

func TestReportSaysThatPromptsHadAnotherLength(t *testing.T) {
	virtually(t, func(t *testing.T) {
		server := &fakeServer{ttft: 100 * time.Millisecond}
		r, err := benchmark.Run(t.Context(), server.virtual(t), texts{}, benchmark.Options{Concurrency: 1, Requests: 5}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := "not as long as wanted: 0 tokens instead of 150 (-100.0%)"; r.Tokens.PromptWanted != 150 || !strings.Contains(strings.Join(r.Flags, "\n"), want) {
			t.Errorf("wanted %d tokens, flags = %q", r.Tokens.PromptWanted, r.Flags)
		}
	})
}

// Rows that were only looked at, to know when they are due, do not begin another pass.
func TestPassesAreOfWhatWasSent(t *testing.T) {
	virtually(t, func(t *testing.T) {
		var rows []benchmark.Row
		for i := range 5 {
			rows = append(rows, benchmark.Row{Number: i, At: time.Duration(i) * time.Second, InputTokens: 5, OutputTokens: 2})
		}
		for requests, passes := range map[int]int{5: 1, 6: 2, 11: 3} {
			server := &fakeServer{ttft: 100 * time.Millisecond}
			r, err := benchmark.Run(t.Context(), server.virtual(t), feedOf(benchmark.NewWorkload(rows, 0)), benchmark.Options{
				Arrivals: &benchmark.Arrivals{Process: benchmark.ArrivalsRecorded, Spread: true}, Requests: requests,
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if r.Passes != passes || r.Requests.OK != requests {
				t.Errorf("%d requests of 5 rows: %d passes, want %d; ok %d", requests, r.Passes, passes, r.Requests.OK)
			}
			near(t, "scheduled", r.Arrivals.ScheduledRPS, 1, 0.001)
		}
	})
}
