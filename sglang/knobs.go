package sglang

// Known releases that the tables of this package refer to.
var (
	v0409 = Version{Minor: 4, Patch: 9}
	v0502 = Version{Minor: 5, Patch: 2}
	v0503 = Version{Minor: 5, Patch: 3}
	v0504 = Version{Minor: 5, Patch: 4}
	v0505 = Version{Minor: 5, Patch: 5}
	v0506 = Version{Minor: 5, Patch: 6}
	v0509 = Version{Minor: 5, Patch: 9}
	v0510 = Version{Minor: 5, Patch: 10}
	v0512 = Version{Minor: 5, Patch: 12}
	v0515 = Version{Minor: 5, Patch: 15}
	v0518 = Version{Minor: 5, Patch: 18}
	v0520 = Version{Minor: 5, Patch: 20}
	v0523 = Version{Minor: 5, Patch: 23}
)

// memoryKnobs are the knobs of GPU memory and of the scheduler. Sources of the whole table: the
// argument parsers of the releases (flags/README.md), and SGLang's code where it is read.
var memoryKnobs = []Knob{
	{
		Name: "mem-fraction-static", Group: GroupMemory, Kind: KindFloat, Min: 0.0001, Max: 1, Tunable: true,
		Meaning: "share of the GPU memory that is free before the load, for weights and KV cache; the rest is for graphs and activations",
		Effect:  "higher: a larger KV cache, so more requests at once and more prefixes kept",
		Risk:    "too high: CUDA out of memory in graph capture or in a long prefill; too low: no KV cache is left and the server does not start",
		Use:     "the KV tokens of every value are predicted from one start; nothing above what ran out of memory is tried",
	},
	{
		Name: "max-total-tokens", Group: GroupMemory, Unit: "tokens", Kind: KindInt, Min: 1,
		Meaning: "upper limit of the KV pool; above what fits, the pool is what fits",
		Effect:  "lower: a smaller KV cache than memory allows", Risk: "caps throughput at high concurrency",
	},
	{
		Name: "kv-cache-dtype", Group: GroupMemory, Kind: KindChoice, Default: "auto", Tunable: true, Choices: kvDtypes,
		Lossy:   []string{"fp8_e5m2", "fp8_e4m3", "mxfp8", "nvfp4", "fp4_mx_block16", "fp4_e2m1"},
		Meaning: "number format of the KV cache",
		Effect:  "one byte instead of two a number: twice the KV tokens",
		Risk:    "below bf16 answers may change; auto follows the checkpoint, so it is FP8 where a quantization config says so (from 0.5.6 on)",
		Use:     "only lossless types are searched; bf16 is passed where the choice was left to SGLang",
	},
	{
		Name: "page-size", Group: GroupMemory, Unit: "tokens", Kind: KindInt, Default: 1.0, Min: 1, Tunable: true,
		Meaning: "tokens a KV page holds; some attention backends set it themselves",
		Effect:  "larger: cheaper bookkeeping and faster copies to the host", Risk: "prefixes are shared in whole pages, so fewer tokens hit; the chunked prefill size must be a multiple of it",
	},
	{
		Name: "context-length", Group: GroupMemory, Unit: "tokens", Kind: KindInt, Min: 1,
		Meaning: "longest prompt plus answer; the model's own when not given",
		Effect:  "also moves the default of max-running-requests", Risk: "requests longer than it are refused",
	},
	{
		Name: "cpu-offload-gb", Group: GroupMemory, Unit: "GB", Kind: KindInt, Default: 0.0,
		Meaning: "weights kept in host RAM", Effect: "room for KV cache on the GPU; every step reads the weights over PCIe",
		Risk: "slow, and in competition with the host KV pool for RAM",
	},
	{
		Name: "swa-full-tokens-ratio", Group: GroupMemory, Kind: KindFloat, Default: 0.8, Min: 0.0001, Max: 1,
		Meaning: "tokens of the sliding-window pool for each token of the full one, hybrid models", Effect: "lower: more full tokens in the same memory", Risk: "the smaller of the two pools limits the batch",
	},
	{
		Name: "mamba-full-memory-ratio", Group: GroupMemory, Kind: KindFloat, Default: 0.9, Min: 0.0001,
		Meaning: "state memory against KV memory, models with linear attention", Effect: "higher: more requests at once, fewer KV tokens", Risk: "either pool can be the one that limits",
	},
	{
		Name: "max-mamba-cache-size", Group: GroupMemory, Unit: "slots", Kind: KindInt, Min: 1,
		Meaning: "state slots, models with linear attention", Effect: "overrides mamba-full-memory-ratio", Risk: "fewer slots than requests: they wait",
	},
	{
		Name: "enable-memory-saver", Group: GroupMemory, Kind: KindBool, Default: false,
		Meaning: "memory can be given back while the server lives", Effect: "needed for /release_memory_occupation to free anything", Risk: "allocation through another allocator",
	},
	{
		Name: "max-running-requests", Group: GroupSchedule, Unit: "requests", Kind: KindInt, Min: 1, Tunable: true,
		Meaning: "most requests decoded at once", Effect: "higher: more throughput and slower tokens for each request",
		Risk: "above what the KV cache holds, requests are retracted and computed again; divided over the groups of DP attention; some speculative algorithms set 48 when it is not given",
	},
	{
		Name: "max-queued-requests", Group: GroupSchedule, Unit: "requests", Kind: KindInt, Min: 0,
		Meaning: "most requests waiting", Effect: "keeps waiting times short", Risk: "more are refused with \"The request queue is full\"",
	},
	{
		Name: "chunked-prefill-size", Group: GroupSchedule, Unit: "tokens", Kind: KindInt, Min: -1, Tunable: true,
		Meaning: "prompt tokens processed in one step; -1 turns chunking off",
		Effect:  "larger: faster prefill and longer pauses of running answers",
		Risk:    "activation memory grows with it: out of memory in prefill; must be a multiple of page-size; divided over the groups of DP attention",
	},
	{
		Name: "max-prefill-tokens", Group: GroupSchedule, Unit: "tokens", Kind: KindInt, Default: 16384.0, Min: 1, Tunable: true,
		Meaning: "most prompt tokens in one prefill batch; never less than the context length", Effect: "larger: more prompts together", Risk: "activation memory, as chunked-prefill-size",
	},
	{
		Name: "prefill-max-requests", Group: GroupSchedule, Unit: "requests", Kind: KindInt, Min: 1, Tunable: true,
		Meaning: "most requests in one prefill batch", Effect: "lower: first tokens come one after the other, not all late", Risk: "too low wastes prefill",
	},
	{
		Name: "schedule-policy", Group: GroupSchedule, Kind: KindChoice, Default: "fcfs", Tunable: true,
		Choices: []string{"lpm", "random", "fcfs", "dfs-weight", "lof", "priority", "routing-key", "hrrn", "shortest-prefill-first"},
		Meaning: "order of waiting requests", Effect: "lpm serves shared prefixes together: more cache hits", Risk: "lpm lets requests without shared prefixes wait, and costs time with long queues",
	},
	{
		Name: "schedule-conservativeness", Group: GroupSchedule, Kind: KindFloat, Default: 1.0, Tunable: true,
		Meaning: "how much room is kept for running requests to grow", Effect: "lower: more requests at once", Risk: "low admits more than fits, and requests are retracted; times 0.3 with DP attention",
	},
	{
		Name: "enable-mixed-chunk", Group: GroupSchedule, Kind: KindBool, Default: false, Tunable: true,
		Meaning: "mix prefill chunks with decode steps", Effect: "running answers do not pause for prompts", Risk: "slower prefill; turned off by most speculative algorithms",
	},
	{
		Name: "scheduler-recv-interval", Group: GroupSchedule, Unit: "steps", Kind: KindInt, Default: 1.0, Min: 1, Tunable: true,
		Meaning: "steps between looks for new requests", Effect: "larger: less overhead at high batch sizes", Risk: "first tokens come later",
	},
	{
		Name: "stream-interval", Group: GroupSchedule, Unit: "tokens", Kind: KindInt, Default: 1.0, Min: 1,
		Meaning: "tokens merged into one streamed piece", Effect: "larger: less work for the HTTP side", Risk: "pieces come in bursts; times between tokens look different, not the speed",
	},
	{
		Name: "num-continuous-decode-steps", Group: GroupSchedule, Unit: "steps", Kind: KindInt, Default: 1.0, Min: 1, Dead: true,
		Meaning: "no release reads it: it has no effect", Effect: "none", Risk: "trials spent on it are wasted", Use: "refused in a search space",
	},
	{
		Name: "disable-overlap-schedule", Group: GroupSchedule, Kind: KindBool, Default: false, Tunable: true,
		Meaning: "turn the overlapped scheduler off", Effect: "usually slower", Risk: "none; a way round faults of the overlapped one",
	},
	{
		Name: "enable-priority-scheduling", Group: GroupSchedule, Kind: KindBool, Default: false,
		Meaning: "requests carry a priority", Effect: "important requests first", Risk: "works with schedule-policy fcfs and lof only; low priorities may wait long",
	},
}

