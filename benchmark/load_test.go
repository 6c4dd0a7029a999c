package benchmark_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sgtune/benchmark"
)

func feedOf(w *benchmark.Workload) benchmark.Feed {
	return benchmark.NewFeed(w, 0, w.Len(), "test", testPalette())
}

// near fails unless got is within a share of want.
func near(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if math.Abs(got-want) > share*math.Abs(want) {
		t.Errorf("%s = %.4g, want %.4g within %.0f%%", what, got, want, 100*share)
	}
}

// virtually runs a test in virtual time (testing/synctest).
func virtually(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

func TestRunTellsKnownDelays(t *testing.T) {
	virtually(t, func(t *testing.T) {
		server := &fakeServer{ttft: 200 * time.Millisecond, tpot: 20 * time.Millisecond, perEvent: 3, cached: 25}
		target := server.virtual(t)
		const clients, output = 8, 16
		r, err := benchmark.Run(t.Context(), target, feedOf(lengths(1000, 100, output)), benchmark.Options{
			Concurrency: clients, Window: 5 * time.Second, Cap: 40 * time.Second,
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "TTFT p50", r.TTFTms.P50, 200, 0.02)
		near(t, "TTFT p99", r.TTFTms.P99, 200, 0.02)
		near(t, "E2E p50", r.E2Ems.P50, 500, 0.02)
		near(t, "TPOT p50", r.TPOTms.P50, 20, 0.02)
		near(t, "ITL p50", r.ITLms.P50, 20, 0.02) // an event of three tokens is three gaps of a third
		near(t, "ITL p99", r.ITLms.P99, 20, 0.02)
		near(t, "output tok/s", r.OutputTokS, clients*output/0.5, 0.02)
		near(t, "requests/s", r.RequestsS, clients/0.5, 0.02)
		near(t, "concurrency", r.Concurrency.Mean, clients, 0.02)
		near(t, "cache hit ratio", r.CacheHitRatio, 0.25, 1e-9)
		for _, w := range r.Windows {
			sent := server.tokensBetween(w.Start, w.Start.Add(5*time.Second))
			near(t, "tok/s of a window", w.Output, float64(sent)/5, 0.02)
		}
		if r.Concurrency.Peak != clients || r.Client.SendLagMs.P99 > 1 {
			t.Errorf("peak = %d, want %d; send lag %g ms", r.Concurrency.Peak, clients, r.Client.SendLagMs.P99)
		}
		if r.Requests.Sent != r.Requests.OK || r.Tokens.Got != int64(r.Requests.OK*output) || len(r.Windows) != 9 || r.Windows[0].Steady || r.Seconds != 40 || !r.Steady {
			t.Errorf("sent %d, ok %d, tokens got %d; %d windows, steady %v", r.Requests.Sent, r.Requests.OK, r.Tokens.Got, len(r.Windows), r.Steady)
		}
	})
}

func TestRunCountsEveryKindOfFailure(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"http_status", "stream_error", "cut_stream", "wrong_tokens", "timeout"} {
		t.Run(kind, func(t *testing.T) {
			virtually(t, func(t *testing.T) { countFailures(t, kind, (*fakeServer).virtual) })
		})
	}
	t.Run("reset", func(t *testing.T) { // only a real connection can be reset
		t.Parallel()
		countFailures(t, "reset", func(f *fakeServer, t *testing.T) benchmark.Target { return f.start(t) })
	})
}

// countFailures lets every fifth of 60 requests fail in one way.
func countFailures(t *testing.T, kind string, start func(*fakeServer, *testing.T) benchmark.Target) {
	server := &fakeServer{ttft: 5 * time.Millisecond, tpot: time.Millisecond}
	server.fault = func(n int) string {
		if n%5 != 2 {
			return ""
		}
		if kind == "timeout" {
			return "hang"
		}
		return kind
	}
	const requests, output = 60, 12
	var samples []benchmark.Request
	r, err := benchmark.Run(t.Context(), start(server, t), feedOf(lengths(17, 50, output)), benchmark.Options{
		Concurrency: 8, Requests: requests, Timeout: 10 * time.Second,
	}, func(q benchmark.Request) { samples = append(samples, q) })
	if err != nil {
		t.Fatal(err)
	}
	if r.Requests.Sent != requests || r.Requests.OK != 48 || len(samples) != requests {
		t.Errorf("sent %d, ok %d, samples %d; want 60, 48, 60", r.Requests.Sent, r.Requests.OK, len(samples))
	}
	want := map[string]int{kind: 12}
	if fmt.Sprint(r.Requests.Failed) != fmt.Sprint(want) {
		t.Errorf("failed = %v, want %v (%v)", r.Requests.Failed, want, r.Errors)
	}
	if r.Tokens.Got != 48*output || r.Tokens.Wanted != requests*output || r.Tokens.Prompt != 48*50 {
		t.Errorf("tokens = %+v", r.Tokens)
	}
	invalid := "failed_requests"
	if kind == "wrong_tokens" {
		invalid = "wrong_token_count"
	}
	if r.Valid || r.Invalid != invalid || r.Advice == "" {
		t.Errorf("valid %v, invalid %q, want %q", r.Valid, r.Invalid, invalid)
	}
}

func TestRunStopsAtADeadEndpoint(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + listener.Addr().String()
	_ = listener.Close()
	r, err := benchmark.Run(t.Context(), benchmark.Target{URL: url}, feedOf(lengths(5, 10, 5)),
		benchmark.Options{Concurrency: 4, Cap: time.Hour}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Requests.Failed["refused"] < 20 || r.Requests.OK != 0 || r.Invalid != "failed_requests" {
		t.Errorf("report = %+v", r.Requests)
	}
	if !strings.Contains(strings.Join(r.Flags, "\n"), "ended early") {
		t.Errorf("flags = %q", r.Flags)
	}
}

func TestRunReachesTheServerThroughDial(t *testing.T) {
	t.Parallel()
	server := &fakeServer{}
	target := server.start(t)
	address := strings.TrimPrefix(target.URL, "http://")
	var mu sync.Mutex
	dials := 0
	target.URL = "http://server.invalid:30000"
	target.Header = map[string][]string{"authorization": {"Bearer k"}}
	target.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		mu.Lock()
		dials++
		mu.Unlock()
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	r, err := benchmark.Run(t.Context(), target, feedOf(lengths(9, 64, 3)), benchmark.Options{Concurrency: 3, Requests: 60}, nil)
	if err != nil {
		t.Fatal(err)
	}
	// A connection that comes up while another one is freed is one more than clients.
	if r.Requests.OK != 60 || dials < 3 || dials > 12 {
		t.Errorf("ok %d over %d connections, want 60 over 3 or few more (%v)", r.Requests.OK, dials, r.Errors)
	}
	for _, s := range server.requests {
		if s.authorized != "Bearer k" || !s.ignoreEOS || s.wanted != 3 || len(s.ids) != 64 {
			t.Fatalf("the server got %+v", s)
		}
	}
}

func TestRunInScaledTime(t *testing.T) {
	virtually(t, func(t *testing.T) {
		const scale = 20
		server := &fakeServer{ttft: 100 * time.Millisecond, tpot: 10 * time.Millisecond, perEvent: 2}
		target := server.virtual(t)
		r, err := benchmark.Run(t.Context(), target, feedOf(lengths(50, 30, 11)), benchmark.Options{
			Clock: newFastClock(scale), Concurrency: 4, Window: 10 * time.Second, Cap: 40 * time.Second,
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "TTFT p50", r.TTFTms.P50, scale*100, 0.02)
		near(t, "TPOT p50", r.TPOTms.P50, scale*10, 0.02)
		if r.ITLms != nil || r.TTFTResolutionMs != 5*scale {
			t.Errorf("ITL %v, TTFT resolution %v ms; want none, 100", r.ITLms, r.TTFTResolutionMs)
		}
		if len(r.Windows) != 5 || r.Windows[0].Seconds != 10 || r.Seconds != 40 { // one of warm-up, then the cap
			t.Errorf("windows = %+v", r.Windows)
		}
	})
}

func TestRunCutsWhatDoesNotDrain(t *testing.T) {
	virtually(t, func(t *testing.T) {
		server := &fakeServer{ttft: 10 * time.Millisecond, tpot: 10 * time.Second}
		target := server.virtual(t)
		begin := time.Now()
		r, err := benchmark.Run(t.Context(), target, feedOf(lengths(50, 30, 9)), benchmark.Options{
			Concurrency: 5, Window: 200 * time.Millisecond, Cap: 400 * time.Millisecond, Drain: 200 * time.Millisecond,
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Cut != 5 || r.Requests.Sent != 0 || len(r.Flags) == 0 {
			t.Errorf("cut %d, sent %d, flags %q; want 5, 0", r.Cut, r.Requests.Sent, r.Flags)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestRunDrainsIntoTheCountsNotTheRate(t *testing.T) {
	virtually(t, func(t *testing.T) {
		server := &fakeServer{ttft: 650 * time.Millisecond} // between two windows: at a border either may come first
		target := server.virtual(t)
		r, err := benchmark.Run(t.Context(), target, feedOf(lengths(50, 30, 2)), benchmark.Options{
			Concurrency: 5, Window: 100 * time.Millisecond, Cap: 300 * time.Millisecond,
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Requests.OK != 5 || r.Tokens.Got != 10 || r.OutputTokS != 0 || r.RequestsS != 0 {
			t.Errorf("ok %d, got %d, %g tok/s, %g requests/s; want 5, 10, 0, 0", r.Requests.OK, r.Tokens.Got, r.OutputTokS, r.RequestsS)
		}
		if r.Invalid != "client_hung" {
			t.Errorf("invalid = %q, want client_hung", r.Invalid)
		}
	})
}

func TestRunEndsWithItsContext(t *testing.T) {
	virtually(t, func(t *testing.T) {
		server := &fakeServer{ttft: time.Minute}
		target := server.virtual(t)
		why := errors.New("user pressed Ctrl-C")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(100*time.Millisecond, func() { cancel(why) })
		r, err := benchmark.Run(ctx, target, feedOf(lengths(5, 10, 5)), benchmark.Options{Concurrency: 3, Cap: time.Hour}, nil)
		if !errors.Is(err, why) || r == nil || r.Cut != 3 {
			t.Errorf("err %v, report %+v", err, r)
		}
	})
}

func TestRunAsksPruneAndStopsWhenKnown(t *testing.T) {
	t.Parallel()
	options := func() benchmark.Options {
		return benchmark.Options{Concurrency: 4, Window: 100 * time.Millisecond, Warmup: 150 * time.Millisecond, Cap: 20 * time.Second}
	}
	t.Run("prune", func(t *testing.T) {
		virtually(t, func(t *testing.T) {
			server := &fakeServer{ttft: 2 * time.Millisecond}
			target := server.virtual(t)
			opts := options()
			live := 0
			opts.OnWindow = func(benchmark.Window) { live++ }
			opts.Prune = func(windows []float64) bool { return len(windows) == 5 }
			r, err := benchmark.Run(t.Context(), target, feedOf(lengths(50, 10, 4)), opts, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !r.Pruned || len(r.Windows) != 5 || live != 5 {
				t.Errorf("pruned %v after %d windows, %d told; want true, 5, 5", r.Pruned, len(r.Windows), live)
			}
			if r.Windows[0].Steady || r.Windows[1].Steady || r.Warmup == 0 {
				t.Errorf("warm-up counted as measured: %+v", r.Windows)
			}
		})
	})
	t.Run("known", func(t *testing.T) {
		virtually(t, func(t *testing.T) {
			server := &fakeServer{ttft: 20 * time.Millisecond}
			target := server.virtual(t)
			opts := options()
			opts.Target = 0.5
			r, err := benchmark.Run(t.Context(), target, feedOf(lengths(50, 10, 4)), opts, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !r.Steady || len(r.Windows) > 100 || r.OutputLow <= 0 || r.OutputHigh < r.OutputTokS || r.OutputLow > r.OutputTokS {
				t.Errorf("steady %v, %d windows, %g in [%g, %g]", r.Steady, len(r.Windows), r.OutputTokS, r.OutputLow, r.OutputHigh)
			}
		})
	})
}

func TestRunFillsToPromptTokens(t *testing.T) {
	virtually(t, func(t *testing.T) {
		server := &fakeServer{ttft: time.Millisecond}
		target := server.virtual(t)
		r, err := benchmark.Run(t.Context(), target, feedOf(lengths(7, 100, 2)), benchmark.Options{
			Concurrency: 4, PromptTokens: 5000, Cap: time.Minute,
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Tokens.Prompt < 5000 || r.Tokens.Prompt > 5000+8*100 {
			t.Errorf("filled %d prompt tokens, want 5000 and little more", r.Tokens.Prompt)
		}
		if r.Passes < 7 {
			t.Errorf("passes = %d, want at least 7", r.Passes)
		}
	})
}

func TestRunRefusesALevelWithoutSense(t *testing.T) {
	t.Parallel()
	good := benchmark.Options{Concurrency: 1, Requests: 1}
	for name, c := range map[string]struct {
		url  string
		opts benchmark.Options
	}{
		"no clients": {"http://127.0.0.1:1", benchmark.Options{Cap: time.Second}},
		"no end":     {"http://127.0.0.1:1", benchmark.Options{Concurrency: 1}},
		"no host":    {"30000", good},
	} {
		if _, err := benchmark.Run(t.Context(), benchmark.Target{URL: c.url}, feedOf(lengths(1, 1, 1)), c.opts, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Not parallel: it counts goroutines.
func TestRunLeavesNoGoroutine(t *testing.T) {
	server := &fakeServer{ttft: 10 * time.Millisecond, tpot: 10 * time.Second}
	target := server.start(t)
	before := runtime.NumGoroutine()
	_, err := benchmark.Run(t.Context(), target, feedOf(lengths(50, 30, 9)), benchmark.Options{
		Concurrency: 20, Window: 50 * time.Millisecond, Cap: 100 * time.Millisecond, Drain: 50 * time.Millisecond,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	// The server's own side of the connections ends a moment later.
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			stacks := make([]byte, 64<<10)
			t.Fatalf("%d goroutines before, %d after:\n%s", before, runtime.NumGoroutine(), stacks[:runtime.Stack(stacks, true)])
		}
	}
}
