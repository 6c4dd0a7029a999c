package trial

// gpuEntries: GPU memory was not enough.
var gpuEntries = []Entry{
	{
		Outcome: GPUOOM, Cause: "weights_too_big", Blames: BlameYes,
		Meaning: "The weights alone do not fit into the GPU's memory.",
		Remedy:  "No memory flag helps while the weights themselves do not fit. Spread them over more GPUs or make them smaller.",
		Example: Example{Version: "0.5.10", Log: `[2026-01-10 22:04:11 TP0] Load weight begin. avail mem=39.12 GB
[2026-01-10 22:04:52 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/sglang/python/sglang/srt/managers/scheduler.py", line 3012, in run_scheduler_process
    scheduler = Scheduler(
  File "/opt/sglang/python/sglang/srt/model_executor/model_runner.py", line 781, in load_model
    self.model = get_model(
  File "/opt/sglang/python/sglang/srt/model_loader/loader.py", line 581, in load_model
    model = _initialize_model(
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 896.00 MiB. GPU 0 has a total capacity of 39.49 GiB of which 214.31 MiB is free. Including non-PyTorch memory, this process has 39.27 GiB memory in use.

[2026-01-10 22:04:52] Received sigquit from a child process. It usually means the child failed.
`, Context: `{"alive": false, "exit_code": -9}`},
	},
	{
		Outcome: GPUOOM, Cause: "kv_pool_nonpositive", Blames: BlameYes,
		Meaning: "The weights leave less than --mem-fraction-static keeps back, so nothing remains for the KV pool.",
		Remedy: "The opposite of \"CUDA out of memory\": raise --mem-fraction-static above 1 - (free after loading / free before loading). " +
			"Lowering it, the usual reflex, makes it worse.",
		Example: Example{Version: "0.5.5", Log: `[2026-01-10 22:10:03] Load weight begin. avail mem=78.62 GB
[2026-01-10 22:11:40] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=9.81 GB, mem usage=68.81 GB.
[2026-01-10 22:11:40] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/sglang/python/sglang/srt/model_executor/model_runner.py", line 1511, in init_memory_pool
    raise RuntimeError(
RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current value: mem_fraction_static=0.84

[2026-01-10 22:11:40] Received sigquit from a child process. It usually means the child failed.
`, Context: `{"alive": false, "exit_code": -9}`},
	},
	{
		Outcome: GPUOOM, Cause: "graph_capture_oom", Blames: BlameYes,
		Meaning: "Weights and KV pool fitted, and there was no room left to capture the CUDA graphs.",
		Remedy: "Lower --mem-fraction-static first: it decides how much stays outside the pool. When KV tokens are precious, capture fewer batch sizes instead. " +
			"Don't switch graphs off to win memory.",
		Example: Example{Version: "0.5.5", Log: `[2026-01-10 22:20:31 TP0] Load weight begin. avail mem=78.62 GB
[2026-01-10 22:22:02 TP0] Load weight end. type=Qwen3ForCausalLM, dtype=torch.bfloat16, avail mem=45.10 GB, mem usage=33.52 GB.
[2026-01-10 22:22:02 TP0] KV Cache is allocated. #tokens: 325120, K size: 20.30 GB, V size: 20.30 GB
[2026-01-10 22:22:02 TP0] Memory pool end. avail mem=2.85 GB
[2026-01-10 22:22:03 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=2.71 GB
[2026-01-10 22:22:19 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/sglang/python/sglang/srt/model_executor/cuda_graph_runner.py", line 381, in __init__
    self.capture()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 448.00 MiB. GPU 0 has a total capacity of 79.25 GiB of which 301.94 MiB is free. Including non-PyTorch memory, this process has 78.94 GiB memory in use.

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/opt/sglang/python/sglang/srt/managers/scheduler.py", line 2711, in run_scheduler_process
    scheduler = Scheduler(
Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 448.00 MiB. GPU 0 has a total capacity of 79.25 GiB of which 301.94 MiB is free.
Possible solutions:
1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)
`, Context: `{"alive": false, "exit_code": -9}`},
	},
	{
		Outcome: GPUOOM, Cause: "prefill_activation", Blames: BlameYes,
		Meaning: "It started and served, and then reading a prompt needed more GPU memory than was free.",
		Remedy: "A start that succeeds proves nothing about this: the memory is taken when long prompts come. " +
			"Leave more outside the pool, or read prompts in smaller chunks.",
		Example: Example{Version: "0.5.10", Log: exampleServing + `[2026-01-10 23:41:17 TP3] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/sglang/python/sglang/srt/managers/tp_worker.py", line 460, in forward_batch_generation
    out = self.model_runner.forward(
  File "/opt/sglang/python/sglang/srt/model_executor/model_runner.py", line 2590, in forward_extend
    return self.model.forward(
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. GPU 3 has a total capacity of 94.99 GiB of which 1.12 GiB is free. Including non-PyTorch memory, this process has 93.86 GiB memory in use.

[2026-01-10 23:41:17] SIGQUIT received. signum=None, frame=None. It usually means one child failed.
`, Context: `{"alive": false, "exit_code": -9}`},
	},
	{
		Outcome: GPUOOM, Cause: "decode_activation", Blames: BlameYes,
		Meaning: "It started and served, and then a decode step needed more GPU memory than was free.",
		Remedy:  "Leave more outside the pool, or let fewer requests decode at once: what a step needs grows with the batch.",
		Example: Example{Version: "0.5.10", Log: exampleServing + `[2026-01-10 23:41:17 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/sglang/python/sglang/srt/managers/tp_worker.py", line 460, in forward_batch_generation
    out = self.model_runner.forward(
  File "/opt/sglang/python/sglang/srt/model_executor/model_runner.py", line 2511, in forward_decode
    return self.model.forward(
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 94.99 GiB of which 120.00 MiB is free. Including non-PyTorch memory, this process has 94.86 GiB memory in use.

[2026-01-10 23:41:17] SIGQUIT received. signum=None, frame=None. It usually means one child failed.
`, Context: `{"alive": false, "exit_code": -9}`},
	},
	{
		Outcome: GPUOOM, Cause: "sampling_logits", Blames: BlameYes,
		Meaning: "The logits (requests x vocabulary) did not fit beside the pool when answers were sampled.",
		Remedy:  "Leave more outside the pool, or let fewer requests run at once: the logits grow with the batch and with a large vocabulary.",
		Example: Example{Version: "0.5.10", Log: exampleServing + `[2026-01-10 23:41:17 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/sglang/python/sglang/srt/model_executor/model_runner.py", line 2702, in sample
    next_token_ids = self.sampler(
  File "/opt/sglang/python/sglang/srt/layers/sampler.py", line 110, in forward
    probs = torch.softmax(logits, dim=-1)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.16 GiB. GPU 0 has a total capacity of 94.99 GiB of which 611.00 MiB is free. Including non-PyTorch memory, this process has 94.39 GiB memory in use.

[2026-01-10 23:41:17] SIGQUIT received. signum=None, frame=None. It usually means one child failed.
`, Context: `{"alive": false, "exit_code": -9}`},
	},
	{
		Outcome: GPUOOM, Cause: "hicache_device_buffers", Blames: BlameYes,
		Meaning: "The hierarchical cache needs buffers on the GPU too, and there was no room for them.",
		Remedy:  "Leave more outside the pool, or make the host pool smaller: its index on the GPU shrinks with it.",
		Example: Example{Version: "0.5.10", Log: `[2026-01-10 22:31:52 TP0] Memory pool end. avail mem=1.02 GB
[2026-01-10 22:32:40 TP0] max_total_num_tokens=231323, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=2048, context_len=262144, available_gpu_mem=0.31 GB
[2026-01-10 22:32:40 TP0] Allocating 48.00 GB host memory for hierarchical KV cache.
[2026-01-10 22:32:58 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/sglang/python/sglang/srt/managers/scheduler.py", line 811, in init_memory_pool_and_cache
    self.tree_cache = HiRadixCache(
  File "/opt/sglang/python/sglang/srt/mem_cache/hiradix_cache.py", line 61, in __init__
    self.cache_controller = HiCacheController(
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 256.00 MiB. GPU 0 has a total capacity of 94.99 GiB of which 88.00 MiB is free. Including non-PyTorch memory, this process has 94.90 GiB memory in use.

[2026-01-10 22:32:58] Received sigquit from a child process. It usually means the child failed.
`, Context: `{"alive": false, "exit_code": -9}`},
	},
}

