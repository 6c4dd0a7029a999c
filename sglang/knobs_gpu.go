package sglang

// gpuKnobs are the knobs of graphs, parallelism, kernels and speculation.
var gpuKnobs = []Knob{
	{
		Name: "cuda-graph-max-bs-decode", Group: GroupGraphs, Unit: "requests", Kind: KindInt, Min: 1, Tunable: true,
		Meaning: "largest decode batch that runs as a graph; never above max-running-requests where that is given", Effect: "batches above it run without a graph, and slower",
		Risk: "every graph takes memory and start-up time: out of memory in graph capture", Use: "passed under the name the installed version has",
	},
	{
		Name: "cuda-graph-max-bs", Group: GroupGraphs, Unit: "requests", Kind: KindInt, Min: 1, Tunable: true,
		Meaning: "the older name of cuda-graph-max-bs-decode", Effect: "see there", Risk: "see there; from 0.5.20 on it fits several names and is refused", Use: "passed as cuda-graph-max-bs-decode from 0.5.15 on",
	},
	{
		Name: "cuda-graph-bs-decode", Group: GroupGraphs, Unit: "requests", Kind: KindList, Min: 1,
		Meaning: "exact decode batch sizes captured as graphs", Effect: "fewer: less memory and a faster start", Risk: "a batch between two sizes is padded to the larger",
	},
	{
		Name: "cuda-graph-max-bs-prefill", Group: GroupGraphs, Unit: "tokens", Kind: KindInt, Min: 1,
		Meaning: "largest prefill captured as a graph", Effect: "prefills above it run without a graph", Risk: "memory, as the decode graphs",
	},
	{
		Name: "cuda-graph-backend-decode", Group: GroupGraphs, Kind: KindText,
		Meaning: "kind of graph for decode steps: full, breakable, disabled", Effect: "disabled: a fast start and slow small batches", Risk: "some kinds do not go with some models",
	},
	{
		Name: "cuda-graph-backend-prefill", Group: GroupGraphs, Kind: KindText,
		Meaning: "kind of graph for prefills", Effect: "graphs speed up short prefills", Risk: "compiling takes minutes at the start",
	},
	{
		Name: "disable-cuda-graph", Group: GroupGraphs, Kind: KindBool, Default: false,
		Meaning: "run without graphs", Effect: "a fast start and slow small batches", Risk: "deprecated from 0.5.15 on; from 0.5.20 on it is refused in a --config file",
	},
	{
		Name: "disable-cuda-graph-padding", Group: GroupGraphs, Kind: KindBool, Default: false,
		Meaning: "use a graph only for batches of exactly its size", Effect: "no work on padding", Risk: "most batches run without a graph; excludes enable-torch-compile",
	},
	{
		Name: "enable-torch-compile", Group: GroupGraphs, Kind: KindBool, Default: false,
		Meaning: "compile the model for small batches", Effect: "faster at batch sizes up to torch-compile-max-bs", Risk: "minutes more at every start",
	},
	{
		Name: "torch-compile-max-bs", Group: GroupGraphs, Unit: "requests", Kind: KindInt, Default: 32.0, Min: 1,
		Meaning: "largest batch that is compiled", Effect: "see enable-torch-compile", Risk: "each size compiles for itself",
	},
	{
		Name: "tp-size", Group: GroupParallel, Unit: "ranks", Kind: KindInt, Default: 1.0, Min: 1,
		Meaning: "tensor-parallel ranks", Effect: "more: weights and heads are split over more GPUs", Risk: "every layer waits for all ranks; every rank takes its own host pool",
	},
	{
		Name: "pp-size", Group: GroupParallel, Unit: "stages", Kind: KindInt, Default: 1.0, Min: 1,
		Meaning: "pipeline stages", Effect: "layers are split; little traffic between GPUs", Risk: "turns the overlapped scheduler off; does not go with speculative decoding",
	},
	{
		Name: "dp-size", Group: GroupParallel, Unit: "replicas", Kind: KindInt, Default: 1.0, Min: 1,
		Meaning: "copies of the model; with enable-dp-attention the groups of the attention", Effect: "more: more requests at once", Risk: "every copy needs its GPUs and its own cache",
	},
	{
		Name: "attn-dp-size", Group: GroupParallel, Unit: "groups", Kind: KindInt, Default: 1.0, Min: 1,
		Meaning: "groups of DP attention; in older versions dp-size with enable-dp-attention", Effect: "every group has its own KV pool, without copies between ranks (MLA)", Risk: "chunked-prefill-size and max-running-requests are divided by it",
	},
	{
		Name: "enable-dp-attention", Group: GroupParallel, Kind: KindBool, Default: false, Tunable: true,
		Meaning: "attention in dp-size groups, each with its own KV pool", Effect: "more KV tokens for MLA models", Risk: "first tokens come later with few requests; conservativeness times 0.3; deprecated from 0.5.23 on",
	},
	{
		Name: "ep-size", Group: GroupParallel, Unit: "ranks", Kind: KindInt, Default: 1.0, Min: 1, Tunable: true,
		Meaning: "ranks that experts are spread over", Effect: "whole experts on a rank instead of slices of all", Risk: "ranks with popular experts are waited for",
	},
	{
		Name: "moe-dense-tp-size", Group: GroupParallel, Unit: "ranks", Kind: KindInt, Min: 1,
		Meaning: "tensor parallelism of the dense layers of expert models", Effect: "1: no traffic for them", Risk: "1 keeps a copy of those weights on every rank",
	},
	{
		Name: "nnodes", Group: GroupParallel, Unit: "nodes", Kind: KindInt, Default: 1.0, Min: 1,
		Meaning: "hosts one server spans", Effect: "more GPUs", Risk: "the network is inside every step",
	},
	{
		Name: "attention-backend", Group: GroupKernels, Kind: KindText, Tunable: true,
		Meaning: "attention kernels", Effect: "which is fastest depends on GPU and model", Risk: "some set the page size; not every one runs on every GPU",
	},
	{
		Name: "prefill-attention-backend", Group: GroupKernels, Kind: KindText,
		Meaning: "attention kernels of prefills", Effect: "see attention-backend", Risk: "must go with the decode kernels' page size",
	},
	{
		Name: "decode-attention-backend", Group: GroupKernels, Kind: KindText,
		Meaning: "attention kernels of decode steps", Effect: "see attention-backend", Risk: "fa3 switches hicache-io-backend to direct in 0.5.6 to 0.5.12",
	},
	{
		Name: "moe-runner-backend", Group: GroupKernels, Kind: KindText, Default: "auto", Tunable: true,
		Meaning: "expert kernels", Effect: "depends on GPU and weight format", Risk: "not every one takes every weight format",
	},
	{
		Name: "moe-a2a-backend", Group: GroupKernels, Kind: KindText, Default: "none",
		Meaning: "how tokens travel to their experts", Effect: "deepep and its kin are fast over many GPUs", Risk: "deepep sets ep-size to tp-size and reserves 2 GiB",
	},
	{
		Name: "deepep-mode", Group: GroupKernels, Kind: KindChoice, Default: "auto", Choices: []string{"normal", "low_latency", "auto"},
		Meaning: "DeepEP kernels for throughput or for latency", Effect: "auto takes each where it is better", Risk: "a fixed mode excludes graphs or large prefills",
	},
	{
		Name: "sampling-backend", Group: GroupKernels, Kind: KindText,
		Meaning: "sampling kernels", Effect: "small", Risk: "other random numbers, so other samples",
	},
	{
		Name: "disable-custom-all-reduce", Group: GroupKernels, Kind: KindBool, Default: false, Tunable: true,
		Meaning: "use NCCL's all-reduce", Effect: "usually slower for small batches", Risk: "none; a way round faults of the custom one",
	},
	{
		Name: "enable-two-batch-overlap", Group: GroupKernels, Kind: KindBool, Default: false,
		Meaning: "two half batches hide each other's communication", Effect: "faster at large batches over many GPUs", Risk: "slower at small ones",
	},
	{
		Name: "speculative-algorithm", Group: GroupSpec, Kind: KindText,
		Meaning: "draft tokens and check them together", Effect: "faster answers at low concurrency", Risk: "weights and KV of the draft take memory; slower at high concurrency; some algorithms limit the batch to 48",
	},
	{
		Name: "speculative-num-steps", Group: GroupSpec, Unit: "steps", Kind: KindInt, Min: 1, Tunable: true,
		Meaning: "draft steps ahead", Effect: "more: longer accepted runs", Risk: "rejected drafts are wasted work",
	},
	{
		Name: "speculative-eagle-topk", Group: GroupSpec, Kind: KindInt, Min: 1,
		Meaning: "draft branches of each step", Effect: "more: more accepted", Risk: "above 1 goes with some attention backends and with pages above 1 with few",
	},
	{
		Name: "speculative-num-draft-tokens", Group: GroupSpec, Unit: "tokens", Kind: KindInt, Min: 1, Tunable: true,
		Meaning: "draft tokens checked in one step", Effect: "as speculative-num-steps", Risk: "as speculative-num-steps",
	},
	{
		Name: "speculative-accept-threshold-single", Group: GroupSpec, Kind: KindFloat, Default: 1.0, Max: 1,
		Meaning: "accept a draft token above this probability", Effect: "lower: more accepted", Risk: "below 1 answers change", Use: "values below 1 are kept out of every search",
	},
	{
		Name: "speculative-accept-threshold-acc", Group: GroupSpec, Kind: KindFloat, Default: 1.0, Max: 1,
		Meaning: "raise acceptance to p/threshold", Effect: "lower: more accepted", Risk: "below 1 answers change", Use: "values below 1 are kept out of every search",
	},
}
