package trial

// diedEntries: a server that died, did not become ready or stopped moving.
var diedEntries = []Entry{
	{
		Outcome: Crashed, Cause: "python_exception", Blames: BlamePartly,
		Meaning: "The server died of a Python exception that has nothing to do with memory.",
		Remedy:  "Once is chance, twice is the configuration or a bug of this version with this model.",
		Example: Example{Version: "0.5.10", Log: exampleServing + `[2026-01-10 23:41:17 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/sglang/python/sglang/srt/managers/scheduler.py", line 3616, in run_scheduler_process
    scheduler.run_event_loop()
  File "/opt/sglang/python/sglang/srt/managers/schedule_batch.py", line 1502, in prepare_for_decode
    self.seq_lens.add_(1)
KeyError: 'mrope_positions'

[2026-01-10 23:41:17] SIGQUIT received. signum=None, frame=None. It usually means one child failed.
`, Context: `{"alive": false, "exit_code": -9}`},
	},
	{
		Outcome: Crashed, Cause: "cuda_error", Blames: BlamePartly,
		Meaning: "A kernel on the GPU failed (illegal memory access, device assert, misaligned address).",
		Remedy:  "Run it once more. If it happens again, another attention backend or version may have the bug fixed.",
		Example: Example{Version: "0.5.10", Log: exampleServing + `[2026-01-10 23:41:17 TP2] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/sglang/python/sglang/srt/managers/scheduler.py", line 3616, in run_scheduler_process
    scheduler.run_event_loop()
  File "/opt/sglang/python/sglang/srt/managers/scheduler_output_processor_mixin.py", line 312, in process_batch_result_decode
    next_token_ids = next_token_ids.tolist()
RuntimeError: CUDA error: an illegal memory access was encountered
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.

[2026-01-10 23:41:17] SIGQUIT received. signum=None, frame=None. It usually means one child failed.
`, Context: `{"alive": false, "exit_code": -9}`},
	},
	{
		Outcome: Crashed, Cause: "nccl_error", Blames: BlameNo,
		Meaning: "The ranks lost each other in a collective operation, and no rank reported anything earlier.",
		Remedy:  "NCCL errors are mostly consequences: read the other node's log first, it ends earlier. Then the network.",
		Example: Example{Version: "0.5.10", Log: exampleServing + `[rank3]:[E110 23:51:31.519004117 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=32, OpType=ALLREDUCE, NumelIn=7168, NumelOut=7168, Timeout(ms)=600000) ran for 600041 milliseconds before timing out.
[2026-01-10 23:51:36] SIGQUIT received. signum=None, frame=None. It usually means one child failed.
`, Context: `{"alive": false, "exit_code": -9, "nnodes": 2, "node_rank": 0, "kernel_oom_kills": 0}`},
	},
	{
		Outcome: Crashed, Cause: "silent_exit", Blames: BlamePartly,
		Meaning: "A process of the server is gone, printed no reason, and the kernel's counters say that it was not for want of memory.",
		Remedy:  "Somebody may have killed it, or it died in native code. Run it once more; with a core dump if it repeats.",
		Example: Example{Version: "0.5.23", Log: exampleServing + `[2026-01-10 23:41:17] Subprocess scheduler_0 (pid=4242) crashed with exit code -9. Triggering SIGQUIT for cleanup...
[2026-01-10 23:41:17] SIGQUIT received. signum=None, frame=None. It usually means one child failed.
`, Context: `{"alive": false, "exit_code": -9, "kernel_oom_kills": 0, "cgroup_oom_kills": 0}`},
	},
	{
		Outcome: StartupTimeout, Cause: "slow_weight_load", Blames: BlameNo,
		Meaning: "The weights were still being read, file by file, when the time limit came.",
		Remedy:  "Nothing is wrong but the limit: cold page cache or slow storage. Says nothing about the configuration.",
		Example: Example{Version: "0.5.10", Log: `[2026-01-10 22:20:31 TP0] Load weight begin. avail mem=94.44 GB
Loading safetensors checkpoint shards:  38% Completed | 37/96 [14:51<23:41, 24.10s/it]
`, Context: `{"alive": true, "elapsed_s": 900, "ready_timeout_s": 900}`},
	},
	{
		Outcome: StartupTimeout, Cause: "load_barrier_timeout", Blames: BlameNo,
		Meaning: "Some ranks had loaded, others had not within SGLang's own limit: storage is slower for them, or one of them failed silently.",
		Remedy:  "Read the files once before the start, and raise --dist-timeout if one rank is always late. If a rank died, its own lines say why.",
		Example: Example{Version: "0.5.5", Log: `[2026-01-10 22:20:31 TP0] Load weight begin. avail mem=94.44 GB
[2026-01-10 22:24:02 TP0] Load weight end. type=DeepseekV3ForCausalLM, dtype=torch.bfloat16, avail mem=21.75 GB, mem usage=72.69 GB.
[2026-01-10 22:29:02 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/sglang/python/sglang/srt/model_executor/model_runner.py", line 812, in load_model
    raise ValueError(
ValueError: TP rank 0 could finish the model loading, but there are other ranks that didn't finish loading. It is likely due to unexpected failures (e.g., OOM) or a slow node.

[2026-01-10 22:29:02] Received sigquit from a child process. It usually means the child failed.
`, Context: `{"alive": false, "exit_code": -9, "elapsed_s": 540, "ready_timeout_s": 1500, "kernel_oom_kills": 0}`},
	},
	{
		Outcome: StartupTimeout, Cause: "jit_compile", Blames: BlameNo,
		Meaning: "Kernels were still being compiled when the time limit came; a first start does that for many minutes.",
		Remedy:  "The next start finds them in the cache. Keep that cache over restarts of a container, or compile once beforehand.",
		Example: Example{Version: "0.5.5", Log: `[2026-01-10 22:32:02 TP0] KV Cache is allocated. #tokens: 515845, KV size: 33.76 GB
[2026-01-10 22:32:02 TP0] Memory pool end. avail mem=20.92 GB
[2026-01-10 22:32:03 TP0] Entering DeepGEMM JIT Pre-Compile session. It may take a long time (typically 10-20 mins) if you have not run ` + "`sglang.compile_deep_gemm`" + `. It is recommended to run ` + "`sglang.compile_deep_gemm`" + ` with same args as ` + "`sglang.launch_server`" + ` for pre-compilation to reduce the overhead if you have not run it before.
DeepGEMM warmup:  21%|██        | 3440/16384 [05:12<19:36, 11.00it/s]
`, Context: `{"alive": true, "elapsed_s": 1500, "ready_timeout_s": 1500, "log_silent_s": 1}`},
	},
	{
		Outcome: StartupTimeout, Cause: "slow_graph_capture", Blames: BlameNo,
		Meaning: "CUDA graphs were still being captured, one batch size after another, when the time limit came.",
		Remedy:  "Nothing is wrong but the limit. Fewer captured sizes start faster.",
		Example: Example{Version: "0.5.5", Log: `[2026-01-10 22:32:02 TP0] Memory pool end. avail mem=20.92 GB
[2026-01-10 22:32:03 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=20.71 GB
Capturing batches (bs=288 avail_mem=17.20 GB):  54%|█████▍    | 28/52 [04:31<03:52,  9.68s/it]
`, Context: `{"alive": true, "elapsed_s": 900, "ready_timeout_s": 900, "log_silent_s": 4}`},
	},
	{
		Outcome: Stuck, Cause: "peer_missing", Blames: BlameNo,
		Meaning: "The ranks wait for one that does not come: another node was not started, or cannot be reached.",
		Remedy:  "Start the other nodes, with the same --dist-init-addr and the right --node-rank; check that the address can be reached from there.",
		Example: Example{Version: "0.5.10", Log: `[2026-01-10 22:20:01] server_args=ServerArgs(model_path='/models/example', tp_size=16, nnodes=2, node_rank=0, dist_init_addr='127.0.0.1:20000', mem_fraction_static=0.85)
[2026-01-10 22:20:12 TP0] Init torch distributed begin.
`, Context: `{"alive": true, "elapsed_s": 900, "ready_timeout_s": 1500, "log_silent_s": 880, "nnodes": 2, "node_rank": 0}`},
	},
	{
		Outcome: Stuck, Cause: "hicache_deadlock", Blames: BlamePartly,
		Meaning: "Some ranks wait for each other in the hierarchical cache while another waits for requests: they went different ways.",
		Remedy:  "No memory flag helps: nearly the whole pool could be freed. Run it once more; if it repeats, compare without the hierarchical cache or with a newer version.",
		Example: Example{Version: "0.5.10", Log: exampleServing + `[2026-01-10 23:46:20 TP0] self.max_total_num_tokens=231323, available_size=704, evictable_size=228511, protected_size=0
Thread 4242 (idle): "MainThread"
    all_reduce (torch/distributed/distributed_c10d.py:2938)
    writing_check (sglang/srt/mem_cache/hiradix_cache.py:781)
    check_hicache_events (sglang/srt/mem_cache/hiradix_cache.py:845)
    event_loop_overlap (sglang/srt/managers/scheduler.py:1349)

[2026-01-10 23:46:34 TP0] Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)
[2026-01-10 23:46:39] SIGQUIT received. signum=None, frame=None. It usually means one child failed.
`, Context: `{"alive": false, "exit_code": -9, "flags": {"--enable-hierarchical-cache": true}}`},
	},
	{
		Outcome: Stuck, Cause: "watchdog_timeout", Blames: BlamePartly,
		Meaning: "SGLang's watchdog saw no forward step end for its whole limit and ended the server.",
		Remedy:  "Run it once more. If steps are really that long (a huge prompt without chunks), lower --chunked-prefill-size rather than raising --watchdog-timeout.",
		Example: Example{Version: "0.5.10", Log: exampleServing + `[2026-01-10 23:46:34 TP0] Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)
[2026-01-10 23:46:39] SIGQUIT received. signum=None, frame=None. It usually means one child failed.
`, Context: `{"alive": false, "exit_code": -9}`},
	},
	{
		Outcome: Stuck, Cause: "no_progress", Blames: BlamePartly,
		Meaning: "The process lives, requests wait, and the log has not moved for a long time.",
		Remedy:  "Run it once more. If it repeats, py-spy dump --pid PID of the scheduler shows where it stands.",
		Example: Example{Version: "0.5.23", Log: exampleServing, Context: `{"alive": true, "elapsed_s": 9000, "ready_timeout_s": 1500, "log_silent_s": 1800, ` +
			`"probes": [{"path": "/health", "status": "timeout", "count": 9}]}`},
	},
	{
		Outcome: MonitorWrong, Cause: "health_body_empty", Blames: BlameNo,
		Meaning: "The server answered 200 to /health, and a monitor that looked for a word in the body never found one: the body is always empty.",
		Remedy:  "Go by the status code. Keep the server: it is ready.",
		Example: Example{Version: "0.5.23", Log: exampleReady + `[2026-01-10 22:27:40] INFO:     127.0.0.1:47702 - "GET /health HTTP/1.1" 200 OK
[2026-01-10 22:28:10] INFO:     127.0.0.1:47702 - "GET /health HTTP/1.1" 200 OK
`, Context: `{"alive": true, "elapsed_s": 1112, "ready_timeout_s": 1500, "probes": [{"path": "/health", "status": 200, "body_bytes": 0, "count": 40, ` +
			`"verdict_of_old_monitor": "not ready (no \"ok\" in body)"}]}`},
	},
	{
		Outcome: MonitorWrong, Cause: "health_busy_timeout", Blames: BlameNo,
		Meaning: "The server was busy with long prompts and answered 503 to /health for want of time; its log advanced all the while.",
		Remedy:  "A 503 after readiness means busy as long as batches appear. Give the probe more than 25 s, raise SGLANG_HEALTH_CHECK_TIMEOUT, or watch the log instead.",
		Example: Example{Version: "0.5.10", Log: exampleReady + `[2026-01-10 22:40:00 TP0] Prefill batch, #new-seq: 1, #new-token: 8192, #cached-token: 0, token usage: 0.61, #running-req: 11, #queue-req: 3, cuda graph: False, input throughput (token/s): 910.40
[2026-01-10 22:40:09 TP0] Prefill batch, #new-seq: 1, #new-token: 8192, #cached-token: 0, token usage: 0.64, #running-req: 11, #queue-req: 3, cuda graph: False, input throughput (token/s): 905.02
[2026-01-10 22:40:12] Health check failed. Server couldn't get a response from detokenizer for last 20 seconds. tic start time: 22:39:52. last_heartbeat time: 22:39:50
[2026-01-10 22:40:12] INFO:     127.0.0.1:47702 - "GET /health HTTP/1.1" 503 Service Unavailable
[2026-01-10 22:40:18 TP0] Prefill batch, #new-seq: 1, #new-token: 8192, #cached-token: 0, token usage: 0.68, #running-req: 11, #queue-req: 3, cuda graph: False, input throughput (token/s): 911.77
`, Context: `{"alive": true, "elapsed_s": 1200, "ready_timeout_s": 1500, "log_silent_s": 2, "probes": [{"path": "/health", "status": 503, "count": 5}]}`},
	},
	{
		Outcome: MonitorWrong, Cause: "health_starting", Blames: BlameNo,
		Meaning: "The probe asked while the server was still starting: the port is closed until the model is loaded, then /health says 503 until the first request is through.",
		Remedy:  "Refused and 503 before readiness mean wait, not dead. Watch the log advance.",
		Example: Example{Version: "0.5.10", Log: exampleStart + `[2026-01-10 22:27:10] INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)
[2026-01-10 22:27:12] INFO:     127.0.0.1:47702 - "GET /health HTTP/1.1" 503 Service Unavailable
[2026-01-10 22:27:22] INFO:     127.0.0.1:47702 - "GET /health HTTP/1.1" 503 Service Unavailable
`, Context: `{"alive": true, "elapsed_s": 420, "ready_timeout_s": 1500, "log_silent_s": 3, "probes": [{"path": "/health", "status": "refused", "count": 40}, ` +
			`{"path": "/health", "status": 503, "count": 2, "verdict_of_old_monitor": "dead"}]}`},
	},
	{
		Outcome: Aborted, Cause: "operator_signal", Blames: BlameNo,
		Meaning: "It was told to stop from outside (SIGTERM, Ctrl-C) before it had finished.",
		Remedy:  "Nothing failed: \"crashed with exit code -15\" is how SGLang reports an ordinary SIGTERM.",
		Example: Example{Version: "0.5.23", Log: exampleServing + `[2026-01-10 23:41:17] SIGTERM received. signum=None frame=None. Draining requests and shutting down...
[2026-01-10 23:41:18] Subprocess scheduler_0 (pid=14980) crashed with exit code -15. Triggering SIGQUIT for cleanup...
[2026-01-10 23:41:18] SIGQUIT received. signum=None, frame=None. It usually means one child failed.
`, Context: `{"alive": false, "exit_code": -9, "stopped_by": "SIGTERM from outside"}`},
	},
	{
		Outcome: Aborted, Cause: "job_time_limit", Blames: BlameNo,
		Meaning: "The time limit of the job or the study was over.",
		Remedy:  "Nothing failed. Ask for more time, or start earlier.",
		Example: Example{Version: "0.5.23", Log: exampleServing + `slurmstepd: error: *** JOB 4242 ON localhost CANCELLED AT 2026-01-10T23:45:00 DUE TO TIME LIMIT ***
`, Context: `{"alive": false, "exit_code": -15, "executor": "slurm", "stopped_by": "Slurm time limit"}`},
	},
	{
		Outcome: Unknown, Cause: "unknown", Blames: BlameNo,
		Meaning: outcomeMeanings[Unknown],
		Remedy:  "Say what is known beside the log (--context): is the process alive, its exit code, did the kernel kill for want of memory?",
		Example: Example{Version: "0.5.23", Log: exampleServing + `[2026-01-10 23:41:17] Subprocess scheduler_0 (pid=4242) crashed with exit code -9. Triggering SIGQUIT for cleanup...
[2026-01-10 23:41:17] SIGQUIT received. signum=None, frame=None. It usually means one child failed.
`},
	},
}
