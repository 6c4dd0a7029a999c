package simulator

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// handler is SGLang's HTTP surface as far as the tuner and the replayer use it.
func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	handle := func(path string, f http.HandlerFunc) { mux.HandleFunc(path, s.logged(f)) }
	s.l.d.routes(s, handle)
	handle("GET /v1/models", s.models)
	handle("POST /flush_cache", s.flush)
	handle("GET /flush_cache", s.flush)
	handle("POST /abort_request", s.abort)
	mux.HandleFunc("POST /generate", s.generate)
	mux.HandleFunc("POST /v1/completions", s.answers(parseCompletion))
	mux.HandleFunc("POST /v1/chat/completions", s.answers(parseChat))
	if s.book != nil {
		handle("GET /metrics", s.metrics)
	}
	if s.l.s.APIKey == "" && s.l.s.AdminKey == "" {
		return mux
	}
	return s.guarded(mux)
}

// routes registers what differs between versions.
func (d *dialect) routes(s *server, handle func(path string, f http.HandlerFunc)) {
	handle("GET /health", s.health)
	handle("GET /health_generate", s.healthGenerate)
	handle("GET /get_server_info", s.deprecated("server_info", s.serverInfo))
	handle("GET /get_model_info", s.deprecated("model_info", s.modelInfo))
	if d.release >= r049 && d.release < r0523 {
		handle("GET /get_load", s.load)
	}
	if d.release >= r055 {
		handle("POST /tokenize", s.tokenize)
		handle("POST /v1/tokenize", s.tokenize)
	}
	if d.release >= r0510 {
		handle("GET /server_info", s.serverInfo)
		handle("GET /model_info", s.modelInfo)
	}
	if d.release >= r0523 {
		handle("GET /ready", s.readyFlag)
	}
}

// deprecated warns in the log, in versions that have a new name for an old path.
func (s *server) deprecated(name string, f http.HandlerFunc) http.HandlerFunc {
	if s.l.d.release < r0510 {
		return f
	}
	return func(w http.ResponseWriter, r *http.Request) {
		s.log.line(s.clock.now(), -1, "Endpoint '/get_%s' is deprecated and will be removed in a future version. Please use '/%s' instead.", name, name)
		s.log.flush()
		f(w, r)
	}
}

