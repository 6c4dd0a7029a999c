package simulator

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sgtune/sglang"
)

// graphFlag is the flag that bounds the captured batch sizes in a version.
func graphFlag(version string) string {
	if version == "0.5.23" {
		return "--cuda-graph-max-bs-decode"
	}
	return "--cuda-graph-max-bs"
}

// wording is what only this version's log looks like.
var wording = map[string][]string{
	"0.4.6": {
		`server_args=ServerArgs\(model_path='/models/none', tokenizer_path=`, `TP3\] Init torch distributed begin\.`, `Init torch distributed ends\. mem usage=0\.73 GB`,
		`Load weight end\. type=KimiK25ForConditionalGeneration, dtype=torch\.bfloat16, avail mem=21\.71 GB, mem usage=72\.33 GB\.`,
		`KV Cache is allocated\. #tokens: 159277, KV size: 10\.42 GB`, `Capture cuda graph begin\. This can take up to several minutes\. avail mem=`,
		`Capturing batches \(avail_mem=\d+\.\d\d GB\)`, `Capture cuda graph end\. Time elapsed: \d+\.\d\d s\. mem usage=3\.56 GB\. avail mem=\d+\.\d\d GB\.`,
		`max_total_num_tokens=159277, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=2048, context_len=262144\n`,
		`Allocating 48\.00 GB host memory for hierarchical KV cache\.`, `"GET /get_model_info HTTP/1\.1" 200 OK`,
		`TP0\] Prefill batch\. #new-seq: \d+, #new-token: \d+, #cached-token: \d+, token usage: \d\.\d\d, #running-req: \d+, #queue-req: \d+\n`,
		`TP0\] Decode batch\. #running-req: \d+, #token: \d+, token usage: \d\.\d\d, cuda graph: True, gen throughput \(token/s\): \d+\.\d\d, #queue-req: \d+\n`,
		`Gracefully exiting\.\.\. remaining number of requests 0`,
	},
	"0.4.9": {
		`server_args=ServerArgs\(`, `Init torch distributed ends\. mem usage=`, `Load weight end\. type=`, `Capturing batches \(bs=\d+ avail_mem=`,
		`context_len=262144, available_gpu_mem=\d+\.\d\d GB\n`, `Allocating 48\.00 GB host memory for hierarchical KV cache\.`,
		`Prefill batch\. .*#queue-req: \d+, timestamp: \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\n`, `Decode batch\. .*#queue-req: \d+, timestamp: `,
	},
	"0.5.5": {
		`server_args=ServerArgs\(`, `Init torch distributed ends\. mem usage=`, `Load weight end\. type=`, `available_gpu_mem=`, `"GET /get_model_info HTTP/1\.1" 200 OK`,
		`Prefill batch, .*#queue-req: \d+, \n`, `Decode batch, .*#queue-req: \d+, \n`, `Gracefully exiting\.\.\. Remaining number of requests 0\. Remaining requests remaining_rids=\[\]\.`,
	},
	"0.5.10": {
		`server_args=ServerArgs\(`, `Init torch distributed ends\. elapsed=\d+\.\d\d s, mem usage=0\.73 GB`, `Load weight end\. elapsed=\d+\.\d\d s, type=`,
		`KV Cache is allocated\. #tokens: 159277`, `Capture cuda graph end\. Time elapsed`, `Allocating 48\.00 GB host memory`, `"GET /model_info HTTP/1\.1" 200 OK`,
		`Prefill batch, .*#queue-req: \d+, cuda graph: False, input throughput \(token/s\): \d+\.\d\d\n`, `Decode batch, .*#queue-req: \d+\n`,
	},
	"0.5.23": {
		`server_args=\{'model_path': '/models/none', `, `Init parallel ends\. elapsed=`, `Memory baseline taken\.`, `KV Cache is allocated\. dtype: torch\.bfloat16, #tokens: 159277`,
		`Capture target decode CUDA graph end\. bs=\[1, 2, .*\], elapsed=\d+\.\d\d s, mem usage=3\.56 GB, avail mem=`,
		`Allocating kv hierarchical KV host pool: 683061 tokens, 48\.00 GB host memory\.`, `Prefill batch, .*#queue-req: \d+, #pending-token: \d+, cuda graph: False, `,
	},
}

