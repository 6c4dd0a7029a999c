package main

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sgtune/internal/freeport"
)

// plainServer is an OpenAI-compatible server with nothing beside it: no /tokenize, no metrics.
type plainServer struct {
	mu       sync.Mutex
	requests []plainRequest // to the generation endpoint
	others   []string       // paths of everything else that was answered 404
	fail     int            // every so manieth request is answered 500, 0 = none
	echo     bool           // failures quote the Authorization header
	pause    time.Duration  // between two tokens
}

type plainRequest struct {
	auth, model, prompt string
	tokens              int
}

func (s *plainServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/v1/completions" {
		s.mu.Lock()
		s.others = append(s.others, r.URL.Path)
		s.mu.Unlock()
		http.NotFound(w, r)
		return
	}
	var body struct {
		Model  string          `json:"model"`
		Prompt json.RawMessage `json:"prompt"`
		Max    int             `json:"max_tokens"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.requests = append(s.requests, plainRequest{r.Header.Get("Authorization"), body.Model, string(body.Prompt), body.Max})
	n := len(s.requests)
	s.mu.Unlock()
	if s.fail > 0 && n%s.fail == 0 {
		text := "injected"
		if s.echo {
			text += ": you said " + r.Header.Get("Authorization")
		}
		http.Error(w, text, http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	flusher, _ := w.(http.Flusher)
	for range body.Max {
		_, _ = io.WriteString(w, `data: {"id":"c","object":"text_completion","choices":[{"index":0,"text":"w ","logprobs":null,"finish_reason":null}],"usage":null}`+"\n\n")
		flusher.Flush()
		time.Sleep(s.pause)
	}
	_, _ = fmt.Fprintf(w, "data: {\"id\":\"c\",\"object\":\"text_completion\",\"choices\":[],\"usage\":{\"prompt_tokens\":16,\"total_tokens\":%d,\"completion_tokens\":%d}}\n\ndata: [DONE]\n\n",
		16+body.Max, body.Max)
}

// replayOnce runs the program, in a folder of its own, and returns its exit code and what it printed.
func replayOnce(t *testing.T, dir string, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := replayCommand(t, dir, env, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func replayCommand(t *testing.T, dir string, env []string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sgtune", append([]string{"replay"}, args...)...) // testscript.Main puts it into PATH
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "SGTUNE_API_KEY=", "OPENAI_API_KEY=", "GORACE=atexit_sleep_ms=0")
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// readResult reads a report's keys.
func readResult(t *testing.T, path string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var report map[string]any
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatalf("%s is no JSON: %v", path, err)
	}
	return report
}

// at follows keys into a report.
func at(t *testing.T, report any, keys ...string) any {
	t.Helper()
	for _, key := range keys {
		m, ok := report.(map[string]any)
		if !ok {
			t.Fatalf("no object at %q", key)
		}
		report = m[key]
	}
	return report
}

// number is a number of a report.
func number(t *testing.T, report any, keys ...string) float64 {
	t.Helper()
	v, ok := at(t, report, keys...).(float64)
	if !ok {
		t.Fatalf("no number at %q: %v", keys, at(t, report, keys...))
	}
	return v
}

func TestReplayAtAPlainServer(t *testing.T) {
	t.Parallel()
	fake := &plainServer{fail: 10}
	server := httptest.NewServer(fake)
	defer server.Close()
	dir := t.TempDir()
	code, stdout, stderr := replayOnce(t, dir, nil, "--url", server.URL, "--endpoint", "completions", "--workload", "random-ids", "--random-input-len", "16",
		"--random-output-len", "4", "--random-range-ratio", "1", "--concurrency", "5", "--requests", "40", "--warmup", "0", "--out", "r.json", "--csv", "s.csv")
	if code != exitDone {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if len(fake.requests) != 40 {
		t.Errorf("%d requests reached the server, want the 40 asked for and nothing else", len(fake.requests))
	}
	r := readResult(t, filepath.Join(dir, "r.json"))
	for _, want := range []struct {
		keys  []string
		value float64
	}{
		{[]string{"schema"}, 1},
		{[]string{"requests", "sent"}, 40},
		{[]string{"requests", "ok"}, 36},
		{[]string{"requests", "failed", "http_status"}, 4},
		{[]string{"warmup"}, 0},
		{[]string{"tokens", "wanted"}, 160},
		{[]string{"tokens", "got"}, 144},
		{[]string{"tokens", "prompt"}, 576},
		{[]string{"concurrency", "peak"}, 5},
		{[]string{"workload", "requests"}, 40},
		{[]string{"setup", "seed"}, 1},
	} {
		if got := number(t, r, want.keys...); got != want.value {
			t.Errorf("%s is %v, want %v", strings.Join(want.keys, "."), got, want.value)
		}
	}
	if failed := at(t, r, "requests", "failed").(map[string]any); len(failed) != 1 {
		t.Errorf("failed is %v: kinds without a failure are left out", failed)
	}
	for _, text := range []string{"random-ids", "approximate", "40 sent, 36 ok, 4 http_status", "NOT VALID"} {
		if !strings.Contains(stdout, text) {
			t.Errorf("%q is not said in\n%s", text, stdout)
		}
	}
	if !strings.Contains(stderr, "NOT VALID (failed_requests): 4 of 40") {
		t.Errorf("stderr %q does not say that a tenth of the requests failed", stderr)
	}
	text, err := os.ReadFile(filepath.Join(dir, "s.csv"))
	if err != nil || bytes.Count(text, []byte("\n")) != 41 || !bytes.Contains(text, []byte("\n1,5 clients,")) {
		t.Errorf("the samples have %d lines, want a head and 40 of level 1: %v", bytes.Count(text, []byte("\n")), err)
	}
}

func TestReplayShowsNoSecret(t *testing.T) {
	t.Parallel()
	fake := &plainServer{fail: 2, echo: true}
	server := httptest.NewServer(fake)
	defer server.Close()
	dir := t.TempDir()
	const key = "correct-horse-battery"
	code, stdout, stderr := replayOnce(t, dir, []string{"MY_KEY=" + key}, "--url", server.URL, "--endpoint", "completions", "--workload", "random",
		"--random-input-len", "8", "--random-output-len", "2", "--requests", "10", "--concurrency", "2", "--warmup", "1",
		"--api-key-env", "MY_KEY", "--output-tokens", "5", "--out", "r.json", "--csv", "s.csv")
	if code != exitDone {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if got := fake.requests[0].auth; got != "Bearer "+key {
		t.Errorf("the server was told %q", got)
	}
	for i, q := range fake.requests {
		if q.tokens != 5 {
			t.Errorf("request %d asked for %d tokens, want the 5 of --output-tokens", i, q.tokens)
		}
	}
	texts := map[string]string{"stdout": stdout, "stderr": stderr}
	for _, name := range []string{"r.json", "s.csv"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(text)
	}
	for name, text := range texts {
		if strings.Contains(text, key) {
			t.Errorf("%s holds the key:\n%s", name, text)
		}
	}
	if !strings.Contains(texts["s.csv"], "you said") {
		t.Error("the failures are not in the samples")
	}
}

func TestReplayOverASocket(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "s.sock")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	fake := &plainServer{pause: 2 * time.Millisecond}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: fake, ReadHeaderTimeout: time.Minute}}
	server.Start()
	defer server.Close()
	code, stdout, stderr := replayOnce(t, dir, nil, "--url", "unix://"+path, "--workload", "random", "--random-input-len", "8", "--random-output-len", "3",
		"--requests", "6", "--concurrency", "1,2", "--warmup", "2", "--slo", "ttft=1m", "--json")
	if code != exitDone {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	var report map[string]any
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatalf("stdout is not the report alone: %v\n%s", err, stdout)
	}
	levels, ok := report["levels"].([]any)
	if !ok || len(levels) != 2 {
		t.Fatalf("levels are %v", report["levels"])
	}
	seen := map[string]bool{}
	for i, level := range levels {
		if got := number(t, level, "requests", "ok"); got != 6 {
			t.Errorf("level %d: %v requests, want 6", i, got)
		}
		if got := number(t, level, "warmup"); got != 2 {
			t.Errorf("level %d: %v requests of warm-up, want 2", i, got)
		}
		if got := number(t, level, "concurrency", "peak"); got != float64(i+1) {
			t.Errorf("level %d: %v at once", i, got)
		}
		if got := at(t, level, "cache_state"); got != []string{"unknown", "warm"}[i] {
			t.Errorf("level %d: cache %v", i, got)
		}
	}
	for _, q := range fake.requests {
		if seen[q.prompt] {
			t.Errorf("a prompt was sent twice: %s", q.prompt)
		}
		seen[q.prompt] = true
	}
	if len(seen) != 16 {
		t.Errorf("%d requests came, want 2 x (2 + 6)", len(seen))
	}
	if !strings.Contains(stderr, "all levels") {
		t.Errorf("the closing table is missing:\n%s", stderr)
	}
}

func TestReplayOverTLS(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(&plainServer{})
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // a client that hangs up is what is tested
	server.StartTLS()
	t.Cleanup(server.Close)
	dir := t.TempDir()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(filepath.Join(dir, "ca.pem"), authority, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--url", server.URL, "--workload", "random", "--random-input-len", "8", "--random-output-len", "3", "--requests", "4", "--warmup", "0"}
	for _, test := range []struct {
		name string
		args []string
		code int
		text string // in what is printed
	}{
		{"unknown certificate", nil, exitFailed, "certificate"},
		{"named", []string{"--cacert", "ca.pem"}, exitDone, "4 sent, 4 ok"},
		{"anyone", []string{"--insecure"}, exitDone, "4 sent, 4 ok"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := replayOnce(t, dir, nil, append(slices.Clone(args), test.args...)...)
			if code != test.code || !strings.Contains(stdout+stderr, test.text) {
				t.Errorf("exit code %d, want %d and %q\n%s%s", code, test.code, test.text, stdout, stderr)
			}
		})
	}
}

func TestReplayInterrupted(t *testing.T) {
	t.Parallel()
	fake := &plainServer{pause: 10 * time.Millisecond}
	server := httptest.NewServer(fake)
	defer server.Close()
	dir := t.TempDir()
	cmd := replayCommand(t, dir, nil, "--url", server.URL, "--endpoint", "completions", "--workload", "random", "--random-input-len", "8",
		"--random-output-len", "5", "--random-range-ratio", "1", "--duration", "1h", "--window", "1s", "--concurrency", "2", "--warmup", "0", "--out", "r.json")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		fake.mu.Lock()
		n := len(fake.requests)
		fake.mu.Unlock()
		if n > 6 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no load in half a minute")
		}
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("exit code %d, want %d\n%s%s", code, exitInterrupted, out.String(), errs.String())
	}
	r := readResult(t, filepath.Join(dir, "r.json"))
	if got := number(t, r, "requests", "ok") + number(t, r, "warmup"); got < 2 {
		t.Errorf("%v requests in the report of the interrupted level", got)
	}
	if !strings.Contains(fmt.Sprint(r["flags"]), "interrupted") {
		t.Errorf("flags %v do not say that it was interrupted", r["flags"])
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".r.json*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestReplayAtNobody(t *testing.T) {
	t.Parallel()
	url := fmt.Sprint("http://127.0.0.1:", freeport.For(t)) // nobody listens there
	dir := t.TempDir()
	args := []string{"--url", url, "--workload", "random", "--random-input-len", "8", "--random-output-len", "2", "--out", "r.json", "--concurrency", "2"}
	code, stdout, stderr := replayOnce(t, dir, nil, args...)
	if code != exitFailed || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, url) {
		t.Errorf("exit code %d, stderr %q; want 1 and one line\n%s", code, stderr, stdout)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
	// Whoever says everything gets the failures counted.
	code, stdout, stderr = replayOnce(t, dir, nil, append(args, "--endpoint", "completions", "--requests", "4", "--warmup", "0")...)
	if code != exitFailed {
		t.Errorf("exit code %d, want 1\n%s%s", code, stdout, stderr)
	}
	if got := number(t, readResult(t, filepath.Join(dir, "r.json")), "requests", "failed", "refused"); got != 4 {
		t.Errorf("%v refused requests, want 4", got)
	}
}
