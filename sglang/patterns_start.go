package sglang

// startPatterns are the lines of a start, from the resolved arguments to the last memory pool: SGLang
// 0.5.23 first; rows for older wordings stand beside them.
var startPatterns = []pattern{
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
	{
		kind: "download_progress", starts: "Fetching ", phase: PhaseWeightLoad,
		re: `^Fetching \d+ files:\s+(?P<load_percent>\d+)%\|.*?\| (?P<load_done>\d+)/(?P<load_total>\d+)(?: \[[\d:]+<(?P<Eta>[\d:]+))?`,
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
	{kind: "swa_pool", starts: "Use sliding window memory pool.", re: `full_layer_tokens=(?P<full_tokens>\d+), swa_layer_tokens=(?P<swa_tokens>\d+)`},
	{kind: "swa_pool", starts: "Use Sliding window memory pool.", re: `full_layer_tokens=(?P<full_tokens>\d+), swa_layer_tokens=(?P<swa_tokens>\d+)`},
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
		kind: "max_running_clamped", starts: "max_running_requests is capped to", level: note,
		re: `capped to (?P<max_running_requests>\d+) by the mamba state cache \(max_mamba_cache_size=(?P<mamba_slots>\d+)`,
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

	// KV dtype and its scales.
	{kind: "kv_dtype", starts: "Using KV cache dtype: ", re: `dtype: (?P<Dtype>[\w.]+)`},
	{kind: "fp8_kv_unscaled", starts: "Using FP8 KV cache but no scaling factors", level: note},
	{kind: "fp8_kv_unscaled", starts: "Using FP8 KV cache and scaling factors provided but", level: note},
	{kind: "fp8_kv_unscaled", starts: "Using KV cache scaling factor 1.0 for fp8", level: note},
	{kind: "kv_scales_loaded", starts: "Loaded KV cache scaling factors from"},
}

// jitPatterns are kernels being compiled or tuned: minutes of apparent silence on a host that never ran
// this model before. The compilers print most of them themselves, without SGLang's frame.
var jitPatterns = []pattern{
	{kind: "jit", starts: "Entering DeepGEMM JIT"},
	{kind: "jit", starts: "Try DeepGEMM JIT Compiling"},
	{kind: "jit", starts: "DeepGEMM JIT Compiling"},
	{kind: "jit", starts: "DeepGEMM warmup:", re: `(?P<percent>\d+)%\|.*?\| (?P<done>\d+)/(?P<total>\d+)`},
	{kind: "jit", starts: "PP-parallel DeepGEMM warmup start"},
	{kind: "jit_done", starts: "PP-parallel DeepGEMM warmup done"},
	{kind: "jit", starts: "Running FlashInfer autotune"},
	{kind: "jit_done", starts: "FlashInfer autotune completed"},
	{kind: "jit", starts: "Compiling num tokens"},
	{kind: "jit", starts: "Compiling a graph for dynamic shape"},
	{kind: "jit", starts: "JIT-compil"},
	{kind: "jit", starts: "Loading JIT ops"},
	{kind: "jit", starts: "AUTOTUNE "},
	{kind: "jit", starts: "[AutoTuner]"},
	{kind: "jit", starts: "[Autotuner]"},
	{kind: "jit", starts: "TileLang begins to compile"},
	{kind: "jit", has: "flashinfer.jit: "},
	{kind: "jit", has: "Autotuning process starts"},
	{kind: "jit_done", has: "Autotuning process ends"},
	{kind: "jit", has: "TileLang begins to compile"},
	{kind: "jit", has: "AUTOTUNE "},
}
