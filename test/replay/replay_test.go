package replay_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCountsAreExact puts each special mode of the mock under a closed loop of 20 clients: requests by kind of
// failure, tokens and the peak of requests in flight are what the mock counted, whatever an event carries.
func TestCountsAreExact(t *testing.T) {
	dir := programs(t)
	for _, c := range []struct {
		name   string
		flags  []string
		failed map[string]int
		ok     int
	}{
		{"three tokens an event", []string{"-per-chunk", "3"}, nil, 200},
		{"every tenth fails", []string{"-fail-every", "10"}, map[string]int{"http_status": 20}, 180},
		{"every tenth is cut", []string{"-cut-every", "10"}, map[string]int{"cut_stream": 20}, 180},
	} {
		for _, endpoint := range []string{"completions", "chat", "generate"} {
			t.Run(c.name+"/"+endpoint, func(t *testing.T) {
				m := startMock(t, dir, append([]string{"-ttft", "50ms", "-itl", "5ms"}, c.flags...)...)
				r := replay(t, dir, m.url, "--endpoint", endpoint, "--random-output-len", "64", "--concurrency", "20", "--requests", "200")
				told := m.truth(t)
				if r.Requests.Sent != 200 || r.Requests.OK != c.ok || told.Completed != c.ok || told.Requests != 200 {
					t.Errorf("sent %d, ok %d; the mock saw %d and completed %d", r.Requests.Sent, r.Requests.OK, told.Requests, told.Completed)
				}
				if len(c.failed)+len(r.Requests.Failed) > 0 {
					if diff := cmp.Diff(c.failed, r.Requests.Failed); diff != "" {
						t.Errorf("failures (-want +got):\n%s", diff)
					}
				}
				if want := int64(64 * c.ok); r.Tokens.Got != want || told.Tokens != want {
					t.Errorf("%d tokens, the mock sent %d in complete answers, want %d", r.Tokens.Got, told.Tokens, want)
				}
				if r.Concurrency.Peak != 20 || told.Peak != 20 {
					t.Errorf("peak %d, the mock's %d, want 20", r.Concurrency.Peak, told.Peak)
				}
			})
		}
	}
}

// TestAStallIsSeen stops the mock for two seconds: in a closed loop the gap between two tokens shows it, in an open
// one also the first token of the requests that were due meanwhile, counted from when they were due.
func TestAStallIsSeen(t *testing.T) {
	dir := programs(t)
	t.Run("closed loop", func(t *testing.T) {
		m := startMock(t, dir, "-ttft", "50ms", "-itl", "10ms", "-stall", "2s", "-stall-at", "1s")
		r := replay(t, dir, m.url, "--endpoint", "completions", "--random-output-len", "200", "--concurrency", "20", "--requests", "20")
		if told := m.truth(t); math.Abs(r.ITL.Max-told.ITL.Max) > 25 || r.ITL.Max < 1900 {
			t.Errorf("longest gap %.0f ms, the mock's own %.0f", r.ITL.Max, told.ITL.Max)
		}
	})
	t.Run("open loop", func(t *testing.T) {
		m := startMock(t, dir, "-ttft", "20ms", "-itl", "5ms", "-stall", "2s", "-stall-at", "2s")
		r := replay(t, dir, m.url, "--endpoint", "completions", "--random-output-len", "8", "--rate", "50", "--requests", "300")
		told := m.truth(t)
		if math.Abs(r.TTFT.P99-told.TTFT.P99) > 25 || r.TTFT.P99 < 1500 {
			t.Errorf("TTFT p99 %.0f ms, the mock's own %.0f", r.TTFT.P99, told.TTFT.P99)
		}
		if r.Requests.Sent != 300 || r.Requests.OK != 300 {
			t.Errorf("%+v", r.Requests)
		}
	})
}

// TestTheRateIsKept sends 500 requests a second for 20 seconds, drawn from a Poisson process.
func TestTheRateIsKept(t *testing.T) {
	dir := programs(t)
	for _, arrivals := range []string{"poisson", "constant", "gamma"} {
		t.Run(arrivals, func(t *testing.T) {
			const rate, requests = 500, 5_000
			m := startMock(t, dir, "-ttft", "20ms")
			r := replay(t, dir, m.url, "--endpoint", "completions", "--random-output-len", "8",
				"--rate", fmt.Sprint(rate), "--arrivals", arrivals, "--requests", fmt.Sprint(requests))
			told := m.truth(t)
			if r.Requests.OK != requests || told.Completed != requests || r.Tokens.Got != 8*requests {
				t.Errorf("%+v, %d tokens; the mock completed %d", r.Requests, r.Tokens.Got, told.Completed)
			}
			if off := r.Arrivals.Achieved/r.Arrivals.Scheduled - 1; math.Abs(off) > 0.005 {
				t.Errorf("achieved %.2f requests/s of a schedule of %.2f", r.Arrivals.Achieved, r.Arrivals.Scheduled)
			}
			if off := r.Arrivals.Scheduled/rate - 1; math.Abs(off) > 0.06 {
				t.Errorf("a schedule of %.1f requests/s was drawn for %d", r.Arrivals.Scheduled, rate)
			}
			t.Logf("scheduled %.2f, achieved %.2f, the mock saw %.2f requests/s; send lag p99 %.2f ms", r.Arrivals.Scheduled, r.Arrivals.Achieved, told.Rate, r.Client.SendLag.P99)
		})
	}
}
