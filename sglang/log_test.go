package sglang_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/sglang"
)

func TestParseLine(t *testing.T) {
	t.Parallel()
	const stamp = "[2026-11-29 14:08:17 TP3] "
	for _, tt := range []struct {
		line   string
		kind   string
		values map[string]float64
		words  map[string]string
	}{
		{line: stamp + "Load weight begin. avail mem=94.04 GB", kind: "weight_begin", values: map[string]float64{"avail_before_load_gb": 94.04}},
		{
			line: stamp + "Load weight end. elapsed=312.40 s, type=KimiK25ForConditionalGeneration, quant=compressed-tensors, avail mem=21.71 GB, mem usage=72.21 GB.",
			kind: "weight_end", values: map[string]float64{"avail_after_load_gb": 21.71, "weights_gb": 72.21, "elapsed_s": 312.4},
			words: map[string]string{"model": "KimiK25ForConditionalGeneration"},
		},
		{
			line: "Loading safetensors checkpoint shards:  45% Completed | 29/64 [00:41<00:48,  1.38s/it]", kind: "shard_progress",
			values: map[string]float64{"load_percent": 45, "load_done": 29, "load_total": 64, "load_s_per_shard": 1.38, "load_eta_s": 48},
			words:  map[string]string{"what": "safetensors checkpoint"},
		},
		{
			line: stamp + "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 159277, KV size: 10.42 GB", kind: "kv_allocated",
			values: map[string]float64{"tokens": 159277, "kv_cache_gb": 10.42}, words: map[string]string{"dtype": "torch.bfloat16"},
		},
		{
			line: "[2026-11-29 14:08:17] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 2000, K size: 0.25 GB, V size: 0.50 GB", kind: "kv_allocated",
			values: map[string]float64{"tokens": 2000, "k_gb": 0.25, "v_gb": 0.5, "kv_cache_gb": 0.75}, words: map[string]string{"dtype": "torch.bfloat16"},
		},
		{line: stamp + "Memory pool end. avail mem=11.20 GB", kind: "memory_pool_end", values: map[string]float64{"avail_after_pool_gb": 11.2}},
		{
			line: stamp + "Capture target decode CUDA graph begin. backend=full, num_tokens_per_req=1, avail mem=11.11 GB", kind: "graph_begin",
			values: map[string]float64{"avail_gb": 11.11}, words: map[string]string{"what": "target decode CUDA graph"},
		},
		{
			line: stamp + "Capture target decode CUDA graph end. bs=[1, 2, 4, 8], elapsed=41.20 s, mem usage=2.31 GB, avail mem=8.80 GB.", kind: "graph_end",
			values: map[string]float64{"elapsed_s": 41.2, "graph_mem_gb": 2.31, "avail_after_graph_gb": 8.8}, words: map[string]string{"what": "target decode CUDA graph"},
		},
		{
			line: stamp + "Capture cuda graph end. Time elapsed: 41.20 s. mem usage=2.31 GB. avail mem=8.80 GB.", kind: "graph_end",
			values: map[string]float64{"elapsed_s": 41.2, "graph_mem_gb": 2.31, "avail_after_graph_gb": 8.8}, words: map[string]string{"what": "cuda graph"},
		},
		{line: stamp + "Capture cpu graph begin. avail mem=11.11 GB", kind: "graph_begin", values: map[string]float64{"avail_gb": 11.11}, words: map[string]string{"what": "cpu graph"}},
		{
			line: stamp + "max_total_num_tokens=159277, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=2048, context_len=262144, available_gpu_mem=9.23 GB", kind: "capacity",
			values: map[string]float64{"max_total_num_tokens": 159277, "chunked_prefill_size": 8192, "max_prefill_tokens": 16384, "max_running_requests": 2048, "context_len": 262144, "available_gpu_mem_gb": 9.23},
		},
		{
			line: "[2026-11-29 14:08:17] max_total_num_tokens=2000, chunked_prefill_size=None, max_prefill_tokens=16384, max_running_requests=1000, context_len=512, available_cpu_mem=18.90 GB", kind: "capacity",
			values: map[string]float64{"max_total_num_tokens": 2000, "max_prefill_tokens": 16384, "max_running_requests": 1000, "context_len": 512, "available_cpu_mem_gb": 18.9},
		},
		{
			line: stamp + "Allocating kv hierarchical KV host pool: 683061 tokens, 48.00 GB host memory.", kind: "host_pool",
			values: map[string]float64{"host_tokens": 683061, "host_request_gb_per_rank": 48}, words: map[string]string{"label": "kv"},
		},
		{
			line: stamp + "Allocating 48.00 GB host memory for hierarchical KV cache.", kind: "host_pool",
			values: map[string]float64{"host_request_gb_per_rank": 48}, words: map[string]string{"label": "hierarchical KV cache"},
		},
		{
			line: "ValueError: Not enough host memory available. Requesting 300.00 GB but only have 54.78 GB free. Please reduce the size of the hierarchical cache.", kind: "host_mem_insufficient",
			values: map[string]float64{"host_request_gb_per_rank": 300, "host_free_gb": 54.78},
		},
		{
			line: stamp + "HiCache kv host pool (142305 tokens) is smaller than the device pool (159277 tokens);L2 cache effectiveness is reduced.", kind: "hicache_smaller_than_device",
			values: map[string]float64{"host_tokens": 142305, "tokens": 159277},
		},
		{
			line: "[2026-11-29 14:08:17] INFO:     Uvicorn running on http://127.0.0.1:39871 (Press CTRL+C to quit)", kind: "uvicorn_running",
			values: map[string]float64{"port": 39871}, words: map[string]string{"url": "http://127.0.0.1:39871"},
		},
		{line: "[2026-11-29 14:08:17] The server is fired up and ready to roll!", kind: "fired_up"},
		{
			line: "[2026-11-29 14:08:17] Prefill batch, #new-seq: 1, #new-token: 3, #cached-token: 2, token usage: 0.01, #running-req: 4, #queue-req: 5, #pending-token: 0, cpu graph: False, input throughput (token/s): 1.94", kind: "prefill_batch",
			values: map[string]float64{"new_seq": 1, "new_token": 3, "cached_token": 2, "token_usage": 0.01, "running": 4, "queue": 5, "input_tok_s": 1.94},
		},
		{
			line: stamp + "Prefill batch. #new-seq: 1, #new-token: 7, #cached-token: 0, cache hit rate: 35.00%, token usage: 0.06, #running-req: 0, #queue-req: 0", kind: "prefill_batch",
			values: map[string]float64{"new_seq": 1, "new_token": 7, "cached_token": 0, "token_usage": 0.06, "running": 0, "queue": 0},
		},
		{
			line: stamp + "Decode batch [77], #running-req: 12, #full token: 30012, full token usage: 0.19, #swa token: 120, swa token usage: 0.01, cuda graph: True, gen throughput (token/s): 412.33, #queue-req: 5, ", kind: "decode_batch",
			values: map[string]float64{"running": 12, "tokens": 30012, "token_usage": 0.19, "swa_token_usage": 0.01, "gen_tok_s": 412.33, "queue": 5},
		},
		{line: stamp + "KV cache pool is full. Retract requests. #retracted_reqs: 3, #new_tokens_gained: 18234, #new_token_ratio: 0.5910 -> 0.9270", kind: "retract", values: map[string]float64{"retracted": 3}},
		{
			line: "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current value: mem_fraction_static=0.76", kind: "not_enough_memory",
			values: map[string]float64{"mem_fraction_static": 0.76},
		},
		{
			line: "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. GPU 3 has a total capacity of 94.99 GiB of which 1.12 GiB is free. Process 1 has 94 GiB memory in use.", kind: "gpu_oom",
			values: map[string]float64{"oom_tried_mib": 1792, "gpu": 3, "oom_gpu_total_gib": 94.99, "oom_gpu_free_mib": 1146.88},
		},
		{line: "RuntimeError: CUDA error: out of memory", kind: "gpu_oom"},
		{
			line: "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 448.00 MiB.", kind: "gpu_oom",
			values: map[string]float64{"oom_tried_mib": 448}, words: map[string]string{"where": "graph"},
		},
		{line: "Exception: Capture cuda graph failed: no kernel image", kind: "graph_failed", words: map[string]string{"msg": "no kernel image"}},
		{
			line: "sglang serve: error: argument --hicache-size: invalid int value: '48.5'", kind: "argparse_error",
			words: map[string]string{"flag": "--hicache-size", "value": "48.5", "msg": "argument --hicache-size: invalid int value: '48.5'"},
		},
		{
			line: "launch_server.py: error: argument --schedule-policy: invalid choice: 'nope' (choose from 'lpm', 'random')", kind: "argparse_error",
			words: map[string]string{"flag": "--schedule-policy", "value": "nope", "msg": "argument --schedule-policy: invalid choice: 'nope' (choose from 'lpm', 'random')"},
		},
		{line: "sglang serve: error: unrecognized arguments: --bogus 1", kind: "argparse_error", words: map[string]string{"flag": "--bogus", "value": "1", "msg": "unrecognized arguments: --bogus 1"}},
		{
			line: "sglang serve: error: ambiguous option: --cuda-graph-max-bs could match --cuda-graph-max-bs-decode", kind: "argparse_error",
			words: map[string]string{"flag": "--cuda-graph-max-bs", "msg": "ambiguous option: --cuda-graph-max-bs could match --cuda-graph-max-bs-decode"},
		},
		{line: "[2026-11-29 14:08:17] ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 30000): address already in use", kind: "port_in_use", values: map[string]float64{"port": 30000}},
		{line: "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU", kind: "no_accelerator"},
		{line: "RuntimeError: No accelerator (CUDA, XPU, HPU, NPU, MUSA, MPS) or platform plugin is available.", kind: "no_accelerator"},
		{
			line: "[2026-11-29 14:08:17] Subprocess scheduler_0 (pid=1234) crashed with exit code -9. Triggering SIGQUIT for cleanup...", kind: "child_crashed",
			values: map[string]float64{"pid": 1234, "child_exit_code": -9}, words: map[string]string{"name": "scheduler_0"},
		},
		{line: "RuntimeError: Rank 3 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL), ...", kind: "scheduler_died_init", values: map[string]float64{"child_rank": 3, "child_exit_code": -9}},
		{line: "[2026-11-29 14:08:17] SIGQUIT received. signum=None, frame=None. It usually means one child failed.", kind: "sigquit"},
		{line: stamp + "Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)", kind: "watchdog", values: map[string]float64{"watchdog_timeout_s": 300}},
		{line: stamp + "Scheduler watchdog timeout (self.watchdog_timeout=60, self.soft=True)", kind: "watchdog_soft", values: map[string]float64{"watchdog_timeout_s": 60}},
		{
			line: "[rank3]:[E1129 10:00:00.000 ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=32, Timeout(ms)=600000) ran", kind: "nccl_error",
			values: map[string]float64{"nccl_timeout_ms": 600000},
		},
		{line: "RuntimeError: CUDA error: an illegal memory access was encountered", kind: "cuda_illegal", words: map[string]string{"msg": "an illegal memory access was encountered"}},
		{line: "[2026-11-29 14:08:17] Health check failed. Server couldn't get a response from detokenizer for last 20 seconds. tic start time: 10:00:00.", kind: "health_failed", values: map[string]float64{"health_timeout_s": 20}},
		{line: `[2026-11-29 14:08:17] INFO:     127.0.0.1:47702 - "GET /health HTTP/1.1" 503 Service Unavailable`, kind: "health_access", values: map[string]float64{"status": 503}, words: map[string]string{"path": "/health"}},
		{line: "[12345.678] Out of memory: Killed process 4242 (sglang::schedul) total-vm:500000000kB", kind: "kernel_oom", values: map[string]float64{"pid": 4242}, words: map[string]string{"where": "Out of memory", "name": "sglang::schedul"}},
		{line: "OSError: /models/nope does not appear to have a file named config.json.", kind: "model_missing", words: map[string]string{"msg": "/models/nope does not appear to have a file named config.json."}},
		{line: "ModuleNotFoundError: No module named 'vllm'", kind: "traceback_last", words: map[string]string{"type": "ModuleNotFoundError", "msg": "No module named 'vllm'"}},
		{line: "[2026-11-29 14:08:17] SIGTERM received. signum=None frame=None. Draining requests and shutting down...", kind: "sigterm"},
		{line: "[2026-11-29 14:08:17] Gracefully exiting... Remaining number of requests 2. Remaining requests remaining_rids=[].", kind: "graceful_exit", values: map[string]float64{"remaining": 2}},
		{
			line: stamp + "max_running_requests was reduced from the requested 4096 to 2048 (per dp worker) due to the available KV cache capacity.", kind: "max_running_clamped",
			values: map[string]float64{"requested_max_running_requests": 4096, "max_running_requests": 2048},
		},
		{line: stamp + "max_total_tokens=500000 is larger than the profiled value 159277. Use the profiled value instead.", kind: "max_tokens_clamped", values: map[string]float64{"requested_tokens": 500000, "tokens": 159277}},
		{
			line: "[2026-11-29 14:08:17] server_args={'model_path': '/m', 'mem_fraction_static': 0.716, 'tp_size': 8, 'kv_cache_dtype': 'auto', 'max_total_tokens': None}", kind: "server_args",
			values: map[string]float64{"mem_fraction_static": 0.716, "tp_size": 8}, words: map[string]string{"model_path": "/m", "kv_cache_dtype": "auto"},
		},
		{
			line: "[2025-09-10 10:00:00] server_args=ServerArgs(model_path='/m', tp_size=2, hicache_size=48)", kind: "server_args",
			values: map[string]float64{"tp_size": 2, "hicache_size": 48}, words: map[string]string{"model_path": "/m"},
		},
		// Lines that mean nothing.
		{line: `[2026-11-29 14:08:17] INFO:     127.0.0.1:47702 - "POST /generate HTTP/1.1" 200 OK`},
		{line: stamp + "Ignore import error when loading sglang.srt.models.x: RuntimeError: No CUDA GPUs are available"},
		{line: `[2026-11-29 14:08:17] Receive: obj=GenerateReqInput(rid='1', text='torch.OutOfMemoryError: CUDA out of memory.')`},
		{line: `{"event": "request.received", "obj": {"text": "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static"}}`},
		{line: `ValueError: bad request text='CUDA out of memory. Tried to allocate 1.00 GiB'`},
		{line: "    raise RuntimeError(\"CUDA error: out of memory\")"},
		{line: ""},
	} {
		got, ok := sglang.ParseLine(tt.line)
		if !ok || got.Kind != tt.kind {
			if tt.kind != "" || ok {
				t.Errorf("%.100q: kind %q (%v), want %q", tt.line, got.Kind, ok, tt.kind)
			}
			continue
		}
		if d := cmp.Diff(tt.values, got.Values); d != "" && len(tt.values)+len(got.Values) > 0 {
			t.Errorf("%.100q: values -want +got:\n%s", tt.line, d)
		}
		if d := cmp.Diff(tt.words, got.Words); d != "" && len(tt.words)+len(got.Words) > 0 {
			t.Errorf("%.100q: words -want +got:\n%s", tt.line, d)
		}
		if strings.HasPrefix(tt.line, stamp) && got.Rank != 3 {
			t.Errorf("%.100q: rank %d, want 3", tt.line, got.Rank)
		}
	}
}

