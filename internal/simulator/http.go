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
	handle("GET /health", s.health)
	handle("GET /health_generate", s.health)
	handle("GET /ready", s.readyFlag)
	handle("GET /server_info", s.serverInfo)
	handle("GET /get_server_info", s.serverInfo)
	handle("GET /model_info", s.modelInfo)
	handle("GET /get_model_info", s.modelInfo)
	handle("GET /v1/models", s.models)
	handle("POST /tokenize", s.tokenize)
	handle("POST /v1/tokenize", s.tokenize)
	handle("POST /flush_cache", s.flush)
	handle("GET /flush_cache", s.flush)
	handle("POST /abort_request", s.abort)
	mux.HandleFunc("POST /generate", s.generate)
	if s.l.s.APIKey == "" {
		return mux
	}
	return s.guarded(mux)
}

// guarded asks for the API key everywhere but at the health endpoints.
func (s *server) guarded(next http.Handler) http.Handler {
	want := []byte("Bearer " + s.l.s.APIKey)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := []byte(r.Header.Get("Authorization"))
		if !strings.HasPrefix(r.URL.Path, "/health") && subtle.ConstantTimeCompare(got, want) != 1 {
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

// health costs a generation when the server is idle and at least one simulated second always; its body
// is empty whatever the answer.
func (s *server) health(w http.ResponseWriter, r *http.Request) {
	if state(s.state.Load()) != stateReady {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	s.mu.Lock()
	before := s.eng.counters.OutputTokens
	if s.eng.Idle() && !s.frozen {
		s.submitLocked(&Request{ID: "HEALTH_CHECK", Prompt: NewPrompt([]uint32{0}), MaxNew: 1})
	}
	s.mu.Unlock()
	for range healthTimeoutS {
		if sleep(r.Context(), s.clock.real(1)) != nil {
			return
		}
		s.mu.Lock()
		heard := s.eng.counters.OutputTokens > before
		s.mu.Unlock()
		if heard {
			w.WriteHeader(http.StatusOK)
			return
		}
	}
	now := s.log.base.Add(time.Duration(s.clock.now() * float64(time.Second)))
	s.log.line(s.clock.now(), -1, "Health check failed. Server couldn't get a response from detokenizer for last %d seconds. tic start time: %s. last_heartbeat time: %s",
		healthTimeoutS, now.Add(-healthTimeoutS*time.Second).Format("15:04:05"), now.Add(-healthTimeoutS*time.Second).Format("15:04:05"))
	s.log.flush()
	w.WriteHeader(http.StatusServiceUnavailable)
}

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
	body = fmt.Appendf(body, `,"max_total_num_tokens":%d,"max_req_input_len":%d,"version":"0.5.23","startup_time":%.2f,"launch_command":"sim-server","internal_states":[{"last_gen_throughput":%.2f,"memory_usage":{"weight":%.2f,"kvcache":%.2f,"graph":%.2f,"token_capacity":%d,"startup_available":%.2f},"effective_max_running_requests_per_dp":%d,"avg_spec_accept_length":null}]}`,
		b.Tokens, s.maxInput(), s.readyS.Load(), tokS, b.BeforeLoadGiB-b.AfterLoadGiB, b.KVGiB, b.GraphGiB, b.Tokens, b.AfterGraphGiB, b.MaxRunning)
	reply(w, http.StatusOK, body)
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

func (s *server) tokenize(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Prompt  json.RawMessage `json:"prompt"`
		Special *bool           `json:"add_special_tokens"`
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, 64<<20)).Decode(&body); err != nil {
		replyError(w, http.StatusBadRequest, "invalid JSON body")
		return
	}
	var one string
	texts, single := []string(nil), true
	if json.Unmarshal(body.Prompt, &one) == nil {
		texts = []string{one}
	} else if single = false; json.Unmarshal(body.Prompt, &texts) != nil {
		replyError(w, http.StatusBadRequest, "prompt must be a string or a list of strings")
		return
	}
	special := body.Special == nil || *body.Special
	reply(w, http.StatusOK, tokenizeResponse(texts, single, special, s.l.p.Vocab, s.l.b.contextLen))
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
		RID string `json:"rid"`
		All bool   `json:"abort_all"`
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&body); err != nil {
		replyError(w, http.StatusBadRequest, "invalid JSON body")
		return
	}
	s.mu.Lock()
	s.eng.Advance(s.clock.now())
	s.eng.abort(func(q *Request) bool { return body.All || body.RID != "" && strings.HasPrefix(q.ID, body.RID) })
	s.publish(time.Now())
	s.mu.Unlock()
	w.WriteHeader(http.StatusOK)
}
