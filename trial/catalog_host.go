package trial

// hostEntries: host memory, flags and the machine.
var hostEntries = []Entry{
	{
		Outcome: HostOOM, Cause: "hicache_check_refused", Blames: BlameYes,
		Meaning: "SGLang's own check found less host memory than the host pool wants.",
		Remedy: "--hicache-size is GB (10^9 bytes) for each rank, and SGLang keeps 10.7 GB of the host back. " +
			"Up to 0.4.9 the printed \"free\" still contains them, so a smaller request can be refused too.",
		Example: Example{Version: "0.5.5", Log: `[2026-01-10 22:32:40] max_total_num_tokens=424075, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=2048, context_len=131072, available_gpu_mem=10.09 GB
[2026-01-10 22:32:41] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/sglang/python/sglang/srt/managers/scheduler.py", line 702, in init_memory_pool_and_cache
    self.tree_cache = HiRadixCache(
  File "/opt/sglang/python/sglang/srt/mem_cache/memory_pool_host.py", line 92, in __init__
    raise ValueError(
ValueError: Not enough host memory available. Requesting 300.00 GB but only have 54.78 GB free. Please reduce the size of the hierarchical cache.

[2026-01-10 22:32:41] Received sigquit from a child process. It usually means the child failed.
`, Context: `{"alive": false, "exit_code": -9, "kernel_oom_kills": 0}`},
	},
	{
		Outcome: HostOOM, Cause: "hicache_oversubscribed", Blames: BlameYes,
		Meaning: "Each rank's host pool passed SGLang's check alone, and together they are larger than the host's memory: the kernel killed a rank.",
		Remedy: "Ranks on this host x --hicache-size must stay below the host's memory, with 10.7 GB and what else runs there left over. " +
			"Up to 0.5.18 SGLang compares each rank with the whole host.",
		Example: Example{Version: "0.5.10", Log: `[2026-01-10 22:20:01] server_args=ServerArgs(model_path='/models/example', tp_size=8, mem_fraction_static=0.88, enable_hierarchical_cache=True, hicache_size=300)
[2026-01-10 22:32:40 TP0] max_total_num_tokens=159277, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=2048, context_len=262144, available_gpu_mem=9.23 GB
[2026-01-10 22:32:41 TP0] Allocating 300.00 GB host memory for hierarchical KV cache.
[2026-01-10 22:32:41 TP5] Allocating 300.00 GB host memory for hierarchical KV cache.
RuntimeError: Rank 5 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL), a common cause is the OS OOM killer. Run ` + "`dmesg -T | grep -i oom`" + ` to check.
`, Context: `{"alive": false, "exit_code": 1, "host_ram_gb": 449, "kernel_oom_kills": 1}`},
	},
	{
		Outcome: HostOOM, Cause: "kernel_oom_kill", Blames: BlameYes,
		Meaning: "The host ran out of memory and the kernel killed a process of the server.",
		Remedy: "Lower --hicache-size, or make room on the host. A child with exit code -9 and a kernel counter that rose are the proof; " +
			"the server's own -9 or 137 is none, because SGLang kills its own processes after any failure.",
		Example: Example{Version: "0.5.10", Log: `[2026-01-10 22:20:31 TP0] Load weight begin. avail mem=94.44 GB
Loading safetensors checkpoint shards:  52% Completed | 50/96 [06:41<06:08,  8.01s/it]
RuntimeError: Rank 2 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL), a common cause is the OS OOM killer. Run ` + "`dmesg -T | grep -i oom`" + ` to check.
`, Context: `{"alive": false, "exit_code": 1, "kernel_oom_kills": 1}`},
	},
	{
		Outcome: HostOOM, Cause: "cgroup_limit", Blames: BlameYes,
		Meaning: "The memory limit of the container, the unit or the Slurm job was reached, and the kernel killed a process of the server.",
		Remedy:  "The host may have plenty left: the limit counts. Raise it, or lower --hicache-size so that ranks x size fits under it.",
		Example: Example{Version: "0.5.10", Log: `[2026-01-10 22:20:01] server_args=ServerArgs(model_path='/models/example', tp_size=2, mem_fraction_static=0.88, enable_hierarchical_cache=True, hicache_size=48)
[2026-01-10 22:32:41 TP0] Allocating 48.00 GB host memory for hierarchical KV cache.
RuntimeError: Rank 0 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL), a common cause is the OS OOM killer. Run ` + "`dmesg -T | grep -i oom`" + ` to check.
`, Context: `{"alive": false, "exit_code": 1, "host_ram_gb": 512, "cgroup_limit_gb": 64, "cgroup_oom_kills": 1}`},
	},
	{
		Outcome: ConfigRejected, Cause: "unknown_flag", Blames: BlameYes,
		Meaning: "This version of SGLang does not have the flag.",
		Remedy:  "Nothing was tested. Flags come, go and are renamed between versions; words are joined by dashes, not underscores.",
		Example: Example{Version: "0.5.5", Log: `usage: launch_server.py [-h] --model-path MODEL_PATH [--tokenizer-path TOKENIZER_PATH]
                        [--cuda-graph-max-bs CUDA_GRAPH_MAX_BS] [--disable-cuda-graph]
launch_server.py: error: unrecognized arguments: --reasoning_parser kimi_k2
`, Context: `{"alive": false, "exit_code": 2}`},
	},
	{
		Outcome: ConfigRejected, Cause: "bad_value", Blames: BlameYes,
		Meaning: "The flag exists and does not take this value.",
		Remedy:  "Nothing was tested. The line names the flag and what it takes; sizes are whole numbers.",
		Example: Example{Version: "0.5.23", Log: `usage: sglang serve [-h] --model-path MODEL_PATH [--hicache-size HICACHE_SIZE]
sglang serve: error: argument --hicache-size: invalid int value: '48.5'
`, Context: `{"alive": false, "exit_code": 2}`},
	},
	{
		Outcome: ConfigRejected, Cause: "unsupported_combination", Blames: BlameYes,
		Meaning: "Each flag is valid, and SGLang refuses them together or with this model.",
		Remedy:  "Nothing was tested. Leave out one of the flags that the line names.",
		Example: Example{Version: "0.5.5", Log: `Traceback (most recent call last):
  File "/opt/sglang/python/sglang/launch_server.py", line 26, in <module>
    server_args = prepare_server_args(sys.argv[1:])
ValueError: The arguments enable-hierarchical-cache and disable-radix-cache are mutually exclusive and cannot be used at the same time. Please use only one of them.
`, Context: `{"alive": false, "exit_code": 1}`},
	},
	{
		Outcome: ConfigRejected, Cause: "hicache_smaller_than_device", Blames: BlameYes,
		Meaning: "Up to 0.5.12 the host pool must hold more tokens than the GPU's pool, and it does not.",
		Remedy:  "Raise --hicache-size, or switch the hierarchical cache off. Lowering --mem-fraction-static makes the GPU's pool smaller and helps too.",
		Example: Example{Version: "0.5.5", Log: `[2026-01-10 22:32:40] max_total_num_tokens=424075, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=2048, context_len=131072, available_gpu_mem=10.09 GB
[2026-01-10 22:32:41] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/sglang/python/sglang/srt/mem_cache/hiradix_cache.py", line 49, in __init__
    self.token_to_kv_pool_host = MHATokenToKVPoolHost(
  File "/opt/sglang/python/sglang/srt/mem_cache/memory_pool_host.py", line 78, in __init__
    assert (
AssertionError: The host memory should be larger than the device memory with the current protocol

[2026-01-10 22:32:41] Received sigquit from a child process. It usually means the child failed.
`, Context: `{"alive": false, "exit_code": -9}`},
	},
	{
		Outcome: EnvFault, Cause: "port_in_use", Blames: BlameNo,
		Meaning: "Another process holds a port that the server needs, often a server that was thought dead.",
		Remedy:  "Beware: a health check of that port is then answered by the other process.",
		Example: Example{Version: "0.5.2", Log: `[2026-01-10 22:32:40 TP0] max_total_num_tokens=985643, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=3850, context_len=131072, available_gpu_mem=8.50 GB
[2026-01-10 22:32:41] INFO:     Started server process [7193]
[2026-01-10 22:32:41] INFO:     Waiting for application startup.
[2026-01-10 22:32:41] INFO:     Application startup complete.
[2026-01-10 22:32:41] ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 30000): address already in use
`, Context: `{"alive": false, "exit_code": 1}`},
	},
	{
		Outcome: EnvFault, Cause: "no_gpu", Blames: BlameNo,
		Meaning: "No driver or no GPU was found where one is needed.",
		Remedy:  "Look at nvidia-smi inside the container or job: the driver, --gpus all, CUDA_VISIBLE_DEVICES.",
		Example: Example{Version: "0.5.10", Log: `Traceback (most recent call last):
  File "/opt/sglang/python/sglang/launch_server.py", line 31, in <module>
    run_server(server_args)
RuntimeError: No CUDA GPUs are available
`, Context: `{"alive": false, "exit_code": 1}`},
	},
	{
		Outcome: EnvFault, Cause: "gpu_memory_leftover", Blames: BlameNo,
		Meaning: "Before loading, one GPU had much less memory free than the others: something else holds it, often a process of an earlier server.",
		Remedy:  "The flags are innocent. End the holder by its pid, wait until the memory is back, and start again.",
		Example: Example{Version: "0.5.5", Log: `[2026-01-10 22:20:12 TP0] Init torch distributed begin.
[2026-01-10 22:20:15 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/sglang/python/sglang/srt/model_executor/model_runner.py", line 489, in init_torch_distributed
    raise ValueError(
ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes. pre_model_load_memory=5.315, local_gpu_memory=78.485, local_gpu_memory * 0.9=70.636

[2026-01-10 22:20:15] Received sigquit from a child process. It usually means the child failed.
`, Context: `{"alive": false, "exit_code": -9}`},
	},
	{
		Outcome: EnvFault, Cause: "shm_too_small", Blames: BlameNo,
		Meaning: "/dev/shm is too small for the ranks to talk to each other; a container has 64 MB unless told otherwise.",
		Remedy:  "The flags are innocent. docker run --shm-size 32g (or --ipc=host), in Kubernetes an emptyDir of medium Memory at /dev/shm.",
		Example: Example{Version: "0.5.10", Log: `[2026-01-10 22:20:12 TP1] Init torch distributed begin.
[2026-01-10 22:20:15 TP1] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/sglang/python/sglang/srt/distributed/device_communicators/pynccl_wrapper.py", line 368, in NCCL_CHECK
    raise RuntimeError(f"NCCL error: {error_str}")
torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.cpp:77, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.27.5
Last error:
Error while creating shared memory segment /dev/shm/nccl-Qk3ZtV (size 33030528), error: No space left on device (28)

[2026-01-10 22:20:15] Received sigquit from a child process. It usually means the child failed.
`, Context: `{"alive": false, "exit_code": -9}`},
	},
	{
		Outcome: EnvFault, Cause: "http_proxy", Blames: BlameNo,
		Meaning: "The server's own first request to itself went to an HTTP proxy, which cannot reach it.",
		Remedy:  "The flags are innocent. Loopback must not go through a proxy: set no_proxy, or leave http_proxy out of the server's environment.",
		Example: Example{Version: "0.5.10", Log: `[2026-01-10 22:27:10] INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)
[2026-01-10 22:29:11] Initialization failed. warmup error: Traceback (most recent call last):
  File "/usr/lib/python3/dist-packages/requests/adapters.py", line 694, in send
    raise ProxyError(e, request=request)
requests.exceptions.ProxyError: HTTPConnectionPool(host='127.0.0.1', port=3128): Max retries exceeded with url: http://127.0.0.1:30000/get_model_info (Caused by ProxyError('Unable to connect to proxy', OSError('Tunnel connection failed: 503 Service Unavailable')))

[2026-01-10 22:29:11] Received sigquit from a child process. It usually means the child failed.
`, Context: `{"alive": false, "exit_code": -9, "env": {"http_proxy": "http://127.0.0.1:3128"}}`},
	},
	{
		Outcome: EnvFault, Cause: "model_missing", Blames: BlameNo,
		Meaning: "The model was not found, is not complete, or may not be downloaded.",
		Remedy:  "Check --model-path (inside the container: is it mounted?), or the access rights of the hub's token.",
		Example: Example{Version: "0.5.10", Log: `Traceback (most recent call last):
  File "/opt/sglang/python/sglang/launch_server.py", line 26, in <module>
    server_args = prepare_server_args(sys.argv[1:])
OSError: /models/exmaple does not appear to have a file named config.json. Checkout 'https://huggingface.co//models/exmaple/tree/main' for available files.
`, Context: `{"alive": false, "exit_code": 1}`},
	},
	{
		Outcome: EnvFault, Cause: "gpu_lost", Blames: BlameNo,
		Meaning: "The driver lost a GPU while the server used it.",
		Remedy:  "The flags are innocent. Only a reset of the GPU or a reboot brings it back; if it happens again, the card or its slot is at fault.",
		Example: Example{Live: "sgtune tune asks the driver while a trial runs"},
	},
	{
		Outcome: EnvFault, Cause: "ecc", Blames: BlameNo,
		Meaning: "A GPU's memory reported errors that it could not correct.",
		Remedy:  "The flags are innocent. Reset the GPU; if it happens again, replace it.",
		Example: Example{Live: "sgtune tune asks the driver while a trial runs"},
	},
	{
		Outcome: EnvFault, Cause: "mig_on", Blames: BlameNo,
		Meaning: "A GPU is split into instances (MIG), so its memory is not what a whole GPU's would be.",
		Remedy:  "The flags are innocent. Use whole GPUs, or choose the instances by hand.",
		Example: Example{Live: "sgtune check and tune ask the driver before a launch"},
	},
}