func TestFrame(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 29, 14, 8, 17, 0, time.UTC)
	const msg = "Memory pool end. avail mem=11.20 GB"
	for _, tt := range []struct {
		name, line string
		rank       int
		at         time.Time
	}{
		{"plain", "[2026-11-29 14:08:17] " + msg, -1, at},
		{"rank", "[2026-11-29 14:08:17 TP0] " + msg, 0, at},
		{"all ranks", "[2026-11-29 14:08:17 DP1 PP0 TP13 EP3] " + msg, 13, at},
		{"milliseconds", "[2026-11-29 14:08:17.123 TP2] " + msg, 2, at},
		{"colours", "\x1b[32m[2026-11-29 14:08:17 TP1]\x1b[0m " + msg, 1, at},
		{"container", "[2026-11-29T14:08:17.6161218Z] [2026-11-29 14:08:17 TP1] " + msg, 1, at},
		{"compose", "sglang-1  | [2026-11-29 14:08:17 TP1] " + msg, 1, at},
		{"glued to a bar", " 50%|#####     | 12/24 [00:15<00:15,  1.29s/it][2026-11-29 14:08:17 TP5] " + msg, 5, at},
		{"glued to the last step", "\rLoading safetensors checkpoint shards: 100% Completed | 64/64 [06:56<00:00,  6.51s/it][2026-11-29 14:08:17 TP5] " + msg, 5, at},
		{"windows end", "[2026-11-29 14:08:17 TP1] " + msg + "\r", 1, at},
		{"no frame", msg, -1, time.Time{}},
	} {
		got, ok := sglang.ParseLine(tt.line)
		if !ok || got.Kind != "memory_pool_end" || got.Rank != tt.rank || !got.At.Equal(tt.at) || got.Text != msg {
			t.Errorf("%s: %+v (%v), want memory_pool_end of rank %d at %v", tt.name, got, ok, tt.rank, tt.at)
		}
	}
	quoted := `[warn] client said "[2026-11-29 14:08:17 TP1] ` + msg + `"`
	if got, ok := sglang.ParseLine(quoted); ok {
		t.Errorf("a quoted line gave %+v", got)
	}
}

