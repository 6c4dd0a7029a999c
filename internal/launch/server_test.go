package launch_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/internal/launch"
)

// infoServer answers one path with a JSON object, when the key is right.
func infoServer(t *testing.T, path, key string, info map[string]any) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case key != "" && r.Header.Get("Authorization") != "Bearer "+key:
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path != path:
			w.WriteHeader(http.StatusNotFound)
		default:
			if err := json.NewEncoder(w).Encode(info); err != nil {
				t.Error(err)
			}
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestServerThatTellsWhatWasTyped(t *testing.T) {
	t.Parallel()
	url := infoServer(t, "/server_info", "k1", map[string]any{
		"model_path": "/models/a b", "version": "0.5.23", "mem_fraction_static": 0.83,
		"launch_command": `--model-path /models/a  b --served-model-name two words --tp 2 --cuda-graph-bs-decode 1 2 4 --json-model-override-args {"a": 1} --trust-remote-code`,
	})
	l, err := launch.ReadServer(t.Context(), http.DefaultClient, url, "k1", launch.Processes{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"--model-path", "/models/a  b", "--served-model-name", "two words", "--tp", "2", "--cuda-graph-bs-decode", "1", "2", "4",
		"--json-model-override-args", `{"a": 1}`, "--trust-remote-code",
	}
	if diff := cmp.Diff(want, l.Args); diff != "" || l.Resolved || l.Version != "0.5.23" {
		t.Errorf("version %q, resolved %v (-want +got):\n%s", l.Version, l.Resolved, diff)
	}
	if !slices.ContainsFunc(l.Notes, func(n string) bool { return strings.Contains(n, "--from PID") }) {
		t.Errorf("notes %q do not say that the command is assumed", l.Notes)
	}
}

// TestServerThatTellsWhatItResolved: before 0.5.20 a server only tells what it ended up with.
func TestServerThatTellsWhatItResolved(t *testing.T) {
	t.Parallel()
	url := infoServer(t, "/get_server_info", "", map[string]any{
		"model_path": "/m", "tokenizer_path": "/m", "served_model_name": "/m", "version": "0.5.5", "tp_size": 8, "mem_fraction_static": 0.85,
		"chunked_prefill_size": 8192, "dp_size": 2, "enable_dp_attention": true, "schedule_conservativeness": 0.3, "attention_backend": "fa3", "random_seed": 12345,
		"device": "cuda", "cuda_graph_bs": []int{1, 2, 4}, "trust_remote_code": true, "schedule_policy": "lpm", "log_level": "info", "hicache_size": 0,
		"kv_cache_dtype": "auto", "internal_states": []any{}, "context_length": 32768, "port": 30000,
	})
	l, err := launch.ReadServer(t.Context(), http.DefaultClient, url, "", launch.Processes{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"--chunked-prefill-size 16384", "--context-length 32768", "--dp-size 2", "--enable-dp-attention", "--mem-fraction-static 0.85",
		"--model-path /m", "--schedule-policy lpm", "--tp-size 8", "--trust-remote-code",
	}
	got := canonical(l.Args)
	for i, w := range got {
		got[i] = strings.NewReplacer("--data-parallel-size", "--dp-size", "--tensor-parallel-size", "--tp-size").Replace(w)
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" || !l.Resolved {
		t.Errorf("resolved %v (-want +got):\n%s", l.Resolved, diff)
	}
}

func TestServersThatDoNotAnswer(t *testing.T) {
	t.Parallel()
	hang := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(hang.Close)
	for _, c := range []struct{ name, url, want string }{
		{"no key", infoServer(t, "/server_info", "secret", nil), "--api-key-env"},
		{"another server", infoServer(t, "/", "", map[string]any{}), "no SGLang server"},
		{"another JSON", infoServer(t, "/server_info", "", map[string]any{"a": 1}), "did not answer as an SGLang server"},
		{"stuck", hang.URL, "did not answer in time"},
		{"nobody", "http://127.0.0.1:1", "is it up"},
		{"no URL", "http://", "is no URL"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
			defer cancel()
			_, err := launch.ReadServer(ctx, http.DefaultClient, c.url, "", launch.Processes{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
