package benchmark

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// ServerKind is what answers at an address.
type ServerKind string

// The kinds of servers.
const (
	KindSGLang  ServerKind = "sglang"  // it tells its own settings
	KindOpenAI  ServerKind = "openai"  // it lists models as OpenAI does
	KindUnknown ServerKind = "unknown" // it answers, but says nothing of itself
)

// Server is what a server tells about itself. What it does not tell is the zero value.
type Server struct {
	Kind    ServerKind `json:"kind"`
	Product string     `json:"product,omitempty"` // who owns its models by /v1/models: "sglang", "vllm"
	Version string     `json:"version,omitempty"`
	Model   string     `json:"model,omitempty"`  // name that requests to /v1/... carry
	Models  []string   `json:"models,omitempty"` // all names of /v1/models, adapters too

	ContextTokens  int  `json:"context_tokens,omitempty"`   // longest prompt and answer together
	MaxTotalTokens int  `json:"max_total_tokens,omitempty"` // of the KV cache of one rank (SGLang)
	Tokenize       bool `json:"tokenize"`                   // there is a /tokenize
	CacheReport    bool `json:"cache_report"`               // usage of /v1/... tells cached tokens (SGLang: --enable-cache-report)
	Incremental    bool `json:"incremental,omitempty"`      // /generate streams only what is new (SGLang: --incremental-streaming-output)
	StreamInterval int  `json:"stream_interval,omitempty"`  // tokens of one event (SGLang: --stream-interval)
	IDsOnly        bool `json:"ids_only,omitempty"`         // takes and gives token ids only (SGLang: --skip-tokenizer-init)
	CacheOff       bool `json:"cache_off,omitempty"`        // no prefix is ever found (SGLang: --disable-radix-cache)

	Notes []string `json:"notes,omitempty"` // what a person should know about how this was found out
}

// detectTimeout bounds each call of Detect, in real time. /server_info goes through the scheduler, which may
// be in the middle of a long prefill; the rest answer at once.
const detectTimeout = 10 * time.Second

// Detect finds out what answers at the target, without a request to any endpoint that generates: only
// replayed requests may reach those, or the server's counts would be off. A server that answers 404 to
// everything is no error (KindUnknown). A server that cannot be reached, or that refuses our key, is an
// *Unreachable, which says what to do.
func Detect(ctx context.Context, target Target) (Server, error) {
	return detect(ctx, target, detectTimeout)
}

func detect(ctx context.Context, target Target, limit time.Duration) (Server, error) {
	if err := target.Check(); err != nil {
		return Server{}, err
	}
	d := detection{target: target, limit: limit, server: Server{Kind: KindUnknown}}
	if err := d.settings(ctx); err != nil {
		return Server{}, err
	}
	if err := d.models(ctx); err != nil {
		return Server{}, err
	}
	if d.refused != nil && d.answered == 0 {
		return Server{}, d.refused
	}
	if d.puzzled && d.answered == 0 && target.wantsTLS(ctx) {
		return Server{}, wantsTLS(target, nil)
	}
	d.product(ctx)
	d.tokenize(ctx)
	return d.server, nil
}

// Endpoint is what "auto" means for a workload whose rows are like row. Conversations go to chat; what the
// file names wins for texts; SGLang gets the rest on its own endpoint (and everything, when it has no
// tokenizer), the others as completions. Where nothing is known of the server the error says so.
func (s Server) Endpoint(row Row) (string, error) {
	chat := len(row.Turns) > 0 || strings.HasSuffix(row.Path, "/chat/completions")
	switch {
	case s.IDsOnly:
		return EndpointGenerate, nil
	case chat && s.Kind != KindUnknown:
		return EndpointChat, nil
	case s.Kind == KindSGLang && strings.HasSuffix(row.Path, "/completions"):
		return EndpointCompletions, nil
	case s.Kind == KindSGLang:
		return EndpointGenerate, nil
	case s.Kind == KindOpenAI:
		return EndpointCompletions, nil
	}
	return "", errors.New("the server says nothing of itself (no /server_info, no /v1/models): choose --endpoint generate, completions or chat")
}

// detection is one run of Detect.
type detection struct {
	target   Target
	limit    time.Duration // of each call
	server   Server
	answered int          // calls that were answered 200
	refused  *Unreachable // 401 or 403
	puzzled  bool         // 400: servers of https say so to plain http
}

// ask makes one call. found is true for an answer 200 with a JSON object in it; an error ends the detection.
func (d *detection) ask(ctx context.Context, path string) (answer map[string]any, found bool, err error) {
	status, body, err := d.get(ctx, path)
	if err != nil || status == 0 {
		return nil, false, err
	}
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		if d.refused == nil {
			d.refused = keyRefused(d.target, path, status, excerpt(body))
		}
	case status == http.StatusBadRequest:
		d.puzzled = true
	case status >= 500:
		d.note("GET %s answered %d: %s", path, status, excerpt(body))
	case status == http.StatusOK:
		if json.Unmarshal(body, &answer) != nil || answer == nil {
			return nil, false, nil //nolint:nilerr // a web page for every path
		}
		d.answered++
		return answer, true, nil
	}
	return nil, false, nil
}