func TestTracebackContext(t *testing.T) {
	t.Parallel()
	oom := "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB."
	frames := func(lines ...string) string {
		var b strings.Builder
		for _, l := range lines {
			file, function, _ := strings.Cut(l, ":")
			fmt.Fprintf(&b, "  File \".../sglang/srt/%s\", line 12, in %s\n    self.%s(batch)\n           ^^^^^^^\n", file, function, function)
		}
		return b.String()
	}
	for _, tt := range []struct{ name, body, where string }{
		{"prefill", frames("managers/scheduler.py:run_batch", "model_executor/model_runner.py:forward_extend", "models/deepseek_v2.py:forward"), "prefill"},
		{"decode", frames("model_executor/model_runner.py:forward_decode", "models/deepseek_v2.py:forward"), "decode"},
		{"decode graph", frames("model_executor/cuda_graph_runner.py:replay"), "decode"},
		{"sampling", frames("model_executor/model_runner.py:forward_extend", "layers/logits_processor.py:forward"), "sampling"},
		{"graph", frames("model_executor/model_runner.py:init_cuda_graphs", "model_executor/model_runner.py:forward_decode"), "graph"},
		{"load", frames("model_executor/model_runner.py:load_model", "model_loader/loader.py:load_weights"), "load"},
		{"host pool", frames("managers/scheduler.py:init_memory_pool_and_cache", "mem_cache/memory_pool_host.py:__init__"), "host_pool"},
		{"nothing known", frames("models/deepseek_v2.py:forward"), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := sglang.NewReader()
			r.Feed([]byte("[2026-11-29 14:08:17 TP3] Scheduler hit an exception: Traceback (most recent call last):\n" + tt.body + oom + "\n"))
			f := r.Facts()
			if len(f.Fatal) != 1 || f.Fatal[0].Kind != "gpu_oom" || f.Fatal[0].Rank != 3 || f.Fatal[0].Words["where"] != tt.where {
				t.Errorf("fatal %+v, want one gpu_oom of rank 3 in %q", f.Fatal, tt.where)
			}
		})
	}
}

