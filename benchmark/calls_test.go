package benchmark_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sgtune/benchmark"
)

// admin serves fixed answers by "METHOD /path" and keeps the bodies it got.
func admin(t *testing.T, answers map[string]string) (benchmark.Target, map[string]string) {
	t.Helper()
	got := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Method + " " + r.URL.Path
		body, _ := io.ReadAll(r.Body)
		got[key] = string(body)
		answer, ok := answers[key]
		if !ok {
			http.NotFound(w, r)
			return
		}
		var status int
		rest := ""
		if _, err := fmt.Sscanf(answer, "%d", &status); err == nil {
			_, rest, _ = strings.Cut(answer, " ")
		}
		w.WriteHeader(status)
		fmt.Fprint(w, rest)
	}))
	t.Cleanup(server.Close)
	return benchmark.Target{URL: server.URL + "/"}, got
}

func TestCalls(t *testing.T) {
	t.Parallel()
	good, got := admin(t, map[string]string{
		"POST /flush_cache":   "200 Cache flushed.",
		"POST /abort_request": "200",
		"GET /health":         "503",
		"GET /server_info":    `200 {"max_total_num_tokens":116171}`,
		"POST /generate":      `200 {"text":"!","meta_info":{"finish_reason":{"type":"length"},"completion_tokens":1}}`,
	})
	bad, _ := admin(t, map[string]string{
		"POST /flush_cache":    "400 Flush cache failed.",
		"POST /abort_request":  "500",
		"GET /get_server_info": `200 {"version":"0.4.9"}`,
		"POST /generate":       `200 {"text":"","meta_info":{"completion_tokens":0}}`,
	})
	ctx := t.Context()
	for name, err := range map[string]error{"flush": good.FlushCache(ctx), "abort": good.AbortAll(ctx), "one token": good.OneToken(ctx)} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got["POST /abort_request"] != `{"abort_all":true}` {
		t.Errorf("abort sent %q", got["POST /abort_request"])
	}
	if status, err := good.Health(ctx); status != 503 || err != nil {
		t.Errorf("health: %d, %v", status, err)
	}
	if info, err := good.ServerInfo(ctx); err != nil || info["max_total_num_tokens"] != 116171.0 {
		t.Errorf("server info: %v, %v", info, err)
	}
	if info, err := bad.ServerInfo(ctx); err != nil || info["version"] != "0.4.9" {
		t.Errorf("older server info: %v, %v", info, err)
	}
	for name, err := range map[string]error{"flush": bad.FlushCache(ctx), "abort": bad.AbortAll(ctx), "one token": bad.OneToken(ctx)} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := bad.FlushCache(ctx); !strings.Contains(err.Error(), "400: Flush cache failed.") {
		t.Errorf("flush: %v", err)
	}
}

func TestCallsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := (benchmark.Target{URL: server.URL}).ServerInfo(ctx); err == nil {
		t.Error("a hanging server answered")
	}
}

// tokenizer answers /tokenize as SGLang does for a list; every tenth word is two tokens, the last 24 are the same one.
func tokenizer(t *testing.T, usable int) benchmark.Target {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /tokenize", func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Prompt  []string `json:"prompt"`
			Special *bool    `json:"add_special_tokens"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Special == nil || *body.Special {
			http.Error(w, "bad", http.StatusBadRequest)
			return
		}
		tokens := make([][]int, len(body.Prompt))
		for i, p := range body.Prompt {
			switch {
			case !strings.HasPrefix(p, " ") || i%10 == 0 || i >= usable:
				tokens[i] = []int{1, 2}
			case i >= 1000:
				tokens[i] = []int{77}
			default:
				tokens[i] = []int{5000 + i}
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"tokens": tokens, "count": 1, "max_model_len": 4096})
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return benchmark.Target{URL: server.URL}
}

func TestLoadPalette(t *testing.T) {
	t.Parallel()
	p, err := benchmark.LoadPalette(t.Context(), tokenizer(t, 1024))
	if err != nil || p.Approximate || len(p.IDs) != 900+1 {
		t.Errorf("%d ids, approximate %v, %v; want 901", len(p.IDs), p.Approximate, err)
	}
	none, _ := admin(t, nil)
	p, err = benchmark.LoadPalette(t.Context(), none)
	if err != nil || !p.Approximate || len(p.Words) != 1024 || !strings.Contains(p.Note, "approximate") {
		t.Errorf("without /tokenize: %+v, %v", p.Note, err)
	}
	p, err = benchmark.LoadPalette(t.Context(), tokenizer(t, 100))
	if err != nil || !p.Approximate || !strings.Contains(p.Note, "only 90 of 1024") {
		t.Errorf("few words: %q, %v", p.Note, err)
	}
	for name, answer := range map[string]string{"one list": `200 {"tokens":[1,2,3]}`, "text": "200 hello", "too few": `200 {"tokens":[[1]]}`, "broken": "500"} {
		target, _ := admin(t, map[string]string{"POST /tokenize": answer})
		if _, err := benchmark.LoadPalette(t.Context(), target); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestKeys: a server with an admin key refuses its ordinary one where the server is changed.
func TestKeys(t *testing.T) {
	t.Parallel()
	got := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got[r.URL.Path] = r.Header.Get("Authorization")
		fmt.Fprint(w, `{"text":"!","meta_info":{"finish_reason":{"type":"length"},"completion_tokens":1}}`)
	}))
	t.Cleanup(server.Close)
	target := benchmark.Target{URL: server.URL, Header: http.Header{"Authorization": {"Bearer user"}}, Admin: http.Header{"Authorization": {"Bearer admin"}}}
	ctx := t.Context()
	if err := errors.Join(target.FlushCache(ctx), target.AbortAll(ctx), target.OneToken(ctx)); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"/flush_cache": "Bearer admin", "/abort_request": "Bearer admin", "/generate": "Bearer user"}
	for path, key := range want {
		if got[path] != key {
			t.Errorf("%s was asked with %q, want %q", path, got[path], key)
		}
	}
	target.Admin = nil
	if err := target.FlushCache(ctx); err != nil || got["/flush_cache"] != "Bearer user" {
		t.Errorf("without an admin key: %q, %v", got["/flush_cache"], err)
	}
}
