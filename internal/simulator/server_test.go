package simulator

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sgtune/sglang"
)

// One healthy life: refused, 503, ready, the whole API, a clean stop.
func TestServerLife(t *testing.T) {
	t.Parallel()
	p := launchProcess(t, nil, "--mem-fraction-static", "0.88", "--enable-hierarchical-cache", "--hicache-size", "48", "--served-model-name", "kimi")
	if code, _ := p.do("GET", "/health", ""); code != 0 {
		t.Errorf("health while loading: %d, want a refused connection", code)
	}
	p.until("uvicorn line", func() bool { return strings.Contains(p.log(), "Uvicorn running on http://127.0.0.1:") })
	if code, _ := p.do("GET", "/health", ""); code != 503 && !strings.Contains(p.log(), "fired up") {
		t.Errorf("health while starting: %d, want 503", code)
	}
	p.ready()
	checkFacts(t, p.log())
	checkClaims(t, p)

	start := time.Now()
	if code, body := p.do("GET", "/health", ""); code != 200 || body != "" || time.Since(start) < time.Second/300 {
		t.Errorf("health: %d %q after %v; want an empty 200 after a simulated second", code, body, time.Since(start))
	}
	checkAPI(t, p)
	if n := len(p.children()); n != 1 {
		t.Errorf("%d children, want 1", n)
	}
	p.term()
	if code := p.exit(); code != 0 {
		t.Errorf("exit %d after SIGTERM, want 0", code)
	}
	if !strings.Contains(p.log(), "SIGTERM received. signum=None frame=None. Draining requests and shutting down...") {
		t.Error("no SIGTERM line")
	}
	if left, _ := filepath.Glob(p.claims + "/*"); len(left) > 0 || len(p.children()) > 0 {
		t.Errorf("left behind: %v, children %v", left, p.children())
	}
}

// checkFacts reads the start-up log with the tuner's own reader.
func checkFacts(t *testing.T, log string) {
	t.Helper()
	r := sglang.NewReader()
	r.Feed([]byte(log))
	f := r.Facts()
	m := f.Memory
	if !f.Ready || len(f.Fatal) > 0 {
		t.Errorf("ready %v, fatal %v", f.Ready, f.Fatal)
	}
	if m.Tokens != 159277 || m.BeforeLoadGiB != 94.04 || m.AfterLoadGiB != 21.71 || m.AfterGraphGiB != 5.47 || m.HostPoolTokens != 683061 || m.Fraction != 0.88 || m.TP != 8 || m.KVDtype != "torch.bfloat16" || m.MaxRunning != 2048 || m.ContextLen != 262144 || m.ChunkedPrefill != 8192 {
		t.Errorf("the log says %+v", m)
	}
}

func checkClaims(t *testing.T, p *process) {
	t.Helper()
	child := p.children()[0]
	for rank := range 8 {
		b, err := os.ReadFile(filepath.Join(p.claims, fmt.Sprintf("%d-%d", rank, child)))
		var mib int
		var mode string
		if fmt.Sscan(string(b), &mib, &mode); err != nil || mode != "live" || mib < 91500 || mib > 92500 {
			t.Errorf("claim of rank %d: %q %v", rank, b, err)
		}
	}
	b, err := os.ReadFile(filepath.Join(p.claims, fmt.Sprintf("ram-%d", child)))
	var mib int
	if fmt.Sscan(string(b), &mib); err != nil || mib < 381460 || mib > 381480 {
		t.Errorf("RAM claim %q %v", b, err)
	}
}