func TestChainedTraceback(t *testing.T) {
	t.Parallel()
	r := sglang.NewReader()
	r.Feed([]byte(`[2026-11-29 14:08:17 TP5] Scheduler hit an exception: Traceback (most recent call last):
  File ".../sglang/srt/model_executor/runner.py", line 1, in capture_one_batch_size
KeyError: 7

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File ".../sglang/srt/managers/scheduler.py", line 2, in run_scheduler_process
RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB.
`))
	f := r.Facts()
	if len(f.Fatal) != 2 || f.Fatal[1].Kind != "gpu_oom" || f.Fatal[1].Rank != 5 || f.Fatal[1].Words["where"] != "graph" {
		t.Errorf("fatal %+v, want the second half of the chain to keep rank 5 and graph", f.Fatal)
	}
}

func TestRequestErrorIsNoDeath(t *testing.T) {
	t.Parallel()
	r := sglang.NewReader()
	r.Feed([]byte("[2026-11-29 14:08:17] The server is fired up and ready to roll!\n" +
		"Traceback (most recent call last):\n  File \".../starlette/app.py\", line 1, in app\nValueError: bad json\n"))
	if f := r.Facts(); len(f.Fatal) != 0 || len(f.Notes) != 1 {
		t.Errorf("fatal %v, notes %v; one failed request is a note", f.Fatal, f.Notes)
	}
}

