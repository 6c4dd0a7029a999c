package benchmark_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"sgtune/benchmark"
)

// fakeServer answers /generate with known delays and faults and keeps what it saw and did.
type fakeServer struct {
	ttft, tpot time.Duration
	perEvent   int                // tokens merged into one event, 0 = 1
	fault      func(n int) string // of the n-th request, from 0
	cached     int                // cached_tokens of every answer
	linger     time.Duration      // between [DONE] and the end of the answer
	quiet      bool               // nothing of what was seen is kept

	mu       sync.Mutex
	served   int
	requests []seen
	tokens   []stamp
}

// seen is one request as the server lived it.
type seen struct {
	ids        []int
	wanted     int
	ignoreEOS  bool
	authorized string
}

type stamp struct {
	at time.Time
	n  int
}

// start serves on a real port.
func (f *fakeServer) start(t testing.TB) benchmark.Target {
	t.Helper()
	server := httptest.NewServer(f.handler())
	t.Cleanup(server.Close)
	return benchmark.Target{URL: server.URL}
}

func (f *fakeServer) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /generate", f.generate)
	return mux
}

// virtual serves through pipes in memory, for tests in a synctest bubble: time there moves only when
// everybody waits, so that delays are exact however busy the machine is.
func (f *fakeServer) virtual(t *testing.T) benchmark.Target {
	t.Helper()
	l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: f.handler()}
	done := make(chan error)
	go func() { done <- server.Serve(l) }()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	return benchmark.Target{URL: "http://server.invalid", Dial: l.dial}
}

// pipes is a listener whose connections are pipes in memory.
type pipes struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

func (f *fakeServer) generate(w http.ResponseWriter, r *http.Request) {
	begin := time.Now()
	var body struct {
		IDs      []int `json:"input_ids"`
		Stream   bool  `json:"stream"`
		Sampling struct {
			Max       int  `json:"max_new_tokens"`
			IgnoreEOS bool `json:"ignore_eos"`
		} `json:"sampling_params"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || !body.Stream {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	s := seen{ids: body.IDs, wanted: body.Sampling.Max, ignoreEOS: body.Sampling.IgnoreEOS, authorized: r.Header.Get("Authorization")}
	f.mu.Lock()
	n := f.served
	f.served++
	if !f.quiet {
		f.requests = append(f.requests, s)
	}
	f.mu.Unlock()
	fault := ""
	if f.fault != nil {
		fault = f.fault(n)
	}
	if fault == "http_status" {
		http.Error(w, `{"error":"queue full"}`, http.StatusServiceUnavailable)
		return
	}
	f.stream(w, r, s, begin, fault)
}

func (f *fakeServer) stream(w http.ResponseWriter, r *http.Request, s seen, begin time.Time, fault string) {
	w.Header().Set("Content-Type", "text/event-stream")
	flush := w.(http.Flusher).Flush
	step, wanted := max(1, f.perEvent), s.wanted
	if fault == "wrong_tokens" {
		wanted--
	}
	ids := []int{}
	for done := 0; done < wanted; {
		fresh := min(step, wanted-done)
		if done == 0 {
			fresh = 1
		}
		done += fresh
		due := begin.Add(f.ttft + time.Duration(done-1)*f.tpot)
		if fault == "hang" && done > 1 {
			<-r.Context().Done()
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(time.Until(due)):
		}
		for range fresh {
			ids = append(ids, 1000+len(ids))
		}
		f.event(w, ids, s, done == wanted)
		flush()
		now := time.Now()
		f.mu.Lock()
		if !f.quiet {
			f.tokens = append(f.tokens, stamp{now, fresh})
		}
		f.mu.Unlock()
		if done >= wanted/2 && breakOff(w, fault) {
			return
		}
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
	flush()
	time.Sleep(f.linger)
}

func (f *fakeServer) event(w http.ResponseWriter, ids []int, s seen, last bool) {
	finish := "null"
	if last {
		finish = `{"type":"length","length":8}`
	}
	list, _ := json.Marshal(ids)
	// The text tries to look like the field the client scans for.
	fmt.Fprintf(w, `data: {"text":"say \"completion_tokens\":9999 twice","output_ids":%s,"meta_info":{"id":"x","finish_reason":%s,"prompt_tokens":%d,"cached_tokens":%d,"completion_tokens":%d}}`+"\n\n",
		list, finish, len(s.ids), f.cached, len(ids))
}

// breakOff ends an answer half way, as the fault says.
func breakOff(w http.ResponseWriter, fault string) bool {
	switch fault {
	case "stream_error":
		fmt.Fprint(w, `data: {"error":{"message":"out of memory","code":500}}`+"\n\ndata: [DONE]\n\n")
		return true
	case "cut_stream", "reset":
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		if tcp, ok := conn.(*net.TCPConn); ok && fault == "reset" {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
		return true
	}
	return false
}

// tokensBetween counts what the server sent in an interval.
func (f *fakeServer) tokensBetween(from, to time.Time) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, s := range f.tokens {
		if !s.at.Before(from) && s.at.Before(to) {
			n += s.n
		}
	}
	return n
}

// lengths is a workload of n equal rows without shared prefixes.
func lengths(n, input, output int) *benchmark.Workload {
	var rows []benchmark.Row
	for i := range n {
		rows = append(rows, benchmark.Row{Number: i, InputTokens: input, OutputTokens: output})
	}
	return benchmark.NewWorkload(rows, 0)
}

// testPalette is a palette of plain numbers.
func testPalette() benchmark.Palette {
	p := benchmark.Palette{}
	for i := range 1000 {
		p.IDs = append(p.IDs, 10_000+i)
	}
	return p
}

// fastClock is a host clock at a scale, like a simulated host's.
type fastClock struct {
	start time.Time
	scale float64
}

func newFastClock(scale float64) fastClock { return fastClock{time.Now(), scale} }

func (c fastClock) Now() time.Time {
	return c.start.Add(time.Duration(float64(time.Since(c.start)) * c.scale))
}
func (c fastClock) Scale() float64 { return c.scale }
func (c fastClock) After(d time.Duration) <-chan time.Time {
	return time.After(time.Duration(float64(d) / c.scale))
}

func (c fastClock) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.After(d):
		return nil
	}
}
