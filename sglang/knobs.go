package sglang

// Versions that the table refers to.
var (
	v0490 = Version{Minor: 4, Patch: 9}
	v0515 = Version{Minor: 5, Patch: 15}
	v0520 = Version{Minor: 5, Patch: 20}
	v0521 = Version{Minor: 5, Patch: 21}
)

var kvDtypes = []string{"auto", "fp8_e5m2", "fp8_e4m3", "mxfp8", "bf16", "bfloat16", "nvfp4", "fp4_mx_block16", "fp4_e2m1"}

var quantizations = []string{
	"awq", "fp8", "mxfp8", "gptq", "gptq_marlin", "awq_marlin", "bitsandbytes", "gguf", "modelopt", "modelopt_fp8",
	"modelopt_fp4", "nvfp4_online", "modelopt_mixed", "petit_nvfp4", "w8a8_int8", "w8a8_fp8", "moe_wna16", "w4afp8", "mxfp4",
	"auto-round", "auto-round-int8", "compressed-tensors", "modelslim", "mxfp_w4a8", "quark", "quark_int4fp8_moe", "quark_mxfp4",
	"mlx_q4", "mlx_q8", "unquant", "humming",
}

// knobs is the table of flags worth knowing, defaults of SGLang 0.5.23. Sources: its argparse
// objects and --help.
var knobs = []Knob{
	// Memory.
	{Name: "mem-fraction-static", Meaning: "share of free GPU memory for weights and KV cache; the rest is for graphs and activations", Kind: KindFloat, Min: 0.0001, Max: 1, Tunable: true},
	{Name: "max-total-tokens", Meaning: "upper limit of the KV pool", Unit: "tokens", Kind: KindInt, Min: 1},
	{Name: "kv-cache-dtype", Meaning: "number format of the KV cache; below bf16 answers may change", Kind: KindChoice, Default: "auto", Choices: kvDtypes, Lossy: []string{"fp8_e5m2", "fp8_e4m3", "mxfp8", "nvfp4", "fp4_mx_block16", "fp4_e2m1"}, Tunable: true},
	{Name: "page-size", Meaning: "tokens a KV page holds; some attention backends force it", Unit: "tokens", Kind: KindInt, Default: 1.0, Min: 1, Tunable: true},
	{Name: "context-length", Meaning: "longest prompt plus answer", Unit: "tokens", Kind: KindInt, Min: 1},
	{Name: "cpu-offload-gb", Meaning: "weights kept in host RAM, in competition with the host KV pool", Unit: "GB", Kind: KindInt, Default: 0.0},
	{Name: "swa-full-tokens-ratio", Meaning: "sliding-window pool against the full one, hybrid models", Kind: KindFloat, Default: 0.8, Min: 0.0001, Max: 1},
	{Name: "mamba-full-memory-ratio", Meaning: "state memory against KV memory, hybrid models", Kind: KindFloat, Default: 0.9, Min: 0.0001},
	{Name: "max-mamba-cache-size", Meaning: "state slots, hybrid models", Kind: KindInt, Min: 1},

	// Scheduling.
	{Name: "max-running-requests", Meaning: "most requests decoded at once", Unit: "requests", Kind: KindInt, Min: 1, Tunable: true},
	{Name: "max-queued-requests", Meaning: "most requests waiting; more are refused", Unit: "requests", Kind: KindInt, Min: 0},
	{Name: "chunked-prefill-size", Meaning: "prompt tokens processed in one step; larger is faster prefill, longer decode stalls and more activation memory; -1 turns chunking off", Unit: "tokens", Kind: KindInt, Min: -1, Tunable: true},
	{Name: "max-prefill-tokens", Meaning: "most prompt tokens in one prefill batch", Unit: "tokens", Kind: KindInt, Default: 16384.0, Min: 1, Tunable: true},
	{Name: "prefill-max-requests", Meaning: "most requests in one prefill batch", Unit: "requests", Kind: KindInt, Min: 1, Tunable: true},
	{Name: "schedule-policy", Meaning: "order of waiting requests", Kind: KindChoice, Default: "fcfs", Choices: []string{"lpm", "random", "fcfs", "dfs-weight", "lof", "priority", "routing-key", "hrrn", "shortest-prefill-first"}, Tunable: true},
	{Name: "schedule-conservativeness", Meaning: "how much room is kept for running requests to grow; low admits more and retracts more", Kind: KindFloat, Default: 1.0, Tunable: true},
	{Name: "enable-mixed-chunk", Meaning: "mix prefill chunks with decode steps", Kind: KindBool, Default: false, Tunable: true},
	{Name: "scheduler-recv-interval", Meaning: "steps between looks for new requests", Unit: "steps", Kind: KindInt, Default: 1.0, Min: 1, Tunable: true},
	{Name: "stream-interval", Meaning: "tokens merged into one streamed piece", Unit: "tokens", Kind: KindInt, Default: 1.0, Min: 1},
	{Name: "num-continuous-decode-steps", Meaning: "read by nothing in any version: has no effect", Unit: "steps", Kind: KindInt, Default: 1.0, Min: 1, Dead: true},
	{Name: "disable-overlap-schedule", Meaning: "turn the overlapped scheduler off", Kind: KindBool, Default: false, Tunable: true},

	// Prefix cache and hierarchical cache.
	{Name: "disable-radix-cache", Meaning: "turn prefix caching off; excludes the hierarchical cache", Kind: KindBool, Default: false, Tunable: true},
	{Name: "radix-eviction-policy", Meaning: "which prefixes leave the GPU first", Kind: KindChoice, Default: "lru", Choices: []string{"lru", "lfu", "slru", "priority", "tlru"}, Tunable: true},
	{Name: "enable-hierarchical-cache", Meaning: "keep evicted prefixes in host RAM", Kind: KindBool, Default: false},
	{Name: "hicache-size", Meaning: "host KV pool; every rank takes it", Unit: "GB per rank", Kind: KindInt, Default: 0.0, Tunable: true},
	{Name: "hicache-ratio", Meaning: "host KV pool in device pools, when no size is given", Kind: KindFloat, Default: 2.0, Min: 0.0001, Tunable: true},
	{Name: "hicache-host-memory-fraction", Meaning: "share of host RAM all pools may take, when neither size nor ratio is given", Kind: KindFloat, Default: 0.8, Min: 0.0001, Max: 1, Since: v0521},
	{Name: "hicache-write-policy", Meaning: "when prefixes are copied to the host", Kind: KindChoice, Default: "write_through", Choices: []string{"write_back", "write_through", "write_through_selective"}, Tunable: true},
	{Name: "hicache-io-backend", Meaning: "how pages move between host and GPU", Kind: KindChoice, Default: "kernel", Choices: []string{"direct", "kernel", "kernel_ascend"}, Since: v0490, Tunable: true},
	{Name: "hicache-mem-layout", Meaning: "order of the host pool in memory", Kind: KindChoice, Default: "page_first", Choices: []string{"layer_first", "page_first", "page_first_direct", "page_first_kv_split", "page_head"}, Since: v0490, Tunable: true},

	// CUDA graphs.
	{Name: "cuda-graph-max-bs", Meaning: "largest decode batch run as a graph", Unit: "requests", Kind: KindInt, Min: 1, Until: v0520, Renamed: "cuda-graph-max-bs-decode", Tunable: true},
	{Name: "cuda-graph-max-bs-decode", Meaning: "largest decode batch run as a graph; larger ones run slower, every graph takes memory", Unit: "requests", Kind: KindInt, Min: 1, Since: v0515, Tunable: true},
	{Name: "cuda-graph-bs-decode", Meaning: "exact decode batch sizes captured as graphs", Unit: "requests", Kind: KindList, Min: 1, Since: v0515},
	{Name: "cuda-graph-max-bs-prefill", Meaning: "largest prefill captured as a graph", Unit: "tokens", Kind: KindInt, Min: 1, Since: v0515},
	{Name: "disable-cuda-graph", Meaning: "run without graphs; refused in a yaml file from 0.5.20 on", Kind: KindBool, Default: false},
	{Name: "enable-torch-compile", Meaning: "compile the model for small batches; a slow start", Kind: KindBool, Default: false},

	// Parallelism and kernels.
	{Name: "tp-size", Meaning: "tensor-parallel ranks", Unit: "ranks", Kind: KindInt, Default: 1.0, Min: 1},
	{Name: "pp-size", Meaning: "pipeline stages", Unit: "stages", Kind: KindInt, Default: 1.0, Min: 1},
	{Name: "dp-size", Meaning: "data-parallel replicas", Unit: "replicas", Kind: KindInt, Default: 1.0, Min: 1},
	{Name: "ep-size", Meaning: "expert-parallel ranks", Unit: "ranks", Kind: KindInt, Default: 1.0, Min: 1, Tunable: true},
	{Name: "enable-dp-attention", Meaning: "data-parallel attention: own KV pool a group", Kind: KindBool, Default: false, Tunable: true},
	{Name: "attention-backend", Meaning: "attention kernels", Kind: KindText, Tunable: true},
	{Name: "moe-runner-backend", Meaning: "expert kernels", Kind: KindText, Default: "auto", Tunable: true},
	{Name: "disable-custom-all-reduce", Meaning: "use NCCL's all-reduce", Kind: KindBool, Default: false, Tunable: true},

	// Weights, speculation, service.
	{Name: "quantization", Meaning: "quantize the weights; answers may change", Kind: KindChoice, Choices: quantizations},
	{Name: "dtype", Meaning: "number format of weights and activations", Kind: KindChoice, Default: "auto", Choices: []string{"auto", "half", "float16", "bfloat16", "float", "float32"}},
	{Name: "speculative-num-steps", Meaning: "draft steps ahead", Unit: "steps", Kind: KindInt, Min: 1, Tunable: true},
	{Name: "speculative-num-draft-tokens", Meaning: "draft tokens checked in one step", Unit: "tokens", Kind: KindInt, Min: 1, Tunable: true},
	{Name: "speculative-accept-threshold-single", Meaning: "accept a draft token above this probability; below 1 answers change", Kind: KindFloat, Default: 1.0, Max: 1},
	{Name: "speculative-accept-threshold-acc", Meaning: "raise acceptance to p/threshold; below 1 answers change", Kind: KindFloat, Default: 1.0, Max: 1},
	{Name: "watchdog-timeout", Meaning: "seconds without progress until the server kills itself", Unit: "s", Kind: KindFloat, Default: 300.0, Min: 1},
	{Name: "decode-log-interval", Meaning: "decode steps between two log lines", Unit: "steps", Kind: KindInt, Default: 40.0, Min: 1},
	{Name: "random-seed", Meaning: "seed of sampling", Kind: KindInt},
	{Name: "enable-metrics", Meaning: "counters under /metrics", Kind: KindBool, Default: false},
	{Name: "enable-cache-report", Meaning: "report cached prompt tokens in every answer", Kind: KindBool, Default: false},
}