// Each version's log says the same facts in its own words, and sgtune's reader gets them.
func TestVersions(t *testing.T) {
	t.Parallel()
	all := together{t: t}
	defer all.Wait()
	for _, version := range Versions() {
		all.run(version, func(t *testing.T) {
			p := launchProcess(t, nil, "--sim-version", version, "--mem-fraction-static", "0.88", "--enable-hierarchical-cache", "--hicache-size", "48",
				graphFlag(version), "512", "--decode-log-interval", "10").ready()
			prompt, _ := json.Marshal(ids(1, 300))
			if code, text := p.do("POST", "/generate", fmt.Sprintf(`{"input_ids":%s,"sampling_params":{"max_new_tokens":70,"ignore_eos":true}}`, prompt)); code != 200 {
				t.Fatalf("generate: %d %s", code, text)
			}
			p.term()
			if code := p.exit(); code != 0 {
				t.Errorf("exit %d", code)
			}
			for _, want := range wording[version] {
				if !regexp.MustCompile(want).MatchString(p.log()) {
					t.Errorf("the log lacks %s", want)
				}
			}
			sameFacts(t, version, p)
		})
	}
}

// sameFacts compares what the reader makes of a version's log with the launch itself.
func sameFacts(t *testing.T, version string, p *process) {
	t.Helper()
	r := sglang.NewReader()
	for chunk := range slices.Chunk([]byte(p.log()), 777) {
		r.Feed(chunk)
	}
	r.Close()
	f := r.Facts()
	m := f.Memory
	if !f.Ready || len(f.Fatal) > 0 || fmt.Sprintf("http://127.0.0.1:%d", f.Port) != p.url {
		t.Errorf("ready %v, port %d, fatal %v", f.Ready, f.Port, f.Fatal)
	}
	if m.Tokens != 159277 || m.BeforeLoadGiB != 94.04 || m.AfterLoadGiB != 21.71 || m.WeightsGiB != 72.33 || m.KVGiB != 10.42 || m.Fraction != 0.88 || m.TP != 8 ||
		m.GraphGiB != 3.56 || m.AfterGraphGiB != 5.47 || m.HostPoolGB != 48 || m.MaxRunning != 2048 || m.ContextLen != 262144 || m.ChunkedPrefill != 8192 {
		t.Errorf("the log says %+v", m)
	}
	if dtype := map[bool]string{true: "torch.bfloat16"}[version == "0.5.23"]; m.KVDtype != dtype {
		t.Errorf("KV type %q, want %q", m.KVDtype, dtype)
	}
	if has := m.AvailableGiB > 0; has != (version != "0.4.6") {
		t.Errorf("available_gpu_mem %v", m.AvailableGiB)
	}
	if f.Prefills < 2 || f.Decodes < 5 || f.PeakGenTokS <= 0 || f.MaxRunning != 1 {
		t.Errorf("%d prefill lines, %d decode lines, peak %.2f tok/s, %g running", f.Prefills, f.Decodes, f.PeakGenTokS, f.MaxRunning)
	}
}

// What differs over HTTP.
func TestVersionsOverHTTP(t *testing.T) {
	t.Parallel()
	all := together{t: t}
	defer all.Wait()
	const info, old = "/server_info", "/get_server_info"
	for _, c := range []struct {
		version          string
		known            []string
		unknown          []string
		starting, hicode int // /health and /health_generate before ready
	}{
		{"0.4.6", []string{old, "/get_model_info"}, []string{info, "/model_info", "/get_load", "/ready"}, 200, 200},
		{"0.4.9", []string{old, "/get_model_info", "/get_load"}, []string{info, "/model_info", "/ready"}, 200, 200},
		{"0.5.5", []string{old, "/get_model_info", "/get_load"}, []string{info, "/model_info", "/ready"}, 503, 503},
		{"0.5.10", []string{old, info, "/model_info", "/get_load"}, []string{"/ready"}, 503, 503},
		{"0.5.23", []string{old, info, "/model_info", "/ready"}, []string{"/get_load"}, 503, 503},
	} {
		all.run(c.version, func(t *testing.T) {
			// 8 simulated seconds, 40 ms of ours, between the open port and readiness.
			p := launchProcess(t, nil, "--sim-version", c.version, "--sim-startup", "160", "--sim-time-scale", "200")
			p.until("uvicorn line", func() bool { return strings.Contains(p.log(), "Uvicorn running on http://127.0.0.1:") })
			for path, want := range map[string]int{"/health": c.starting, "/health_generate": c.hicode} {
				if code, body := p.do("GET", path, ""); (code != want || body != "") && !strings.Contains(p.log(), "fired up") {
					t.Errorf("%s while starting: %d %q, want %d and no body", path, code, body, want)
				}
			}
			p.ready()
			for _, path := range append(c.known, "/health", "/health_generate") {
				if code, text := p.do("GET", path, ""); code != 200 {
					t.Errorf("%s: %d %s", path, code, text)
				}
			}
			for _, path := range c.unknown {
				if code, _ := p.do("GET", path, ""); code != 404 {
					t.Errorf("%s: %d, want 404", path, code)
				}
			}
			var got struct {
				Version  string  `json:"version"`
				Fraction float64 `json:"mem_fraction_static"`
			}
			_, text := p.do("GET", old, "")
			if err := json.Unmarshal([]byte(text), &got); err != nil || !strings.HasPrefix(got.Version, c.version) || got.Fraction == 0 {
				t.Errorf("%s: %+v %v %.200s", old, got, err, text)
			}
			tokenize, abort := 200, 200
			if c.version < "0.5" {
				tokenize = 404
			}
			if c.version == "0.4.6" {
				abort = 422
			}
			if code, _ := p.do("POST", "/tokenize", `{"prompt":"a"}`); code != tokenize {
				t.Errorf("/tokenize: %d, want %d", code, tokenize)
			}
			if code, _ := p.do("POST", "/abort_request", `{"abort_all":true}`); code != abort {
				t.Errorf("/abort_request: %d, want %d", code, abort)
			}
		})
	}
}

