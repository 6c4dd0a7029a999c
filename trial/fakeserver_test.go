package trial_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sgtune/host"
)

// startLog is what a healthy server prints before its HTTP server is there.
const startLog = `[2026-01-01 22:00:10] server_args={'model_path': 'm', 'mem_fraction_static': 0.88, 'tp_size': 2, 'chunked_prefill_size': 256, 'api_key': 'TOPSECRET'}
[2026-01-01 22:00:20 TP0] Init parallel begin.
[2026-01-01 22:00:21 TP0] Load weight begin. avail mem=94.04 GB
[2026-01-01 22:01:00 TP0] Load weight end. elapsed=39.00 s, type=Fake, avail mem=21.71 GB, mem usage=72.33 GB.
[2026-01-01 22:01:00 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 2000, KV size: 10.42 GB
[2026-01-01 22:01:01 TP0] Memory pool end. avail mem=11.31 GB
[2026-01-01 22:01:05 TP0] max_total_num_tokens=2000, chunked_prefill_size=256, max_prefill_tokens=16384, max_running_requests=64, context_len=4096, available_gpu_mem=5.47 GB
`

const readyLine = "[2026-01-01 22:01:31] The server is fired up and ready to roll!\n"

// prefillOOM is what rank 1 prints when it runs out of memory in prefill.
const prefillOOM = `[2026-01-01 22:05:00 TP1] Scheduler hit an exception: Traceback (most recent call last):
  File "sglang/srt/managers/scheduler.py", line 2761, in run_scheduler_process
    scheduler.event_loop_overlap()
  File "sglang/srt/model_executor/model_runner.py", line 1800, in forward_extend
    return self.model.forward(
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. GPU 1 has a total capacity of 94.99 GiB of which 838.00 MiB is free.
[2026-01-01 22:05:01] SIGQUIT received. signum=None, frame=None. It usually means one child failed.
`

// fakeServer speaks as much of SGLang's HTTP API as a trial needs.
type fakeServer struct {
	h      *fakeHost
	part   *fakePart
	script script
	port   string

	generated atomic.Int64
	flushes   atomic.Int64
	closing   sync.Once
	stop      chan struct{}
	http      *http.Server
	up        time.Time    // when HTTP started
	resumes   atomic.Int64 // end of a pause, nanoseconds
}

func (s *fakeServer) start() {
	s.stop = make(chan struct{})
	mux := http.NewServeMux()
	if s.script.old {
		mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) { s.h.note("health") })
		mux.HandleFunc("GET /health_generate", s.health)
	} else {
		mux.HandleFunc("GET /health", s.health)
	}
	mux.HandleFunc("POST /generate", s.generate)
	mux.HandleFunc("POST /tokenize", s.tokenize)
	mux.HandleFunc("POST /flush_cache", s.flush)
	mux.HandleFunc("GET /server_info", s.serverInfo)
	mux.HandleFunc("POST /abort_request", func(http.ResponseWriter, *http.Request) { s.h.note("abort all") })
	s.http = &http.Server{Handler: mux}
	go s.live()
}

// live is the server's start: it loads, then it listens or dies.
func (s *fakeServer) live() {
	if !s.tick(s.script.load) {
		return
	}
	if s.script.silent {
		return
	}
	if s.script.dies != "" {
		s.part.print(s.script.dies)
		s.part.end(s.script.exit, true)
		return
	}
	l, err := net.Listen("tcp4", "127.0.0.1:"+s.port)
	if err != nil {
		s.part.print("ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', " + s.port + "): address already in use\n")
		s.part.end(host.Exit{Code: 1, Known: true}, true)
		return
	}
	s.part.print("[2026-01-01 22:01:30] INFO:     Uvicorn running on http://127.0.0.1:" + s.port + " (Press CTRL+C to quit)\n")
	switch {
	case s.script.late > 0:
		time.AfterFunc(s.script.late, func() { s.part.print(readyLine) })
	case !s.script.noReady:
		s.part.print(readyLine)
	}
	s.up = time.Now()
	if s.script.ticks != "" && s.script.tokens > 0 {
		go s.tick(s.script.tokens)
	}
	_ = s.http.Serve(l)
}