// guarded asks for the API key everywhere but at the health endpoints and /metrics, and for the admin key, when
// there is one, where the server is changed (srt/utils/auth.py).
func (s *server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		want := s.l.s.APIKey
		if path := r.URL.Path; s.l.s.AdminKey != "" && (path == "/flush_cache" || path == "/abort_request") {
			want = s.l.s.AdminKey
		}
		got := []byte(r.Header.Get("Authorization"))
		open := strings.HasPrefix(r.URL.Path, "/health") || strings.HasPrefix(r.URL.Path, "/metrics") || s.l.d.release >= r0523 && strings.HasPrefix(r.URL.Path, "/ready")
		if want != "" && !open && subtle.ConstantTimeCompare(got, []byte("Bearer "+want)) != 1 {
			reply(w, http.StatusUnauthorized, []byte(`{"error":"Unauthorized"}`))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// logged prints uvicorn's access line; /generate goes without, it would be most of the log.
func (s *server) logged(f http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		rec := &recorder{ResponseWriter: w, code: http.StatusOK}
		f(rec, r)
		at := s.log.base.Add(time.Duration(s.clock.now() * float64(time.Second)))
		_, _ = fmt.Fprintf(s.access, "[%s] INFO:     %s - \"%s %s HTTP/1.1\" %d %s\n", at.Format("2006-01-02 15:04:05"), r.RemoteAddr, r.Method, r.URL.Path, rec.code, http.StatusText(rec.code))
	}
}

type recorder struct {
	http.ResponseWriter
	code int
}

// WriteHeader remembers the status.
func (r *recorder) WriteHeader(code int) { r.code = code; r.ResponseWriter.WriteHeader(code) }

func reply(w http.ResponseWriter, code int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(body) // a client that hung up needs no answer
}

func replyError(w http.ResponseWriter, code int, message string) {
	b, _ := json.Marshal(map[string]any{"error": map[string]any{"message": message, "type": http.StatusText(code), "param": nil, "code": code}})
	reply(w, code, b)
}

// health is an unconditional 200 in 0.4.x and healthGenerate later, with 503 before it is ready and while it
// drains. Its body is empty whatever the answer.
func (s *server) health(w http.ResponseWriter, r *http.Request) {
	if s.l.d.release <= r049 {
		return
	}
	ready, _ := s.readyS.Load().(float64)
	if state(s.state.Load()) != stateReady || s.clock.now() < ready+s.l.s.Sim.Faults.StartingHealthS {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	s.healthGenerate(w, r)
}

// healthGenerate costs a generation when the server is idle and at least one simulated second always.
func (s *server) healthGenerate(w http.ResponseWriter, r *http.Request) {
	if s.l.d.release > r049 && state(s.state.Load()) != stateReady {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	s.mu.Lock()
	before, busy := s.eng.counters.OutputTokens, !s.eng.Idle()
	if !busy && !s.frozen {
		s.submitLocked(&Request{ID: healthRID, Prompt: NewPrompt([]uint32{0}), MaxNew: 1})
	}
	s.mu.Unlock()
	deaf := busy && s.l.s.Sim.Faults.BusyHealth
	for range healthTimeoutS {
		if sleep(r.Context(), s.clock.real(1)) != nil {
			return
		}
		s.mu.Lock()
		heard := s.eng.counters.OutputTokens > before
		s.mu.Unlock()
		if heard && !deaf {
			return
		}
	}
	now := s.log.base.Add(time.Duration(s.clock.now() * float64(time.Second)))
	s.log.line(s.clock.now(), -1, "Health check failed. Server couldn't get a response from detokenizer for last %d seconds. tic start time: %s. last_heartbeat time: %s",
		healthTimeoutS, now.Add(-healthTimeoutS*time.Second).Format("15:04:05"), now.Add(-healthTimeoutS*time.Second).Format("15:04:05"))
	s.log.flush()
	w.WriteHeader(http.StatusServiceUnavailable)
}

// healthRID begins the id of a probe: it is counted nowhere.
const healthRID = "HEALTH_CHECK"

// healthTimeoutS is SGLANG_HEALTH_CHECK_TIMEOUT.
const healthTimeoutS = 20

func (s *server) readyFlag(w http.ResponseWriter, _ *http.Request) {
	if state(s.state.Load()) != stateReady {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

func (s *server) serverInfo(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	frozen, tokS := s.frozen, s.eng.genTokS
	s.mu.Unlock()
	if frozen { // the answer goes through the scheduler, which hangs
		<-r.Context().Done()
		return
	}
	b := &s.l.b
	body := append([]byte(nil), s.info...)
	if s.l.d.release >= r0523 {
		body = fmt.Appendf(body, `,"startup_time":%.2f,"launch_command":"sim-server"`, s.readyS.Load())
	}
	body = fmt.Appendf(body, `,"max_total_num_tokens":%d,"max_req_input_len":%d,"version":"%s","internal_states":[{"last_gen_throughput":%.2f,"memory_usage":{"weight":%.2f,"kvcache":%.2f,"graph":%.2f,"token_capacity":%d,"startup_available":%.2f},"effective_max_running_requests_per_dp":%d,"avg_spec_accept_length":null}]}`,
		b.Tokens, s.maxInput(), s.l.d.full, tokS, b.BeforeLoadGiB-b.AfterLoadGiB, b.KVGiB, b.GraphGiB, b.Tokens, b.AfterGraphGiB, b.MaxRunning)
	reply(w, http.StatusOK, body)
}

// load is /get_load: 0.4.9 gives one number, later versions one object a data-parallel rank.
func (s *server) load(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	running, waiting, used := len(s.eng.running), len(s.eng.waiting), s.eng.cache.used()
	s.mu.Unlock()
	if s.l.d.release == r049 {
		reply(w, http.StatusOK, fmt.Appendf(nil, `{"load":%d}`, running+waiting))
		return
	}
	reply(w, http.StatusOK, fmt.Appendf(nil, `[{"dp_rank":0,"num_reqs":%d,"num_waiting_reqs":%d,"num_tokens":%d}]`, running+waiting, waiting, used))
}

func (s *server) modelInfo(w http.ResponseWriter, _ *http.Request) {
	b, _ := json.Marshal(map[string]any{
		"model_path": s.l.s.Model, "tokenizer_path": s.l.s.Model, "served_model_name": s.l.s.Served, "is_generation": true,
		"preferred_sampling_params": nil, "weight_version": "default", "has_image_understanding": false, "has_audio_understanding": false,
		"model_type": "kimi_k25", "architectures": []string{s.l.p.Model},
	})
	reply(w, http.StatusOK, b)
}

func (s *server) models(w http.ResponseWriter, _ *http.Request) {
	b, _ := json.Marshal(map[string]any{"object": "list", "data": []any{map[string]any{
		"id": s.l.s.Served, "object": "model", "created": s.log.base.Unix(), "owned_by": "sglang", "root": s.l.s.Model, "parent": nil, "max_model_len": s.l.b.contextLen,
	}}})
	reply(w, http.StatusOK, b)
}

func (s *server) flush(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	idle := s.eng.Idle()
	if idle {
		s.eng.cache.flush()
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if !idle {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprint(w, "Flush cache failed.\nPlease check backend logs for more details. (When there are running or waiting requests, the operation will not be performed.)\n")
		return
	}
	s.log.line(s.clock.now(), 0, "Cache flushed successfully!")
	s.log.flush()
	_, _ = fmt.Fprint(w, "Cache flushed.\nPlease check backend logs for more details. (When there are running or waiting requests, the operation will not be performed.)\n")
}

func (s *server) abort(w http.ResponseWriter, r *http.Request) {
	var body struct {
		RID *string `json:"rid"`
		All bool    `json:"abort_all"`
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&body); err != nil {
		replyError(w, http.StatusBadRequest, "invalid JSON body")
		return
	}
	rid := ""
	if body.RID != nil {
		rid = *body.RID
	}
	if s.l.d.release == r046 { // abort_all came later, rid is required
		if body.All = false; body.RID == nil {
			reply(w, http.StatusUnprocessableEntity, []byte(`{"detail":[{"type":"missing","loc":["body","rid"],"msg":"Field required"}]}`))
			return
		}
	}
	s.mu.Lock()
	s.eng.Advance(s.clock.now())
	s.countAbort()
	s.eng.abort(func(q *Request) bool { return body.All || rid != "" && strings.HasPrefix(q.ID, rid) })
	s.publish(time.Now())
	s.mu.Unlock()
	w.WriteHeader(http.StatusOK)
}