var kvDtypes = []string{"auto", "fp8_e5m2", "fp8_e4m3", "mxfp8", "bf16", "bfloat16", "nvfp4", "fp4_mx_block16", "fp4_e2m1"}

// cacheKnobs are the knobs of the prefix cache and of its pool in host RAM.
var cacheKnobs = []Knob{
	{
		Name: "disable-radix-cache", Group: GroupCache, Kind: KindBool, Default: false, Tunable: true,
		Meaning: "turn prefix caching off", Effect: "a little less overhead where no prompt repeats", Risk: "repeated prompts are computed again; excludes the hierarchical cache",
	},
	{
		Name: "radix-eviction-policy", Group: GroupCache, Kind: KindChoice, Default: "lru", Choices: []string{"lru", "lfu", "slru", "priority", "tlru"}, Tunable: true,
		Meaning: "which prefixes leave the GPU first", Effect: "other hit rates", Risk: "depends on the workload only",
	},
	{
		Name: "enable-hierarchical-cache", Group: GroupCache, Kind: KindBool, Default: false,
		Meaning: "keep evicted prefixes in host RAM; without it every other hicache flag is ignored", Effect: "long prefixes come back from RAM instead of being computed again",
		Risk: "host RAM: see hicache-size", Use: "hicache-size sets it; in a study write 0 for off",
	},
	{
		Name: "hicache-size", Group: GroupCache, Unit: "GB per rank", Kind: KindInt, Default: 0.0, Tunable: true,
		Meaning: "host KV pool in whole decimal GB; every rank takes it, also where each holds the same copy (MLA)", Effect: "larger: more prefixes kept",
		Risk: "ranks x size can be more than the host has, and the kernel kills the server (up to 0.5.18 each rank compares its own part with the whole host); up to 0.5.12 it must hold more tokens than the GPU pool",
		Use:  "ranks x size is checked against ram_budget and free RAM before every launch",
	},
	{
		Name: "hicache-ratio", Group: GroupCache, Kind: KindFloat, Default: 2.0, Min: 0.0001, Tunable: true,
		Meaning: "host pool in device pools, when no size is given", Effect: "as hicache-size", Risk: "the pool grows with mem-fraction-static; as hicache-size",
	},
	{
		Name: "hicache-host-memory-fraction", Group: GroupCache, Kind: KindFloat, Default: 0.8, Min: 0.0001, Max: 1,
		Meaning: "share of host RAM all pools may take, when neither size nor ratio is given", Effect: "the ratio is lowered until all ranks fit", Risk: "the host's other programs get the rest",
	},
	{
		Name: "hicache-host-memory-mode", Group: GroupCache, Kind: KindChoice, Default: "cache", Choices: []string{"cache", "buffer_only"},
		Meaning: "whether host RAM is a cache or only a buffer before storage", Effect: "buffer_only takes little RAM", Risk: "buffer_only needs a storage backend",
	},
	{
		Name: "hicache-write-policy", Group: GroupCache, Kind: KindChoice, Default: "write_through", Choices: []string{"write_back", "write_through", "write_through_selective"}, Tunable: true,
		Meaning: "when prefixes are copied to the host: at once, when they are evicted, or when they were hit", Effect: "write_back copies less; write_through never waits at eviction", Risk: "copies take bandwidth from decoding",
	},
	{
		Name: "hicache-io-backend", Group: GroupCache, Kind: KindChoice, Default: "kernel", Choices: []string{"direct", "kernel", "kernel_ascend"}, Tunable: true,
		Meaning: "how pages move between host and GPU", Effect: "kernel is faster for small pages, direct leaves the GPU's cores alone", Risk: "0.5.6 to 0.5.12 switch it with some attention backends; see the pairs below",
	},
	{
		Name: "hicache-mem-layout", Group: GroupCache, Kind: KindChoice, Default: "page_first", Choices: []string{"layer_first", "page_first", "page_first_direct", "page_first_kv_split", "page_head"}, Tunable: true,
		Meaning: "order of the host pool in memory", Effect: "page_first makes copies to storage large", Risk: "goes with some io backends only; see the pairs below",
	},
	{
		Name: "hicache-storage-backend", Group: GroupCache, Kind: KindText,
		Meaning: "a third level behind host RAM, such as file, mooncake, hf3fs or nixl", Effect: "prefixes survive a restart and are shared between servers", Risk: "slow storage makes first tokens wait for prefetches",
	},
	{
		Name: "hicache-storage-prefetch-policy", Group: GroupCache, Kind: KindChoice, Default: "timeout", Choices: []string{"best_effort", "wait_complete", "timeout"},
		Meaning: "how long a request waits for its prefix from storage", Effect: "wait_complete has the most hits", Risk: "wait_complete waits as long as the storage takes",
	},
	{
		Name: "enable-lmcache", Group: GroupCache, Kind: KindBool, Default: false,
		Meaning: "LMCache in place of SGLang's own host cache", Effect: "as the hierarchical cache", Risk: "excludes the hierarchical cache",
	},
}