func checkAPI(t *testing.T, p *process) {
	t.Helper()
	var out struct {
		Text string
		IDs  []int `json:"output_ids"`
		Meta struct {
			ID         string
			Finish     struct{ Type string } `json:"finish_reason"`
			Prompt     int                   `json:"prompt_tokens"`
			Completion int                   `json:"completion_tokens"`
			Cached     int                   `json:"cached_tokens"`
		} `json:"meta_info"`
	}
	prompt, _ := json.Marshal(ids(1, 300))
	body := fmt.Sprintf(`{"input_ids":%s,"rid":"a1","sampling_params":{"max_new_tokens":70,"ignore_eos":true}}`, prompt)
	for _, cached := range []int{0, 299} {
		code, text := p.do("POST", "/generate", body)
		if err := json.Unmarshal([]byte(text), &out); code != 200 || err != nil {
			t.Fatalf("generate: %d %v %s", code, err, text)
		}
		if m := out.Meta; len(out.IDs) != 70 || m.ID != "a1" || m.Finish.Type != "length" || m.Prompt != 300 || m.Completion != 70 || m.Cached != cached {
			t.Errorf("generate: %s", text)
		}
	}
	long := strings.NewReplacer(`"rid"`, `"stream":true,"rid"`, `"max_new_tokens":70`, `"max_new_tokens":2000`) // tokens within 5 ms share an event
	code, text := p.do("POST", "/generate", long.Replace(body))
	events := strings.Split(strings.TrimSpace(text), "\n\n")
	if code != 200 || len(events) < 3 || events[len(events)-1] != "data: [DONE]" {
		t.Fatalf("stream: %d, %d events, last %q", code, len(events), events[len(events)-1])
	}
	last := 0
	for _, ev := range events[:len(events)-1] {
		out.IDs = nil
		if err := json.Unmarshal([]byte(strings.TrimPrefix(ev, "data: ")), &out); err != nil || out.Meta.Completion <= last || len(out.IDs) != out.Meta.Completion {
			t.Errorf("event %s: %v", ev, err)
		}
		last = out.Meta.Completion
	}
	for _, c := range []struct {
		method, path, body string
		code               int
		want               string
	}{
		{"POST", "/tokenize", `{"prompt":[" alpha"," alpha beta"],"add_special_tokens":false}`, 200, `"count":[1,2],"max_model_len":262144}`},
		{"POST", "/tokenize", `{"prompt":"alpha"}`, 200, `"count":2`},
		{"POST", "/flush_cache", ``, 200, "Cache flushed."},
		{"GET", "/model_info", ``, 200, `"model_path":"/models/none"`},
		{"GET", "/get_model_info", ``, 200, `"is_generation":true`},
		{"GET", "/v1/models", ``, 200, `"id":"kimi"`},
		{"POST", "/generate", `{"input_ids":[1,`, 400, "invalid JSON"},
		{"POST", "/generate", fmt.Sprintf(`{"input_ids":[%s1]}`, strings.Repeat("1,", 262144)), 400, "is longer than the model's context length (262144 tokens)"},
		{"POST", "/generate", fmt.Sprintf(`{"input_ids":[%s1]}`, strings.Repeat("1,", 200000)), 400, "exceeds the maximum allowed length (159271 tokens)"},
		{"GET", "/metrics", ``, 404, ""},
		{"GET", "/get_internal_state", ``, 404, ""},
	} {
		if code, text := p.do(c.method, c.path, c.body); code != c.code || !strings.Contains(text, c.want) {
			t.Errorf("%s %s: %d %.200s; want %d %q", c.method, c.path, code, text, c.code, c.want)
		}
	}
	var info map[string]any
	_, text = p.do("GET", "/server_info", "")
	if err := json.Unmarshal([]byte(text), &info); err != nil || info["max_total_num_tokens"] != 159277.0 || info["mem_fraction_static"] != 0.88 || info["version"] != "0.5.23" || info["hicache_size"] != 48.0 || info["enable_hierarchical_cache"] != true {
		t.Errorf("server_info: %v %.300s", err, text)
	}
}