func TestStopIsNoDeath(t *testing.T) {
	t.Parallel()
	const stopped = "[2026-11-29 14:08:17] SIGTERM received. signum=None frame=None. Draining requests and shutting down...\n" +
		"[2026-11-29 14:08:18] Subprocess scheduler_0 (pid=1) crashed with exit code -15. Triggering SIGQUIT for cleanup...\n" +
		"[2026-11-29 14:08:18] SIGQUIT received. signum=None, frame=None. It usually means one child failed.\n"
	r := sglang.NewReader()
	r.Feed([]byte(stopped))
	if f := r.Facts(); len(f.Fatal) != 0 || f.Phase != sglang.PhaseShutdown {
		t.Errorf("fatal %v, phase %s; a stop that was asked for is no failure", f.Fatal, f.Phase)
	}
	r = sglang.NewReader()
	r.Feed([]byte(strings.SplitAfterN(strings.ReplaceAll(stopped, "-15", "-9"), "\n", 2)[1]))
	if f := r.Facts(); len(f.Fatal) != 2 || f.Fatal[0].Values["child_exit_code"] != -9 {
		t.Errorf("fatal %v, want a child killed by -9 and the SIGQUIT", f.Fatal)
	}
}

func TestReaderProgressBar(t *testing.T) {
	t.Parallel()
	r := sglang.NewReader()
	bar := "Loading safetensors checkpoint shards:  %2d%% Completed | %d/64 [00:41<00:48,  1.38s/it]\r"
	r.Feed([]byte("[2026-11-29 14:08:17 TP0] Load weight begin. avail mem=94.04 GB\n"))
	for i := range 3 {
		events := r.Feed(fmt.Appendf(nil, bar, i, i))
		if len(events) != 1 || events[0].Values["load_done"] != float64(i) || events[0].Line != 2 {
			t.Fatalf("step %d: %+v, want its own event on line 2 before the line ends", i, events)
		}
	}
	if f := r.Facts(); f.Phase != sglang.PhaseWeightLoad || f.Lines != 1 {
		t.Errorf("phase %s, %d lines; want weight_load, 1", f.Phase, f.Lines)
	}
}

