package benchmark_test

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"sgtune/benchmark"
)

func constant(rate float64) *benchmark.Arrivals {
	return &benchmark.Arrivals{Process: benchmark.ArrivalsConstant, Rate: rate}
}

func TestOpenLoopKeepsItsSchedule(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		arrivals benchmark.Arrivals
	}{
		{"constant", *constant(50)},
		{"poisson", benchmark.Arrivals{Process: benchmark.ArrivalsPoisson, Rate: 50, Seed: 1}},
		{"bursts", benchmark.Arrivals{Process: benchmark.ArrivalsGamma, Rate: 50, Burstiness: 0.3, Seed: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtually(t, func(t *testing.T) {
				server := &fakeServer{ttft: 100 * time.Millisecond, tpot: 10 * time.Millisecond}
				const n, output = 1000, 8
				r, err := benchmark.Run(t.Context(), server.virtual(t), feedOf(lengths(1000, 20, output)), benchmark.Options{
					Arrivals: &c.arrivals, Requests: n,
				}, nil)
				if err != nil {
					t.Fatal(err)
				}
				if r.Requests.Sent != n || r.Requests.OK != n || r.Tokens.Got != n*output || r.Warmup != 0 || r.Cut != 0 {
					t.Errorf("requests %+v, got %d, warm-up %d, cut %d", r.Requests, r.Tokens.Got, r.Warmup, r.Cut)
				}
				a := r.Arrivals
				if a.Scheduled != n || a.Late != 0 || a.Process != c.arrivals.Process {
					t.Errorf("arrivals = %+v", a)
				}
				near(t, "achieved of scheduled", a.AchievedRPS, a.ScheduledRPS, 0.0005)
				near(t, "scheduled", a.ScheduledRPS, 50, 0.15)
				near(t, "TTFT p99", r.TTFTms.P99, 100, 0.02)
				near(t, "ITL max", r.ITLms.Max, 10, 0.02)
				near(t, "concurrency", r.Concurrency.Mean, a.ScheduledRPS*0.170, 0.03) // Little's law
				started, ended := 0, 0
				for _, p := range r.Series {
					started, ended = started+p.Started, ended+p.Ended
				}
				if started != n || ended != n {
					t.Errorf("the series has %d started and %d ended requests", started, ended)
				}
			})
		})
	}
}