// exampleStart is a start up to the HTTP socket.
const exampleStart = `[2026-01-10 22:20:31 TP0] Load weight begin. avail mem=94.44 GB
[2026-01-10 22:26:02 TP0] Load weight end. elapsed=331.20 s, type=KimiK25ForConditionalGeneration, quant=compressed-tensors, avail mem=21.75 GB, mem usage=72.69 GB.
[2026-01-10 22:26:02 TP0] KV Cache is allocated. #tokens: 231323, KV size: 15.14 GB
[2026-01-10 22:26:02 TP0] Memory pool end. avail mem=6.59 GB
[2026-01-10 22:26:49 TP0] max_total_num_tokens=231323, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=2048, context_len=262144, available_gpu_mem=4.53 GB
`

// exampleReady is a server that becomes ready.
const exampleReady = exampleStart + `[2026-01-10 22:27:10] INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)
[2026-01-10 22:27:31] The server is fired up and ready to roll!
`

// exampleServing is one that then serves.
const exampleServing = exampleReady + `[2026-01-10 23:41:02 TP0] Decode batch, #running-req: 57, #token: 219004, token usage: 0.95, cuda graph: True, gen throughput (token/s): 1995.20, #queue-req: 12
[2026-01-10 23:41:15 TP0] Prefill batch, #new-seq: 1, #new-token: 8192, #cached-token: 0, token usage: 0.96, #running-req: 56, #queue-req: 13, cuda graph: False, input throughput (token/s): 5010.11
`