// Busy: flush is refused, abort ends everything, a drain lets requests finish.
func TestAbortAndDrain(t *testing.T) {
	t.Parallel()
	p := launchProcess(t, nil, "--mem-fraction-static", "0.85", "--sim-time-scale", "30", "--sim-startup", "6").ready()
	long := func(n int) chan string {
		done := make(chan string, 1)
		go func() {
			_, text := p.do("POST", "/generate", fmt.Sprintf(`{"input_ids":[1,2,3],"sampling_params":{"max_new_tokens":%d}}`, n))
			done <- text
		}()
		p.until("a running request", func() bool { code, _ := p.do("POST", "/flush_cache", ""); return code == 400 })
		return done
	}
	first := long(100000)
	if code, _ := p.do("POST", "/abort_request", `{"abort_all":true}`); code != 200 {
		t.Errorf("abort: %d", code)
	}
	if text := <-first; !strings.Contains(text, `"type":"abort"`) {
		t.Errorf("aborted request ended with %s", text)
	}
	// The step that was running still has to end.
	p.until("flush after the abort", func() bool { code, _ := p.do("POST", "/flush_cache", ""); return code == 200 })
	second := long(300)
	p.term()
	p.until("503 while draining", func() bool { code, _ := p.do("GET", "/health", ""); return code == 503 })
	if text := <-second; !strings.Contains(text, `"completion_tokens":300`) {
		t.Errorf("drained request ended with %s", text)
	}
	if code := p.exit(); code != 0 {
		t.Errorf("exit %d", code)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"unknown flag", []string{"--bogus", "1"}, 2, "sglang serve: error: unrecognized arguments: --bogus 1"},
		{"bad value", []string{"--hicache-size", "48.5"}, 2, "error: argument --hicache-size: invalid int value: '48.5'"},
		{"conflict", []string{"--enable-hierarchical-cache", "--disable-radix-cache"}, 1, "ValueError: The arguments enable-hierarchical-cache and disable-radix-cache are mutually exclusive"},
		{"help", []string{"--help"}, 0, "--mem-fraction-static MEM_FRACTION_STATIC"},
		{"fraction too low", []string{"--mem-fraction-static", "0.75"}, -9, "ValueError: Loaded weights leave no GPU memory"},
		{"graphs do not fit", []string{"--mem-fraction-static", "0.945"}, -9, "Capture cuda graph failed: CUDA out of memory"},
		{"host check", []string{"--mem-fraction-static", "0.88", "--enable-hierarchical-cache", "--hicache-size", "300"}, -9, "ValueError: Not enough host memory available. Requesting 300.00 GB but only have 51.66 GB free."},
		{"load OOM", []string{"--sim-fault", "load_oom"}, -9, "torch.OutOfMemoryError: CUDA out of memory"},
		{"host OOM", []string{"--enable-hierarchical-cache", "--hicache-size", "48", "--sim-fault", "host_oom"}, 1, "RuntimeError: Rank 5 scheduler died during initialization (exit code: -9)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := launchProcess(t, nil, c.args...)
			if code := p.exit(); code != c.code || !strings.Contains(p.log(), c.want) {
				t.Errorf("exit %d, want %d and %q; log:\n%s", code, c.code, c.want, tail(p.log()))
			}
			if strings.Contains(p.log(), "fired up") || len(p.children()) > 0 {
				t.Errorf("became ready or left children %v", p.children())
			}
			_, err := os.ReadFile(filepath.Join(p.claims, "oom_kills"))
			if (err == nil) != (c.name == "host OOM") {
				t.Errorf("kernel's OOM counter: %v", err)
			}
		})
	}
}

func TestPortInUse(t *testing.T) {
	t.Parallel()
	a := launchProcess(t, nil).ready()
	b := launchProcess(t, nil, "--port", a.url[strings.LastIndexByte(a.url, ':')+1:])
	if code := b.exit(); code != 1 || !strings.Contains(b.log(), "[Errno 98] error while attempting to bind on address") {
		t.Errorf("exit %d; log:\n%s", code, tail(b.log()))
	}
}

// Deaths under load: what the log says, how it exits, that nothing is left.
func TestDeaths(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		args []string
		want []string
	}{
		{"prefill OOM by fault", []string{"--sim-fault", "prefill_oom:1"}, []string{"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate", "in forward_extend", "SIGQUIT received. signum=None"}},
		{"prefill OOM by fault, chat", []string{"--sim-fault", "prefill_oom:1"}, []string{"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate", "in forward_extend"}},
		{"prefill OOM by the model", []string{"--mem-fraction-static", "0.93"}, []string{"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate", "in forward_extend", "kill_process_tree called"}},
		{"silent death", []string{"--sim-fault", "silent_death:1"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := launchProcess(t, nil, c.args...).ready()
			path, body := "/generate", fmt.Sprintf(`{"input_ids":%s,"sampling_params":{"max_new_tokens":4}}`, strings.Join(strings.Fields(fmt.Sprint(ids(1, 9000))), ","))
			if c.name == "prefill OOM by fault, chat" {
				path, body = "/v1/chat/completions", fmt.Sprintf(`{"stream":true,"messages":[{"role":"user","content":"%s"}]}`, wordsText(1, 9000))
			}
			for alive := true; alive; {
				select {
				case <-p.done:
					alive = false
				case <-time.After(5 * time.Millisecond):
					go p.do("POST", path, body)
				}
			}
			if code := p.exit(); code != -9 {
				t.Errorf("exit %d, want SIGKILL", code)
			}
			for _, want := range c.want {
				if !strings.Contains(p.log(), want) {
					t.Errorf("log lacks %q:\n%s", want, tail(p.log()))
				}
			}
			if c.want == nil && strings.Contains(p.log(), "SIGQUIT") {
				t.Errorf("a silent death says nothing:\n%s", tail(p.log()))
			}
			if len(p.children()) > 0 {
				t.Errorf("children left: %v", p.children())
			}
		})
	}
}

