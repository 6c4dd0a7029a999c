package benchmark_test

import (
	"context"
	"testing"
	"time"

	"sgtune/benchmark"
)

// stepClock is a clock that a test sets.
type stepClock struct{ now time.Time }

func (c *stepClock) Now() time.Time                               { return c.now }
func (c *stepClock) Sleep(context.Context, time.Duration) error   { return nil }
func (c *stepClock) After(time.Duration) <-chan time.Time         { return nil }
func (c *stepClock) Scale() float64                               { return 1 }
func (c *stepClock) until(start time.Time, elapsed time.Duration) { c.now = start.Add(elapsed) }

// Two clients, each request takes a second of which half is the wait for its first token, and makes ten tokens:
// 20 tok/s, 2 requests/s, and a level that ends as soon as five windows behind the first say so.
func TestFoldOfARegularLevel(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := &stepClock{now: start}
	f, err := benchmark.NewFold(benchmark.Options{Clock: clock, Concurrency: 2, Window: 10 * time.Second, Cap: 10 * time.Minute, Target: 0.03})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		f.Sent()
	}
	for second := time.Second; !f.Over() && second < time.Hour; second += time.Second {
		clock.until(start, second-time.Second/2)
		f.Tokens(2, 200)
		clock.until(start, second-time.Millisecond)
		f.Tokens(18, 0)
		for range 2 {
			sent := start.Add(second - time.Second)
			f.Finished(benchmark.Request{
				Intended: sent, Sent: sent, TTFT: 500 * time.Millisecond, E2E: 999 * time.Millisecond,
				InputWanted: 100, Prompt: 100, Cached: 25, Output: 10, Wanted: 10,
			}, 0)
			f.Sent()
		}
		clock.until(start, second)
		if second%(10*time.Second) == 0 {
			f.WindowEnded()
		}
	}
	r := f.Report()
	if len(r.Windows) != 6 || !r.Steady || !r.Valid {
		t.Fatalf("%d windows, steady %v, valid %v (%s)", len(r.Windows), r.Steady, r.Valid, r.Advice)
	}
	if r.OutputTokS != 20 || r.RequestsS != 2 || r.PromptTokS != 200 || r.CacheHitRatio != 0.25 {
		t.Errorf("%.2f tok/s, %.2f requests/s, %.1f prompt tok/s, hit ratio %.2f", r.OutputTokS, r.RequestsS, r.PromptTokS, r.CacheHitRatio)
	}
	if r.TTFTms == nil || r.TTFTms.P50 != 500 || r.TPOTms == nil || r.TPOTms.P50 < 55 || r.TPOTms.P50 > 56 {
		t.Errorf("TTFT %+v, TPOT %+v", r.TTFTms, r.TPOTms)
	}
	if r.OutputLow > 20 || r.OutputHigh < 20 || r.Passes != 1 {
		t.Errorf("interval %.2f to %.2f, %d passes", r.OutputLow, r.OutputHigh, r.Passes)
	}
}

// A fill ends with its prompt tokens; nothing more may be sent, and the report counts what was cut.
func TestFoldOfAFill(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := &stepClock{now: start}
	f, err := benchmark.NewFold(benchmark.Options{Clock: clock, Concurrency: 1, Window: 10 * time.Second, PromptTokens: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for k := 1; k <= 10; k++ {
		if !f.Sent() {
			t.Fatalf("request %d was refused", k)
		}
		clock.until(start, time.Duration(k)*time.Second-time.Millisecond)
		f.Tokens(1, 100)
		if k == 10 {
			f.Cut()
			break
		}
		f.Finished(benchmark.Request{Intended: clock.now.Add(-time.Second), Sent: clock.now.Add(-time.Second), TTFT: time.Second, E2E: time.Second, Prompt: 100, Output: 1, Wanted: 1}, 0)
	}
	if !f.Over() || f.Sent() {
		t.Error("1,000 prompt tokens came and the fill goes on")
	}
	if r := f.Report(); r.Cut != 1 || r.Requests.OK != 9 || r.PromptTokS < 99 || r.PromptTokS > 101 {
		t.Errorf("cut %d, ok %d, %.1f prompt tok/s", r.Cut, r.Requests.OK, r.PromptTokS)
	}
	if _, err := benchmark.NewFold(benchmark.Options{Clock: clock, Concurrency: 1}); err == nil {
		t.Error("a level without an end was accepted")
	}
}