// tick lets d of real time pass and prints meanwhile; false when the server is stopped.
func (s *fakeServer) tick(d time.Duration) bool {
	end := time.After(d)
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	for {
		select {
		case <-s.stop:
			return false
		case <-end:
			return true
		case <-every.C:
			s.part.print(s.script.ticks)
		}
	}
}

func (s *fakeServer) close() {
	if s == nil {
		return
	}
	s.closing.Do(func() {
		close(s.stop)
		_ = s.http.Close()
	})
}

func (s *fakeServer) health(w http.ResponseWriter, r *http.Request) {
	s.h.note("health")
	defer s.part.print(fmt.Sprintf("[2026-01-01 22:02:00] INFO:     127.0.0.1:5000 - \"GET %s HTTP/1.1\" 200 OK\n", r.URL.Path))
	if s.hangs() && s.script.lies {
		return
	}
	if s.hangs() || time.Since(s.up) < s.script.stalls || s.pausing() > 0 {
		<-r.Context().Done()
		return
	}
	if s.script.health != 0 {
		w.WriteHeader(s.script.health)
	}
	fmt.Fprint(w, s.script.body)
}

// pausing is how much of a pause is left.
func (s *fakeServer) pausing() time.Duration {
	return time.Until(time.Unix(0, s.resumes.Load()))
}

func (s *fakeServer) hangs() bool {
	return s.script.hangAfter > 0 && s.generated.Load() > int64(s.script.hangAfter)
}

func (s *fakeServer) tokenize(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Prompt []string `json:"prompt"`
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	lists := make([][]int, len(body.Prompt))
	for i := range lists {
		lists[i] = []int{100 + i}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"tokens": lists})
}

func (s *fakeServer) flush(w http.ResponseWriter, _ *http.Request) {
	n := s.flushes.Add(1)
	if n <= int64(s.script.refusals) || s.script.refuseAfter > 0 && n > int64(s.script.refuseAfter) {
		s.h.note("flush refused")
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.h.note("flush")
}

func (s *fakeServer) generate(w http.ResponseWriter, r *http.Request) {
	var body struct {
		IDs      []int  `json:"input_ids"`
		Text     string `json:"text"`
		Stream   bool   `json:"stream"`
		Sampling struct {
			Max int `json:"max_new_tokens"`
		} `json:"sampling_params"`
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	n := s.generated.Add(1)
	if s.script.noToken || s.hangs() || time.Since(s.up) < s.script.tokens {
		<-r.Context().Done()
		return
	}
	if s.script.failing > 0 && body.Stream && n%int64(s.script.failing) == 0 {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	if s.script.pauses > 0 && n == 60 {
		s.resumes.Store(time.Now().Add(s.script.pauses).UnixNano())
	}
	time.Sleep(s.pausing())
	if body.Stream {
		s.h.note("prompt %s", head(body.IDs, body.Text))
	} else {
		s.h.note("token")
	}
	if s.script.oomAfter > 0 && n > int64(s.script.oomAfter) {
		s.part.print(s.script.oom)
		s.part.end(s.script.exit, true)
		return
	}
	if n%4 == 0 {
		s.part.print(fmt.Sprintf("[2026-01-01 22:02:00 TP0] Decode batch, #running-req: 2, #token: 100, token usage: 0.05, cuda graph: True, gen throughput (token/s): %d.00, #queue-req: 0\n", 500+n))
	}
	meta := fmt.Sprintf(`"meta_info":{"id":"x","finish_reason":{"type":"length","length":1},"prompt_tokens":%d,"cached_tokens":0,"completion_tokens":`, max(1, len(body.IDs)))
	if !body.Stream {
		fmt.Fprintf(w, `{"text":"x","output_ids":[1],%s%d}}`, meta, body.Sampling.Max)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	flusher := w.(http.Flusher)
	for i, tokens := range []int{1, body.Sampling.Max} {
		time.Sleep(time.Duration(1+2*i) * time.Millisecond)
		fmt.Fprintf(w, "data: {\"text\":\"x\",%s%d}}\n\n", meta, tokens)
		flusher.Flush()
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// head names a prompt by its first tokens and its length.
func head(ids []int, text string) string {
	if len(ids) == 0 {
		return text
	}
	words := fmt.Sprint(ids[:min(6, len(ids))])
	return strings.Trim(words, "[]") + fmt.Sprintf(" (%d)", len(ids))
}