// A health check in the versions where /health tests nothing: it costs no generation and no time.
func TestOldHealthTestsNothing(t *testing.T) {
	t.Parallel()
	p := launchProcess(t, nil, "--sim-version", "0.4.9", "--sim-fault", "hang", "--sim-time-scale", "600").ready()
	p.until("hang", func() bool { code, _ := p.do("GET", "/health_generate", ""); return code == 503 })
	if code, _ := p.do("GET", "/health", ""); code != 200 {
		t.Errorf("/health of a hung server: %d, want 200", code)
	}
}

// Flags are the version's own.
func TestVersionsFlags(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, args, want string }{
		{"renamed flag, old", "--sim-version 0.5.10 --cuda-graph-max-bs 256", ""},
		{"renamed flag, new name in an old version", "--sim-version 0.5.10 --cuda-graph-max-bs-decode 256", "sglang serve: error: unrecognized arguments: --cuda-graph-max-bs-decode 256"},
		{"renamed flag, old name in a new version", "--sim-version 0.5.23 --cuda-graph-max-bs 256", "sglang serve: error: ambiguous option: --cuda-graph-max-bs could match"},
		{"bf16 before 0.5.4", "--sim-version 0.4.9 --kv-cache-dtype bf16", "launch_server.py: error: argument --kv-cache-dtype: invalid choice: 'bf16' (choose from 'auto', 'fp8_e5m2', 'fp8_e4m3')"},
		{"bf16 since", "--sim-version 0.5.5 --kv-cache-dtype bf16", ""},
		{"sizes with a suffix", "--sim-version 0.4.9 --max-total-tokens 150k", "error: argument --max-total-tokens: invalid int value: '150k'"},
		{"io backend before it was there", "--sim-version 0.4.6 --hicache-io-backend kernel", "launch_server.py: error: unrecognized arguments: --hicache-io-backend kernel"},
		{"config file before it was there", "--sim-version 0.4.9 --config x.yaml", "unrecognized arguments: --config x.yaml"},
		{"alias", "--sim-version 0.4.6 --tp 8 --tensor-parallel-size 8", ""},
		{"full name of a version", "--sim-version=0.4.6.post5", ""},
		{"instruments", "--sim-version 0.4.6 " + strings.Join(sglang.InstrumentFlags(nil, nil), " "), ""},
		{"no such version", "--sim-version 0.3", "sglang serve: error: argument --sim-version: invalid choice: '0.3' (choose from 0.4.6, 0.4.9, 0.5.5, 0.5.10, 0.5.23)"},
	} {
		a, err := ParseArgs(append([]string{"--model-path", "m"}, strings.Fields(c.args)...))
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want == "" && a.Python("model_path") != "'m'":
			t.Errorf("%s: model %s", c.name, a.Python("model_path"))
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// What --help lists is what the parser takes, in each version.
func TestVersionsHelp(t *testing.T) {
	t.Parallel()
	for _, d := range dialects {
		known := sglang.ParseHelp(d.helpText())
		for _, f := range d.flags().rows {
			for _, o := range f.options {
				if name := strings.TrimPrefix(o, "--"); name != "help" && !known.Has(name) && !strings.HasPrefix(name, "no-") {
					t.Errorf("%s: --help does not list %s", d.name, o)
				}
			}
		}
		for flag, want := range map[string]bool{"cuda-graph-max-bs": d.release < r0523, "cuda-graph-max-bs-decode": d.release == r0523, "hicache-io-backend": d.release > r046, "config": d.release >= r055} {
			if known.Has(flag) != want {
				t.Errorf("%s: --%s listed: %v, want %v", d.name, flag, known.Has(flag), want)
			}
		}
		if got := known.Accepts("kv-cache-dtype", "bf16"); got != (d.release >= r055) {
			t.Errorf("%s takes bf16: %v", d.name, got)
		}
	}
}

// Deaths in the words of their version.
func TestVersionsDeaths(t *testing.T) {
	t.Parallel()
	all := together{t: t}
	defer all.Wait()
	const low, big = "--mem-fraction-static 0.75", "--mem-fraction-static 0.88 --enable-hierarchical-cache --hicache-size 600"
	const kilo = "--mem-fraction-static 0.88 --enable-hierarchical-cache --hicache-size 300"
	for _, c := range []struct {
		version, args string
		code          int
		kind          string // the reader's word for the first fatal line
		want          string
	}{
		{"0.4.6", low, -9, "not_enough_memory", "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.\n"},
		{"0.5.5", low, -9, "not_enough_memory", "--mem-fraction-static. Current value: self.server_args.mem_fraction_static=0.75\n"},
		{"0.5.10", low, -9, "not_enough_memory", "--mem-fraction-static. Current value: mem_fraction_static=0.75\n"},
		{"0.4.6", "--mem-fraction-static 0.945 --cuda-graph-max-bs 512", -9, "gpu_oom", "Exception: Capture CUDA graph failed: CUDA out of memory."},
		{"0.4.9", big, -9, "host_mem_insufficient", "Requesting 600.00 GB but only have 424.00 GB free."},
		{"0.5.10", big, -9, "host_mem_insufficient", "Requesting 600.00 GB but only have 413.26 GB free."},
		{"0.5.10", kilo, 1, "scheduler_died_init", "RuntimeError: Rank 5 scheduler died during initialization (exit code: -9)."},
		{"0.4.9", kilo, 1, "scheduler_died_init", "Rank 5 scheduler is dead. Please check if there are relevant logs."},
		{"0.5.5", "--mem-fraction-static 0.88 --enable-hierarchical-cache --hicache-size 8", -9, "hicache_smaller_refused", "AssertionError: The host memory should be larger than the device memory"},
		{"0.4.9", "--sim-fault port_taken", 1, "port_in_use", "[Errno 98] error while attempting to bind on address"},
		{"0.4.9", "--sim-fault cuda_error", -9, "cuda_illegal", "Received sigquit from a child process."},
		{"0.5.5", "--sim-fault nccl", -9, "nccl_error", "SIGQUIT received. signum=None, frame=None."},
		{"0.4.6", "--sim-fault watchdog --watchdog-timeout 10", -9, "watchdog", "Watchdog timeout (self.watchdog_timeout=10.0)"},
		{"0.5.23", "--sim-fault watchdog", -9, "watchdog", "Scheduler watchdog timeout (self.watchdog_timeout=300"},
		{"0.5.10", "--sim-fault scheduler_killed", -9, "child_crashed", "crashed with exit code -9. Triggering SIGQUIT for cleanup..."},
	} {
		all.run(c.version+" "+c.args, func(t *testing.T) {
			p := launchProcess(t, nil, append([]string{"--sim-version", c.version}, strings.Fields(c.args)...)...)
			if code := p.exit(); code != c.code || !strings.Contains(p.log(), c.want) {
				t.Errorf("exit %d, want %d and %q; log:\n%s", code, c.code, c.want, tail(p.log()))
			}
			r := sglang.NewReader()
			r.Feed([]byte(p.log()))
			if f := r.Facts(); len(f.Fatal) == 0 || f.Fatal[0].Kind != c.kind {
				t.Errorf("first fatal line %+v, want %s", f.Fatal, c.kind)
			}
			if len(p.children()) > 0 {
				t.Errorf("children left: %v", p.children())
			}
		})
	}
}

// Before 0.5.10 nobody misses a scheduler that was killed: the server stays, and answers nothing.
func TestOldServerOutlivesItsScheduler(t *testing.T) {
	t.Parallel()
	p := launchProcess(t, nil, "--sim-version", "0.4.6").ready()
	_ = killProcess(p.children()[0])
	p.until("the loss", func() bool {
		return strings.Contains(p.log(), "Child process unexpectedly failed with an exit code 9. pid=")
	})
	if code, _ := p.do("GET", "/health", ""); code != 200 {
		t.Errorf("/health: %d, want 200", code)
	}
	if code, _ := p.do("GET", "/health_generate", ""); code != 503 {
		t.Errorf("/health_generate: %d, want 503", code)
	}
	select {
	case <-p.done:
		t.Error("the server ended")
	default:
	}
}

func killProcess(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Kill()
}