// What the server makes requests wait for is in their latency, also of those that were due meanwhile.
func TestOpenLoopOmitsNothing(t *testing.T) {
	t.Parallel()
	t.Run("stall", func(t *testing.T) {
		virtually(t, func(t *testing.T) {
			begin := time.Now()
			server := &fakeServer{ttft: 20 * time.Millisecond}
			server.fault = func(int) string { // nothing is answered from second 2 to 4
				if passed := time.Since(begin); passed > 2*time.Second && passed < 4*time.Second {
					time.Sleep(4*time.Second - passed)
				}
				return ""
			}
			r, err := benchmark.Run(t.Context(), server.virtual(t), feedOf(lengths(100, 20, 4)), benchmark.Options{
				Arrivals: constant(50), Requests: 300,
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			// 100 of 300 were due in the stall, evenly: the ninetieth percentile has waited 2 s · (1 - 30/100).
			near(t, "TTFT max", r.TTFTms.Max, 2000, 0.03)
			near(t, "TTFT p90", r.TTFTms.P90, 1400, 0.03)
			near(t, "TTFT p50", r.TTFTms.P50, 20, 0.03)
			if r.Arrivals.Late != 0 || r.Concurrency.Peak < 95 || r.Concurrency.Peak > 105 {
				t.Errorf("late %d, peak %d; want 0, about 100", r.Arrivals.Late, r.Concurrency.Peak)
			}
		})
	})
	t.Run("limit", func(t *testing.T) {
		virtually(t, func(t *testing.T) {
			server := &fakeServer{ttft: 200 * time.Millisecond}
			a := constant(10)
			a.MaxInFlight = 1
			var samples []benchmark.Request
			r, err := benchmark.Run(t.Context(), server.virtual(t), feedOf(lengths(100, 20, 2)), benchmark.Options{
				Arrivals: a, Requests: 50,
			}, func(q benchmark.Request) { samples = append(samples, q) })
			if err != nil {
				t.Fatal(err)
			}
			for i, q := range samples { // due each 100 ms, sent each 200 ms
				want := time.Duration(i)*100*time.Millisecond + 200*time.Millisecond
				if d := q.TTFT - want; d < -time.Millisecond || d > 5*time.Millisecond {
					t.Fatalf("TTFT of request %d is %v, want %v", i, q.TTFT, want)
				}
			}
			if len(samples) != 50 || r.Concurrency.Peak != 1 || r.Arrivals.Late != 49 {
				t.Errorf("%d samples, peak %d, late %d; want 50, 1, 49", len(samples), r.Concurrency.Peak, r.Arrivals.Late)
			}
			near(t, "scheduled", r.Arrivals.ScheduledRPS, 10, 0.001)
			near(t, "achieved", r.Arrivals.AchievedRPS, 5, 0.01)
			if !strings.Contains(strings.Join(r.Flags, "\n"), "49 of 50 requests were sent more than 10 ms after") ||
				r.Invalid != benchmark.InvalidClientLimited || !strings.Contains(r.Advice, "49 waited because no more were allowed in flight") {
				t.Errorf("flags = %q, invalid %q: %s", r.Flags, r.Invalid, r.Advice)
			}
		})
	})
}

func TestOpenLoopEndsAtItsCap(t *testing.T) {
	virtually(t, func(t *testing.T) {
		server := &fakeServer{ttft: 3 * time.Second}
		r, err := benchmark.Run(t.Context(), server.virtual(t), feedOf(lengths(100, 20, 4)), benchmark.Options{
			Arrivals: constant(20), Window: 2 * time.Second, Cap: 20 * time.Second,
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		// It fills for 3 s, and at 6 s as many have ended as are in flight: three or four windows of warm-up.
		if len(r.Windows) < 13 || len(r.Windows) > 14 || r.Windows[2].Steady || !r.Windows[4].Steady || !r.Steady {
			t.Errorf("%d windows, steady %v: %+v", len(r.Windows), r.Steady, r.Windows)
		}
		near(t, "requests/s", r.RequestsS, 20, 0.01)
		near(t, "output tok/s", r.OutputTokS, 80, 0.01)
		near(t, "concurrency", r.Concurrency.Mean, 60, 0.02)
		if r.Seconds != 20 || r.Requests.Sent != r.Requests.OK || r.Cut != 0 {
			t.Errorf("%g s, %+v, cut %d", r.Seconds, r.Requests, r.Cut)
		}
	})
}

func TestOpenLoopSaysThatRequestsPileUp(t *testing.T) {
	virtually(t, func(t *testing.T) {
		one := make(chan struct{}, 1) // the server answers ten requests a second, one after the other
		server := &fakeServer{ttft: time.Millisecond}
		server.fault = func(int) string {
			one <- struct{}{}
			time.Sleep(100 * time.Millisecond)
			<-one
			return ""
		}
		r, err := benchmark.Run(t.Context(), server.virtual(t), feedOf(lengths(100, 20, 4)), benchmark.Options{
			Arrivals: constant(15), Window: 2 * time.Second, Cap: 20 * time.Second,
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(r.Flags, "\n"), "does not keep up") {
			t.Errorf("flags = %q", r.Flags)
		}
		near(t, "requests/s", r.RequestsS, 10, 0.05)
	})
}

func TestOpenLoopStopsAtADeadEndpoint(t *testing.T) {
	virtually(t, func(t *testing.T) {
		target := benchmark.Target{URL: "http://server.invalid", Dial: refuse}
		r, err := benchmark.Run(t.Context(), target, feedOf(lengths(5, 10, 5)), benchmark.Options{Arrivals: constant(10), Cap: time.Hour}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if n := r.Requests.Failed["refused"]; n < 50 || n > 60 || r.Invalid != "failed_requests" {
			t.Errorf("%d refused of %d, invalid %q", n, r.Requests.Sent, r.Invalid)
		}
	})
}

// talk is a feed of conversations of some turns, each of which must be told what was answered before.
type talk struct {
	t      *testing.T
	turns  int
	pause  time.Duration
	output int

	mu     sync.Mutex
	begun  int
	follow int
}

func (f *talk) Next() benchmark.Prompt {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun++
	return f.turn(f.begun-1, 0, nil)
}

func (f *talk) Passes() int { return 1 }

func (f *talk) turn(row, n int, said []int) benchmark.Prompt {
	p := benchmark.Prompt{Row: benchmark.Row{Number: row}, Turn: n, IDs: append([]int{1000 * row, n}, said...), OutputTokens: f.output}
	if n+1 < f.turns {
		p.Follow = func(a benchmark.Answer) (benchmark.Prompt, time.Duration, bool) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.follow++
			if len(a.IDs) != f.output {
				f.t.Errorf("row %d was told %d ids of its turn %d, want %d", row, len(a.IDs), n, f.output)
			}
			return f.turn(row, n+1, a.IDs), f.pause, true
		}
	}
	return p
}

func TestConversationsFollowTheirAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		opts     benchmark.Options
		begun    int // conversations
		requests int
	}{
		{"closed loop", benchmark.Options{Concurrency: 2, Requests: 12}, 4, 12},
		{"closed loop, the last is cut short", benchmark.Options{Concurrency: 1, Requests: 8}, 3, 8},
		{"open loop", benchmark.Options{Arrivals: constant(0.1), Requests: 12}, 4, 12},
		{"open loop, together", benchmark.Options{Arrivals: constant(1000), Requests: 12}, 12, 12},
		{"closed loop, more clients than begin", benchmark.Options{Concurrency: 9, Requests: 12, Starts: 4}, 4, 12},
		{"closed loop, fewer", benchmark.Options{Concurrency: 3, Requests: 12, Starts: 4}, 4, 12},
		{"open loop, together, as many as begin", benchmark.Options{Arrivals: constant(1000), Requests: 12, Starts: 4}, 4, 12},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtually(t, func(t *testing.T) {
				server := &fakeServer{ttft: 100 * time.Millisecond}
				feed := &talk{t: t, turns: 3, pause: time.Second, output: 4}
				ended := map[int]benchmark.Request{}
				r, err := benchmark.Run(t.Context(), server.virtual(t), feed, c.opts, func(q benchmark.Request) {
					if before, ok := ended[q.Row]; ok {
						if d := q.Intended.Sub(before.Intended.Add(before.E2E)); q.Turn != before.Turn+1 || d != time.Second {
							t.Errorf("row %d: turn %d was due %v after turn %d", q.Row, q.Turn, d, before.Turn)
						}
					} else if q.Turn != 0 {
						t.Errorf("row %d begins with turn %d", q.Row, q.Turn)
					}
					ended[q.Row] = q
				})
				if err != nil {
					t.Fatal(err)
				}
				if r.Requests.Sent != c.requests || r.Requests.OK != c.requests || len(ended) != c.begun || len(server.requests) != c.requests {
					t.Errorf("%+v, %d conversations, the server got %d requests (%v)", r.Requests, len(ended), len(server.requests), r.Errors)
				}
				if a := r.Arrivals; a != nil && (a.Scheduled != c.begun || a.Late != 0) {
					t.Errorf("arrivals = %+v", a)
				}
			})
		})
	}
}

// A conversation that broke off takes its later turns with it: the level ends when nothing is left to send.
func TestConversationsThatBreakOffEndTheLevel(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]benchmark.Options{
		"closed loop": {Concurrency: 3, Requests: 6, Starts: 2},
		"open loop":   {Arrivals: constant(1000), Requests: 6, Starts: 2},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T) {
				server := &fakeServer{ttft: 100 * time.Millisecond, fault: func(n int) string {
					if n == 0 {
						return "http_status"
					}
					return ""
				}}
				r, err := benchmark.Run(t.Context(), server.virtual(t), &talk{t: t, turns: 3, pause: time.Second, output: 4}, opts, nil)
				if err != nil || r.Requests.Sent != 4 || r.Requests.OK != 3 {
					t.Errorf("%+v, %v; want 4 requests, one of them failed", r.Requests, err)
				}
				near(t, "seconds", r.Seconds, 2.3, 0.2)
			})
		})
	}
}

func TestRunRefusesArrivalsWithoutSense(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a    benchmark.Arrivals
		want string
	}{
		{benchmark.Arrivals{Process: "pareto", Rate: 1}, `"pareto"`},
		{benchmark.Arrivals{Process: benchmark.ArrivalsPoisson}, "rate 0"},
		{benchmark.Arrivals{Process: benchmark.ArrivalsConstant, Rate: -3}, "rate -3"},
		{benchmark.Arrivals{Process: benchmark.ArrivalsGamma, Rate: 1, Burstiness: -1}, "burstiness -1"},
		{benchmark.Arrivals{Process: benchmark.ArrivalsRecorded, Speed: -1}, "speed -1"},
		{benchmark.Arrivals{Process: benchmark.ArrivalsRecorded, MaxInFlight: -1}, "-1 requests in flight"},
	} {
		opts := benchmark.Options{Arrivals: &c.a, Requests: 1}
		_, err := benchmark.Run(t.Context(), benchmark.Target{URL: "http://127.0.0.1:1"}, feedOf(lengths(1, 1, 1)), opts, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q in it", c.a, err, c.want)
		}
	}
}

var errRefused = &net.OpError{Op: "dial", Err: fmt.Errorf("connection refused")}