func TestHang(t *testing.T) {
	t.Parallel()
	p := launchProcess(t, nil, "--sim-fault", "hang:0", "--sim-time-scale", "600").ready()
	p.until("hang", func() bool { code, _ := p.do("GET", "/health", ""); return code == 503 })
	p.until("health line", func() bool {
		return strings.Contains(p.log(), "Health check failed. Server couldn't get a response from detokenizer for last 20 seconds.")
	})
	select {
	case <-p.done:
		t.Error("a hung server must stay")
	default:
	}
}

// SIGTERM while loading ends the main process at once and leaves its child with the memory, as the real one does.
func TestTermWhileLoading(t *testing.T) {
	t.Parallel()
	p := launchProcess(t, nil, "--sim-startup", "600")
	p.until("weights", func() bool { return strings.Contains(p.log(), "Loading safetensors") })
	child := p.children()[0]
	p.term()
	if code := p.exit(); code != -int(syscall.SIGTERM) {
		t.Errorf("exit %d, want SIGTERM", code)
	}
	if !alive(child) {
		t.Error("the scheduler died with its parent")
	}
	if held, _ := filepath.Glob(fmt.Sprintf("%s/*-%d", p.claims, child)); len(held) != 9 {
		t.Errorf("claims %v, want 8 GPUs and RAM", held)
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	waitGone(t, child)
}

// A killed main process takes an armed child with it; a killed child takes the server with it.
func TestKills(t *testing.T) {
	t.Parallel()
	p := launchProcess(t, nil).ready()
	child := p.children()[0]
	_ = p.cmd.Process.Kill()
	waitGone(t, child)
	q := launchProcess(t, nil, "--sim-fault", "sticky").ready()
	child = q.children()[0]
	_ = syscall.Kill(child, syscall.SIGKILL)
	if code := q.exit(); code != -9 || !strings.Contains(q.log(), fmt.Sprintf("Subprocess scheduler_0 (pid=%d) crashed with exit code -9. Triggering SIGQUIT for cleanup...", child)) {
		t.Errorf("exit %d; log:\n%s", code, tail(q.log()))
	}
	if b, err := os.ReadFile(fmt.Sprintf("%s/0-%d", q.claims, child)); err != nil || !strings.HasSuffix(strings.TrimSpace(string(b)), " sticky") {
		t.Errorf("sticky claim: %q %v", b, err)
	}
}

func waitGone(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); alive(pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d is still there", pid)
		}
	}
}

func TestIgnoreTerm(t *testing.T) {
	t.Parallel()
	p := launchProcess(t, nil, "--sim-fault", "ignore_term").ready()
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM)
	select {
	case <-p.done:
		t.Errorf("SIGTERM was not ignored:\n%s", tail(p.log()))
	case <-time.After(150 * time.Millisecond):
	}
	if len(p.children()) != 1 {
		t.Error("the child did not ignore SIGTERM")
	}
}

func TestAPIKey(t *testing.T) {
	t.Parallel()
	p := launchProcess(t, nil, "--api-key", "s3cret-key").ready()
	if code, _ := p.do("GET", "/model_info", ""); code != 401 {
		t.Errorf("without a key: %d", code)
	}
	if code, _ := p.do("GET", "/health", ""); code != 200 {
		t.Errorf("health needs no key: %d", code)
	}
	if strings.Contains(p.log(), "s3cret") {
		t.Error("the log shows the key")
	}
}

func TestAdminAPIKey(t *testing.T) {
	t.Parallel()
	p := launchProcess(t, nil, "--admin-api-key", "s3cret-admin").ready()
	if code, _ := p.do("GET", "/model_info", ""); code != 200 {
		t.Errorf("an ordinary call needs no admin key: %d", code)
	}
	if code, _ := p.do("POST", "/flush_cache", ""); code != 401 {
		t.Errorf("flush without the admin key: %d", code)
	}
}