// get is one call; status 0 without an error means it was given up.
func (d *detection) get(ctx context.Context, path string) (status int, body []byte, err error) {
	own, cancel := context.WithTimeout(ctx, d.limit)
	defer cancel()
	status, body, err = d.target.call(own, http.MethodGet, path, nil, maxInfoBody)
	switch {
	case err == nil:
		return status, body, nil
	case ctx.Err() != nil:
		return 0, nil, fmt.Errorf("ask the server what it is: %w", context.Cause(ctx))
	case own.Err() != nil && status == 0 && !isDialError(err):
		d.note("GET %s was not answered within %s", path, d.limit)
		return 0, nil, nil
	}
	return 0, nil, unreachable(ctx, d.target, err)
}

func (d *detection) note(format string, args ...any) {
	d.server.Notes = append(d.server.Notes, fmt.Sprintf(format, args...))
}

// settings reads what SGLang tells of itself (/server_info; /get_server_info up to 0.5.5), and behind a
// router, which may hide it, what it tells of its model.
func (d *detection) settings(ctx context.Context) error {
	for _, path := range []string{"/server_info", "/get_server_info", "/model_info", "/get_model_info"} {
		info, found, err := d.ask(ctx, path)
		if err != nil {
			return err
		}
		// vLLM has a /server_info of another kind, when it runs for developers.
		if found && (jsonHas(info, "model_path") || jsonHas(info, "internal_states") || jsonHas(info, "max_total_num_tokens")) {
			d.sglang(info)
			return nil
		}
	}
	return nil
}

func (d *detection) sglang(info map[string]any) {
	s := &d.server
	s.Kind = KindSGLang
	s.Version = jsonText(info, "version")
	s.Model = jsonText(info, "served_model_name")
	if s.Model == "" {
		s.Model = jsonText(info, "model_path")
	}
	s.ContextTokens = jsonInt(info, "context_length")
	s.MaxTotalTokens = jsonInt(info, "max_total_num_tokens")
	s.StreamInterval = jsonInt(info, "stream_interval")
	s.CacheReport = info["enable_cache_report"] == true
	s.IDsOnly = info["skip_tokenizer_init"] == true
	s.CacheOff = info["disable_radix_cache"] == true
	// Called stream_output up to 0.5.9.
	s.Incremental = info["incremental_streaming_output"] == true || info["stream_output"] == true
	if info["is_embedding"] == true || info["is_generation"] == false {
		d.note("the server runs an embedding model, which generates nothing")
	}
	if mode := jsonText(info, "disaggregation_mode"); mode != "" && mode != "null" {
		d.note("the server does only the %s part of a disaggregated pair: give the address of their router", mode)
	}
}

// models reads /v1/models. The first one is the base model, adapters follow.
func (d *detection) models(ctx context.Context) error {
	answer, found, err := d.ask(ctx, "/v1/models")
	if err != nil || !found {
		return err
	}
	list, ok := answer["data"].([]any)
	if !ok {
		return nil
	}
	s := &d.server
	if s.Kind == KindUnknown {
		s.Kind = KindOpenAI
	}
	for i, entry := range list {
		card, _ := entry.(map[string]any)
		id := jsonText(card, "id")
		if id == "" {
			continue
		}
		s.Models = append(s.Models, id)
		if i == 0 {
			s.Product = jsonText(card, "owned_by")
			if n := jsonInt(card, "max_model_len"); n > 0 {
				s.ContextTokens = n
			}
		}
	}
	if len(s.Models) > 0 && !slices.Contains(s.Models, s.Model) {
		s.Model = s.Models[0]
	}
	if s.Kind == KindOpenAI && len(s.Models) > 1 {
		d.note("the server has %d models; the first one is used: %s", len(s.Models), s.Model)
	}
	return nil
}

// product asks servers that are not SGLang for their version, as vLLM tells it.
func (d *detection) product(ctx context.Context) {
	if d.server.Kind != KindOpenAI || d.server.Product != "vllm" {
		return
	}
	if answer, found, err := d.ask(ctx, "/version"); err == nil && found {
		d.server.Version = jsonText(answer, "version")
	}
}

// tokenize looks for /tokenize: a GET of it is refused as the wrong method where it is, and unknown where it
// is not. LoadPalette does the real thing.
func (d *detection) tokenize(ctx context.Context) {
	status, _, err := d.get(ctx, "/tokenize")
	d.server.Tokenize = err == nil && (status == http.StatusMethodNotAllowed || status == http.StatusUnprocessableEntity)
}

func jsonHas(m map[string]any, key string) bool { _, ok := m[key]; return ok }

func jsonText(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

// jsonInt is a number of a JSON object as an int, 0 when there is none.
func jsonInt(m map[string]any, key string) int {
	n, _ := m[key].(float64)
	if n < 0 || n > 1<<53 {
		return 0
	}
	return int(n)
}