func TestReaderLastLine(t *testing.T) {
	t.Parallel()
	r := sglang.NewReader()
	if ev := r.Feed([]byte("\n[2026-11-29 14:08:17] The server is fired up and ready to roll!")); len(ev) != 0 {
		t.Errorf("unfinished line gave %v", ev)
	}
	ev := r.Close()
	if len(ev) != 1 || ev[0].Kind != "fired_up" || ev[0].Line != 2 || ev[0].Offset != 1 || !r.Facts().Ready {
		t.Errorf("Close gave %+v, want fired_up on line 2 at offset 1", ev)
	}
	if again := r.Close(); len(again) != 0 {
		t.Errorf("second Close gave %v", again)
	}
}

func TestReaderHugeLine(t *testing.T) { // not parallel: it counts the process's allocations
	r := sglang.NewReader()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	chunk := []byte(strings.Repeat("Receive: obj=GenerateReqInput(text='", 1<<10))
	for range 1 << 10 {
		r.Feed(chunk)
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.TotalAlloc) - int64(before.TotalAlloc); grown > 4<<20 {
		t.Errorf("a line of %d MiB allocated %d KiB", len(chunk)>>10, grown>>10)
	}
	ev := r.Feed([]byte("\n\xff\xfe[2026-11-29 14:08:17] The server is fired up and ready to roll!\n"))
	if len(ev) != 1 || ev[0].Line != 2 {
		t.Errorf("after a huge line: %+v, want fired_up on line 2", ev)
	}
}

func TestReaderBounds(t *testing.T) {
	t.Parallel()
	r := sglang.NewReader()
	for i := range 300 {
		r.Feed(fmt.Appendf(nil, "RuntimeError: CUDA error: out of memory %d\n", i))
	}
	f := r.Facts()
	if len(f.Fatal) != 64 || f.Fatal[0].Line != 1 {
		t.Errorf("%d fatal events, first on line %d; want the first 64", len(f.Fatal), f.Fatal[0].Line)
	}
	f.Fatal[0].Kind = "changed"
	if r.Facts().Fatal[0].Kind == "changed" {
		t.Error("Facts shares memory with the Reader")
	}
}

func TestSecretsInEvents(t *testing.T) {
	t.Parallel()
	const line = "[2026-11-29 14:08:17] server_args={'model_path': '/m', 'api_key': 'very-secret', 'tp_size': 8}"
	ev, _ := sglang.ParseLine(line)
	if strings.Contains(ev.Text, "very-secret") || !strings.Contains(ev.Text, "'api_key': '***'") {
		t.Errorf("text %q shows the key", ev.Text)
	}
	long, _ := sglang.ParseLine("[2026-11-29 14:08:17] server_args={'model_path': '" + strings.Repeat("é", 900) + "'}")
	if len(long.Text) > 400 || strings.ContainsRune(long.Text, '\uFFFD') {
		t.Errorf("text of %d bytes, want at most 400 and whole characters: %q", len(long.Text), long.Text[len(long.Text)-8:])
	}
}
