package agent_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sgtune/benchmark"
	"sgtune/internal/replayjob"
)

// fakeServer answers /tokenize and /generate. Every request in ten is refused when failing is set.
type fakeServer struct {
	pace     time.Duration // between two tokens
	failing  bool
	requests atomic.Int64
	inFlight atomic.Int64
	keys     atomic.Int64 // requests with the right key
}

const testKey = "Bearer s3cret"

func (f *fakeServer) start(t testing.TB) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /tokenize", func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Prompt []string `json:"prompt"`
		}
		_ = json.NewDecoder(r.Body).Decode(&asked)
		tokens := make([][]int, len(asked.Prompt))
		for i := range tokens {
			tokens[i] = []int{1000 + i}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"tokens": tokens})
	})
	mux.HandleFunc("POST /generate", f.generate)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func (f *fakeServer) generate(w http.ResponseWriter, r *http.Request) {
	f.inFlight.Add(1)
	defer f.inFlight.Add(-1)
	if r.Header.Get("Authorization") == testKey {
		f.keys.Add(1)
	}
	n := f.requests.Add(1)
	var asked struct {
		IDs      []int `json:"input_ids"`
		Sampling struct {
			Max int `json:"max_new_tokens"`
		} `json:"sampling_params"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || f.failing && n%10 == 0 {
		http.Error(w, `{"error":"queue full"}`, http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for i := range asked.Sampling.Max {
		select {
		case <-r.Context().Done():
			return
		case <-time.After(f.pace):
		}
		finish := "null"
		if i+1 == asked.Sampling.Max {
			finish = `{"type":"length"}`
		}
		fmt.Fprintf(w, `data: {"text":"x","output_ids":[7],"meta_info":{"finish_reason":%s,"prompt_tokens":%d,"cached_tokens":%d,"completion_tokens":%d}}`+"\n\n",
			finish, len(asked.IDs), len(asked.IDs)/4, i+1)
		w.(http.Flusher).Flush()
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// workloadFile is a file of n rows, row i of 8+i tokens in and 4 out.
func workloadFile(t testing.TB, n int) string {
	t.Helper()
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"timestamp":%d,"input_length":%d,"output_length":4,"hash_ids":[%d]}`+"\n", i, 8+i, i)
	}
	path := filepath.Join(t.TempDir(), "workload.jsonl")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// newJob is a level of the file at a server.
func newJob(url, path string, load benchmark.Options) replayjob.Job {
	return replayjob.Job{
		Target:   replayjob.Target{URL: url},
		Workload: replayjob.Workload{Path: path},
		Feed:     replayjob.Feed{Salt: "test"},
		Load:     replayjob.LoadOf(load),
	}
}
