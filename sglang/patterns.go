package sglang

// patterns is the table of log lines, SGLang 0.5.23 first; rows for older wordings are here where
// they cost nothing. Within one first letter, and among the rows with has, the first row that fits
// wins, so special rows stand before general ones.
//
// Sources: reference patterns read from the wheels 0.4.6 to 0.5.23 and from real 0.5.23 logs.
var patterns = []pattern{
	// Start.
	{kind: "server_args", starts: "server_args=", phase: PhaseLaunch}, // taken apart by parseServerArgs
	{kind: "dist_begin", starts: "Init parallel begin.", phase: PhaseDistInit},
	{kind: "dist_begin", starts: "Init torch distributed begin.", phase: PhaseDistInit},
	{kind: "dist_end", starts: "Init parallel ends.", re: `elapsed=(?P<elapsed_s>[\d.]+) s`, phase: PhaseDistInit},
	{kind: "dist_end", starts: "Init torch distributed ends.", phase: PhaseDistInit},
	{kind: "mem_baseline", starts: "Memory baseline taken.", re: `mem usage=(?P<mem_gb>[-\d.]+) GB`, phase: PhaseDistInit},
	{
		kind: "weight_begin", starts: "Load weight begin.", phase: PhaseWeightLoad,
		re: `avail mem=(?P<avail_before_load_gb>[-\d.]+) GB`,
	},
	{
		kind: "weight_end", starts: "Load weight end.", phase: PhaseKVPool,
		re: `(?:elapsed=(?P<elapsed_s>[\d.]+) s, )?type=(?P<Model>\w+), .*?avail mem=(?P<avail_after_load_gb>[-\d.]+) GB(?:, mem usage=(?P<weights_gb>[-\d.]+) GB)?`,
	},
	{
		kind: "shard_progress", starts: "Loading ", phase: PhaseWeightLoad,
		re: `^Loading (?P<What>[\w ]+) shards:\s+(?P<load_percent>\d+)% Completed \| (?P<load_done>\d+)/(?P<load_total>\d+)(?: \[[\d:]+<(?P<Eta>[\d:]+), *(?:(?P<load_s_per_shard>[\d.]+)s/it)?)?`,
	},
	{
		kind: "shard_progress", starts: "Multi-thread loading shards:", phase: PhaseWeightLoad,
		re: `shards:\s+(?P<load_percent>\d+)% Completed \| (?P<load_done>\d+)/(?P<load_total>\d+)(?: \[[\d:]+<(?P<Eta>[\d:]+), *(?:(?P<load_s_per_shard>[\d.]+)s/it)?)?`,
	},
	{kind: "graph_progress", starts: "Capturing ", re: `(?P<percent>\d+)%\|.*?\| (?P<done>\d+)/(?P<total>\d+)`, phase: PhaseGraphCapture},

	// Memory pools.
	{
		kind: "kv_allocated", starts: "KV Cache is allocated.", phase: PhaseKVPool,
		re: `(?:dtype: (?P<Dtype>[\w.]+), )?(?:#tokens: (?P<tokens>\d+), )?(?:KV size: (?P<kv_cache_gb>[\d.]+) GB|K size: (?P<k_gb>[\d.]+) GB, V size: (?P<v_gb>[\d.]+) GB)`,
	},
	{
		kind: "kv_resized", starts: "Post-capture KV sizing: KV cache allocated.", phase: PhaseKVPool,
		re: `dtype: (?P<Dtype>[\w.]+), #tokens: (?P<tokens>\d+), KV size: (?P<kv_cache_gb>[\d.]+) GB, avail mem=(?P<avail_gb>[-\d.]+) GB`,
	},
	{kind: "memory_pool_end", starts: "Memory pool end.", re: `avail mem=(?P<avail_after_pool_gb>[-\d.]+) GB`, phase: PhaseKVPool},
	{kind: "graph_begin", starts: "Capture ", also: " begin.", re: `^Capture (?P<What>[\w\- ]*?graph) begin\..*?avail mem=(?P<avail_gb>[-\d.]+) GB`, phase: PhaseGraphCapture},
	{
		kind: "graph_end", starts: "Capture ", also: " end.", phase: PhaseGraphCapture,
		re: `^Capture (?P<What>[\w\- ]*?graph) end\. .*?(?:Time elapsed: |elapsed=)(?P<elapsed_s>[\d.]+) s[.,] mem usage=(?P<graph_mem_gb>[-\d.]+) GB[.,] avail mem=(?P<avail_after_graph_gb>[-\d.]+) GB`,
	},
	{
		kind: "capacity", starts: "max_total_num_tokens=", phase: PhaseKVPool,
		re: `^max_total_num_tokens=(?P<max_total_num_tokens>\d+), chunked_prefill_size=(?:(?P<chunked_prefill_size>-?\d+)|None), max_prefill_tokens=(?P<max_prefill_tokens>\d+), ` +
			`max_running_requests=(?P<max_running_requests>\d+), context_len=(?P<context_len>\d+)` +
			`(?:, available_gpu_mem=(?P<available_gpu_mem_gb>[-\d.]+) GB|, available_cpu_mem=(?P<available_cpu_mem_gb>[-\d.]+) GB)?`,
	},
	{
		kind: "max_running_clamped", starts: "max_running_requests was reduced", level: note,
		re: `from the requested (?P<requested_max_running_requests>\d+) to (?P<max_running_requests>\d+)`,
	},
	{
		kind: "max_tokens_clamped", starts: "max_total_tokens=", level: note,
		re: `^max_total_tokens=(?P<requested_tokens>\d+) is larger than the profiled value (?P<tokens>\d+)`,
	},
	{
		kind: "context_exceeds_pool", starts: "KV pool holds ", level: note,
		re: `^KV pool holds (?P<tokens>\d+) tokens, fewer than --context-length (?P<context_len>\d+)`,
	},
	{
		kind: "host_pool", starts: "Allocating ", phase: PhaseHostPool,
		re: `^Allocating (?P<Label>\w+) hierarchical KV host pool: (?P<host_tokens>\d+) tokens, (?P<host_request_gb_per_rank>[\d.]+) GB host memory`,
	},
	{
		kind: "host_pool", starts: "Allocating ", phase: PhaseHostPool,
		re: `^Allocating (?P<host_request_gb_per_rank>[\d.]+) GB host memory for (?P<Label>hierarchical \w+ cache|[\w -]+)`,
	},
	{
		kind: "hicache_smaller_than_device", starts: "HiCache ", level: note, phase: PhaseHostPool,
		re: `host (?:KV )?pool \((?P<host_tokens>\d+) tokens\) is smaller than the device pool \((?P<tokens>\d+) tokens\)`,
	},
	{
		kind: "hicache_autosize", starts: "HiCache auto-sizing:", level: note, phase: PhaseHostPool,
		re: `ratio (?P<ratio_asked>[\d.]+) -> (?P<ratio>[\d.]+)`,
	},

	// HTTP, readiness, health.
	{kind: "engine_startup", starts: "Engine startup timings", re: `load_weight=(?P<load_weight_s>[\d.]+), kv_cache_allocation=(?P<kv_s>[\d.]+), scheduler_e2e=(?P<scheduler_s>[\d.]+)`},
	{kind: "port_in_use", starts: "ERROR:", level: fatal, phase: PhaseHTTPStart, re: `\[Errno (?:98|48)\].*?(?:'[^']*', (?P<port>\d+)[^)]*\): )?[Aa]ddress already in use`},
	{kind: "uvicorn_running", starts: "INFO:", also: "Uvicorn running", phase: PhaseHTTPStart, re: `^INFO:\s+Uvicorn running on (?P<Url>https?://\S*?:(?P<port>\d+))\b`},
	{kind: "http_starting", starts: "INFO:", also: "Started server", phase: PhaseHTTPStart, re: `^INFO:\s+Started server process \[(?P<pid>\d+)\]`},
	{kind: "health_access", starts: "INFO:", also: "\"GET /", re: `"GET (?P<Path>/health(?:_generate)?|/ready) HTTP/[\d.]+" (?P<status>\d{3})`},
	{kind: "fired_up", starts: "The server is fired up and ready to roll!", phase: PhaseReady},
	{kind: "warmup_failed", starts: "Initialization failed. warmup error:", level: fatal, phase: PhaseWarmup, re: `warmup error: (?P<Msg>.*)`},
	{kind: "health_failed", starts: "Health check failed.", level: note, re: `for last (?P<health_timeout_s>\d+) seconds`},

	// Serving.
	{
		kind: "prefill_batch", starts: "Prefill batch",
		re: `^Prefill batch(?: \[\d+\])?[.,] #new-seq: (?P<new_seq>\d+), #new-token: (?P<new_token>\d+), #cached-token: (?P<cached_token>\d+), ` +
			`.*?(?:token usage: (?P<token_usage>[\d.]+), .*?)?#running-req: (?P<running>\d+), #queue-req: (?P<queue>\d+)` +
			`(?:.*?input throughput \(token/s\): (?P<input_tok_s>[\d.]+))?`,
	},
	{
		kind: "decode_batch", starts: "Decode batch",
		re: `^Decode batch(?: \[\d+\])?[.,] #running-req: (?P<running>\d+), (?:#(?:full )?token: (?P<tokens>\d+), )?(?:full )?token usage: (?P<token_usage>[\d.]+), ` +
			`.*?gen throughput \(token/s\): (?P<gen_tok_s>[\d.]+), #queue-req: (?P<queue>\d+)`,
	},
	{kind: "retract", starts: "KV cache pool is full. Retract requests.", re: `#retracted_reqs: (?P<retracted>\d+)`},
	{kind: "retract", starts: "Decode out of memory happened.", re: `#retracted_reqs: (?P<retracted>\d+)`},
	{kind: "retract_abort", starts: "retract_decode: aborted", level: note},
	{kind: "cache_flushed", starts: "Cache flushed successfully!"},
	{kind: "flush_refused", starts: "Cache not flushed because there are pending requests.", level: note, re: `#queue-req: (?P<queue>\d+), #running-req: (?P<running>\d+)`},
	{kind: "kv_alloc_failed", starts: "Prefill out of memory.", level: fatal, phase: PhasePrefill},
	{kind: "kv_alloc_failed", starts: "Decode out of memory.", level: fatal, phase: PhaseDecode},

	// Death, as the launcher and the ranks tell it.
	{kind: "sigterm", starts: "SIGTERM received.", level: note, phase: PhaseShutdown},
	{kind: "graceful_exit", starts: "Gracefully exiting...", level: note, phase: PhaseShutdown, re: `Remaining number of requests (?P<remaining>\d+)`},
	{kind: "kill_tree", starts: "kill_process_tree called:", re: `parent_pid=(?P<pid>\d+), include_parent=(?P<Parent>True|False)`},
	{kind: "schedulers_killed", starts: "Schedulers still alive ", level: note, phase: PhaseShutdown},
	{kind: "sigquit", starts: "Received sigquit from a child proc", level: fatal},
	{kind: "sigquit", starts: "SIGQUIT received.", level: fatal},
	{kind: "child_crashed", starts: "Subprocess ", level: fatal, re: `^Subprocess (?P<Name>\S+) \(pid=(?P<pid>\d+)\) crashed with exit code (?P<child_exit_code>-?\d+)`},
	{kind: "scheduler_died_init", starts: "Rank ", level: fatal, re: `^Rank (?P<child_rank>\d+) scheduler is dead\.`},
	{kind: "child_exit", starts: "Exit code: ", level: fatal, re: `^Exit code: (?P<child_exit_code>-?\d+)`},
	{kind: "watchdog", starts: "Scheduler watchdog timeout", level: fatal, re: `watchdog_timeout=(?P<watchdog_timeout_s>[\d.]+), self\.soft=False`},
	{kind: "watchdog_soft", starts: "Scheduler watchdog timeout", level: note, re: `watchdog_timeout=(?P<watchdog_timeout_s>[\d.]+)`},
	{kind: "watchdog", starts: "Watchdog timeout", level: fatal, re: `watchdog_timeout=(?P<watchdog_timeout_s>[\d.]+)`},
	{kind: "pool_state", starts: "self.max_total_num_tokens=", re: `available_size=(?P<available_tokens>\d+), evictable_size=(?P<evictable_tokens>\d+)`},
	{kind: "python_fatal", starts: "Fatal Python error:", level: fatal, re: `^Fatal Python error: (?P<Msg>.*)`},
	{kind: "killed", starts: "Killed", level: note, re: `^Killed$`},

	// Exceptions and other unframed lines; special before general.
	{kind: "argparse_error", has: " error: argument --", level: fatal, phase: PhaseLaunch, re: `error: (?P<Msg>argument (?P<Flag>--[\w-]+)(?:/[^:]*)?: (?:invalid (?:\w+ value|choice): '(?P<Value>[^']*)')?.*)`},
	{kind: "argparse_error", has: " error: unrecognized arguments:", level: fatal, phase: PhaseLaunch, re: `error: (?P<Msg>unrecognized arguments: (?P<Flag>--[\w-]+)?(?:[= ](?P<Value>[^-\s]\S*))?.*)`},
	{kind: "argparse_error", has: " error: ambiguous option:", level: fatal, phase: PhaseLaunch, re: `error: (?P<Msg>ambiguous option: (?P<Flag>--[\w-]+).*)`},
	{kind: "argparse_error", has: " error: the following arguments are required:", level: fatal, phase: PhaseLaunch, re: `error: (?P<Msg>the following arguments are required: (?P<Flag>--[\w-]+)?.*)`},
	{kind: "config_unsupported", has: "Unsupported config option '", level: fatal, phase: PhaseLaunch, re: `Unsupported config option '(?P<Flag>\w+)'`},
	{kind: "flags_conflict", has: "enable-hierarchical-cache and disable-radix-cache are mutually exclusive", level: fatal, phase: PhaseLaunch},
	{
		kind: "gpu_oom", has: "CUDA out of memory", level: fatal,
		re: `CUDA out of memory\.(?:.*?Tried to allocate (?P<oom_tried_mib>[\d.]+ [KMGT]iB))?(?:.*?GPU (?P<gpu>\d+) )?(?:.*?total capacity of (?P<oom_gpu_total_gib>[\d.]+ [KMGT]iB))?(?:.*?of which (?P<oom_gpu_free_mib>[\d.]+ [KMGT]iB) is free)?`,
	},
	{kind: "gpu_oom", has: "OutOfMemoryError", level: fatal, re: `^torch\.(?:cuda\.)?OutOfMemoryError: (?:.*?Tried to allocate (?P<oom_tried_mib>[\d.]+ [KMGT]iB))?`},
	{kind: "gpu_oom", has: "CUDA error: out of memory", level: fatal},
	{kind: "gpu_oom", has: "cudaErrorMemoryAllocation", level: fatal},
	{kind: "gpu_oom", has: "CUBLAS_STATUS_ALLOC_FAILED", level: fatal},
	{kind: "graph_failed", has: " graph failed: ", level: fatal, phase: PhaseGraphCapture, re: `Capture [\w ]+ graph failed: (?P<Msg>.*)`},
	{
		kind: "not_enough_memory", has: "Not enough memory. Please try to increase --mem-fraction-static", level: fatal, phase: PhaseKVPool,
		re: `--mem-fraction-static\.(?:.*mem_fraction_static=(?P<mem_fraction_static>[\d.]+))?`,
	},
	{
		kind: "weights_leave_no_kv", has: "Loaded weights leave no GPU memory", level: fatal, phase: PhaseKVPool,
		re: `--mem-fraction-static=(?P<mem_fraction_static>[\d.]+)\. Raise --mem-fraction-static above (?P<lowest_fraction>[\d.]+)`,
	},
	{
		kind: "host_mem_insufficient", has: "Not enough host memory", level: fatal, phase: PhaseHostPool,
		re: `Requesting (?P<host_request_gb_per_rank>[\d.]+) GB but only have (?P<host_free_gb>-?[\d.]+) GB free`,
	},
	{kind: "hicache_smaller_refused", has: "The host memory should be larger than the device memory", level: fatal, phase: PhaseHostPool},
	{kind: "host_register_failed", has: "cudaHostRegister", level: fatal, phase: PhaseHostPool},
	{kind: "no_accelerator", has: "Found no NVIDIA driver on your system", level: fatal},
	{kind: "no_accelerator", has: "No CUDA GPUs are available", level: fatal},
	{kind: "no_accelerator", has: "No accelerator (", level: fatal},
	{kind: "no_accelerator", has: "CUDA driver version is insufficient", level: fatal},
	{
		kind: "mem_unbalanced", has: "The memory capacity is unbalanced.", level: fatal, phase: PhaseDistInit,
		re: `unbalanced\.(?:.*?(?:pre_model_load_memory|min_per_gpu_memory)=(?P<min_gpu_free_gb>[\d.]+), local_gpu_memory=(?P<local_gpu_free_gb>[\d.]+))?`,
	},
	{kind: "port_in_use", has: "is not available in ", level: fatal, re: `(?P<What>\w+) at (?P<port>\d+) is not available in \d+ seconds`},
	{kind: "port_in_use", has: "ddress already in use", level: fatal, phase: PhaseHTTPStart, re: `\[Errno (?:98|48)\]`},
	{kind: "scheduler_died_init", has: " scheduler died during initialization", level: fatal, re: `Rank (?P<child_rank>\d+) scheduler died during initialization \(exit code: (?P<child_exit_code>-?\d+)?`},
	{kind: "kv_alloc_failed", has: "alloc_req_slots runs out of memory", level: fatal},
	{kind: "cuda_illegal", has: "CUDA error: ", level: fatal, re: `CUDA error: (?P<Msg>an illegal memory access was encountered|device-side assert triggered|unspecified launch failure|misaligned address|[^\n]*)`},
	{kind: "shm_too_small", has: "/dev/shm", level: fatal, re: `(?i)(?:No space left|creating shared memory|shm size|shared memory segment)`},
	{kind: "nccl_error", has: "Watchdog caught collective operation timeout", level: fatal, re: `timeout(?:.*?Timeout\(ms\)=(?P<nccl_timeout_ms>\d+))?`},
	{kind: "nccl_error", has: "NCCL error", level: fatal},
	{kind: "nccl_error", has: "DistBackendError", level: fatal, re: `^(?:torch\.distributed\.)?DistBackendError: `},
	{kind: "nccl_error", has: "ncclUnhandledCudaError", level: fatal},
	{kind: "nccl_error", has: "ncclSystemError", level: fatal},
	{kind: "nccl_error", has: "ncclInternalError", level: fatal},
	{kind: "nccl_error", has: "ncclRemoteError", level: fatal},
	{kind: "pool_leak", has: "memory leak detected", level: fatal},
	{kind: "model_missing", has: "does not appear to have a file named", level: fatal, phase: PhaseLaunch, re: `^\w*Error: (?P<Msg>.*)`},
	{kind: "model_missing", has: "is not a local folder", level: fatal, phase: PhaseLaunch, re: `^\w*Error: (?P<Msg>.*)`},
	{kind: "model_missing", has: "HFValidationError: ", level: fatal, phase: PhaseLaunch, re: `HFValidationError: (?P<Msg>.*)`},
	{kind: "model_missing", has: "RepositoryNotFoundError: ", level: fatal, phase: PhaseLaunch, re: `RepositoryNotFoundError: (?P<Msg>.*)`},
	{kind: "model_missing", has: "GatedRepoError: ", level: fatal, phase: PhaseLaunch, re: `GatedRepoError: (?P<Msg>.*)`},
	{kind: "model_missing", has: "Cannot find any model weights with", level: fatal, phase: PhaseWeightLoad},
	{kind: "kernel_oom", has: "Out of memory: Killed process ", level: fatal, re: `(?P<Where>Out of memory|Memory cgroup out of memory): Killed process (?P<pid>\d+)(?: \((?P<Name>[^)]*)\))?`},
	{kind: "kernel_oom", has: "Memory cgroup out of memory: Killed process ", level: fatal, re: `(?P<Where>Memory cgroup out of memory): Killed process (?P<pid>\d+)(?: \((?P<Name>[^)]*)\))?`},
	{kind: "kernel_oom", has: "oom-kill:", level: fatal},
	{kind: "kernel_oom", has: "slurmstepd: error: ", level: fatal, re: `(?i)(?P<Where>oom[-_]kill|out of memory|out-of-memory)`},
	{kind: "traceback_last", has: ": ", level: fatal, re: `^(?P<Type>(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Interrupt|Exit)): (?P<Msg>.*)$`},
	{kind: "traceback_last", has: "Error", level: fatal, re: `^(?P<Type>(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Interrupt|Exit))$`},
	{kind: "traceback_last", has: "Exception: ", level: fatal, re: `^(?P<Type>Exception): (?P<Msg>.*)$`},
}
