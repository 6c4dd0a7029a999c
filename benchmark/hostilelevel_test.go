package benchmark_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"sgtune/benchmark"
)

// The server dies in the middle of a level that was asked for a number of requests: each is counted once.
func TestServerDiesMidLevel(t *testing.T) {
	t.Parallel()
	const requests, alive = 40, 20
	dead := make(chan struct{})
	var once sync.Once
	h := &hostile{say: func(n int, c net.Conn, wanted int) bool {
		if n >= alive {
			once.Do(func() { close(dead) })
			return false
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n"+eventStream+chunks(tokenEvents(wanted)))
		return true
	}}
	target := h.start(t)
	addr := strings.TrimPrefix(target.URL, "http://")
	target.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		select {
		case <-dead:
			return nil, errors.New("no route") // no *net.OpError: a tunnel's own
		default:
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		}
	}
	r, err := benchmark.Run(t.Context(), target, feedOf(lengths(10, 9, 4)), benchmark.Options{Concurrency: 4, Requests: requests}, nil)
	if err != nil {
		t.Fatal(err)
	}
	failed := r.Requests.Failed
	if r.Requests.Sent != requests || r.Requests.OK != alive || failed["reset"] != 4 || failed["refused"] != 16 {
		t.Errorf("%+v: %q", r.Requests, r.Errors)
	}
	started, ended, bad := 0, 0, 0
	for _, p := range r.Series {
		started, ended, bad = started+p.Started, ended+p.Ended, bad+p.Failed
	}
	if started != requests || ended != requests || bad != requests-alive {
		t.Errorf("by the second: %d started, %d ended, %d failed", started, ended, bad)
	}
}

// Retries are counted, the server gets as many requests as there were tries, and what is tried again is one
// request; no more than allowed are in flight at once.
func TestRetriesOfHostileServer(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]benchmark.Options{
		"closed": {Concurrency: 4},
		"open":   {Arrivals: &benchmark.Arrivals{Process: benchmark.ArrivalsConstant, Rate: 500, MaxInFlight: 4}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &hostile{say: func(n int, c net.Conn, wanted int) bool {
				switch n % 4 {
				case 0:
					return false
				case 1:
					_, _ = io.WriteString(c, "HTTP/1.1 500 Oh\r\n"+length("no"))
				default:
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n"+eventStream+chunks(tokenEvents(wanted)))
				}
				return true
			}}
			opts.Requests, opts.Retries, opts.Timeout = 60, 20, 20*time.Second
			samples, attempts := 0, 0
			r, err := benchmark.Run(t.Context(), h.start(t), feedOf(lengths(10, 9, 4)), opts, func(q benchmark.Request) { samples++; attempts += q.Attempts })
			if err != nil {
				t.Fatal(err)
			}
			got, _ := h.counts()
			if r.Requests.OK != 60 || samples != 60 || r.Attempts != got || attempts != got || r.Tokens.Got != 240 {
				t.Errorf("%+v, %d samples, %d attempts, the server got %d: %q", r.Requests, samples, r.Attempts, got, r.Errors)
			}
			if r.Concurrency.Peak > 4 || r.Concurrency.Mean > 4 {
				t.Errorf("concurrency %+v", r.Concurrency)
			}
			tokens, started := 0.0, 0
			for _, p := range r.Series {
				tokens, started = tokens+p.OutputTokS, started+p.Started
			}
			if tokens != 240 || started != got {
				t.Errorf("by the second: %g tokens, %d started", tokens, started)
			}
		})
	}
}

// A conversation ends with its first turn that fails; the others go on, and every turn sent is counted.
func TestConversationsOfHostileServer(t *testing.T) {
	t.Parallel()
	conversations := func() *benchmark.Workload {
		var rows []benchmark.Row
		for i := range 30 {
			rows = append(rows, benchmark.Row{Number: i, Text: "hello", OutputTokens: 2 + i%3, Session: fmt.Sprint(i / 3), Follows: i%3 > 0})
		}
		return benchmark.NewWorkload(rows, 0)
	}
	for name, opts := range map[string]benchmark.Options{
		"closed": {Concurrency: 3},
		"open":   {Arrivals: &benchmark.Arrivals{Process: benchmark.ArrivalsConstant, Rate: 500, MaxInFlight: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &hostile{say: func(n int, c net.Conn, wanted int) bool {
				if wanted == 3 && n%2 == 0 { // of second turns
					return false
				}
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n"+eventStream+chunks(tokenEvents(wanted)))
				return true
			}}
			opts.Requests, opts.Timeout = 40, 20*time.Second
			turns := map[int]int{}
			failed := 0
			r, err := benchmark.Run(t.Context(), h.start(t), feedOf(conversations()), opts, func(q benchmark.Request) {
				turns[q.Turn]++
				if q.Failed != "" {
					failed++
				}
				if q.Turn != q.Row%3 || q.Failed != "" && q.Turn != 1 {
					t.Errorf("row %d was sent as turn %d: %q", q.Row, q.Turn, q.Failed)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			got, _ := h.counts()
			if r.Requests.Sent != 40 || got != 40 || failed == 0 || r.Requests.Failed["reset"] != failed || turns[2] > turns[1]-failed || turns[2] == 0 {
				t.Errorf("%+v, the server got %d; by turn %v, %d failed: %q", r.Requests, got, turns, failed, r.Errors)
			}
			if r.Concurrency.Peak > 3 {
				t.Errorf("peak %d", r.Concurrency.Peak)
			}
		})
	}
}

// A level that is interrupted again and again at any moment leaves no request uncounted.
func TestInterruptedAnywhere(t *testing.T) {
	t.Parallel()
	h := &hostile{say: func(n int, c net.Conn, wanted int) bool {
		if n%3 == 0 {
			time.Sleep(time.Millisecond)
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n"+eventStream+chunks(tokenEvents(wanted)))
		return n%7 != 0
	}}
	target := h.start(t)
	for i := range 40 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond/4)
		samples := 0
		opts := benchmark.Options{Concurrency: 4, Cap: time.Hour}
		if i%2 == 0 {
			opts = benchmark.Options{Arrivals: &benchmark.Arrivals{Process: benchmark.ArrivalsPoisson, Rate: 2000}, Cap: time.Hour}
		}
		r, err := benchmark.Run(ctx, target, feedOf(lengths(10, 9, 4)), opts, func(benchmark.Request) { samples++ })
		cancel()
		if err == nil || r == nil {
			t.Fatalf("report %v, error %v", r, err)
		}
		failed := 0
		for _, n := range r.Requests.Failed {
			failed += n
		}
		if r.Requests.Sent != samples || r.Requests.OK+failed != samples || math.IsNaN(r.OutputTokS) || math.IsNaN(r.Concurrency.Mean) {
			t.Errorf("%+v of %d samples, %g tok/s, concurrency %+v", r.Requests, samples, r.OutputTokS, r.Concurrency)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Error(err)
		}
	}
}
