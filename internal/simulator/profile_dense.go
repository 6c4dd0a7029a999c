package simulator

// Two machines beside the founding one, so that nobody tunes a search to a single shape. What is arithmetic in
// them: bytes of a KV token (layers x 2 x KV heads of a rank x 128 x 2), weights (parameters x 2 bytes by rank),
// context and vocabulary of the model's own config, GPU memory as nvidia-smi reports it. What was composed
// from measured kernel tables for SGLang 0.5.14 (aiconfigurator 0.12.0, Apache-2.0): decode table, context
// slope, milliseconds a prompt token. The fixed cost of a prefill step is 320 tokens' worth and 2 ms, as for the
// founding machine. The rest is assumed, in the proportions of the founding machine. The constants were
// frozen before the physics sampler was tuned (docs/search-nights.md).

// llama70b4x80 is a dense 70B model in bf16 on 4 H100 of 80 GB: much KV memory, 80 layers with 8 KV heads,
// 70.55e9 parameters (32.9 GiB a rank).
var llama70b4x80 = Profile{
	Name: "llama70b-4x80", Model: "LlamaForCausalLM", Ranks: 4, GPUTotalMiB: 81559,
	ContextLen: 131072, Vocab: 128256, CellBytes: 81920, Shards: 30,
	BeforeLoadGiB: 78.2, AfterLoadGiB: 44.9,
	RuntimeGiB: 1.4, GraphBaseGiB: 0.6, GraphPerBSGiB: 0.005, PrefillGraphMiB: 400,
	ActBaseGiB: 0.45, ActPer1kGiB: 0.15, FragGiB: 0.25, FragTauS: 300, StagingGiB: 0.12, SpreadGiB: 0.05,
	DecodeTable: [][2]float64{{1, 15.3}, {8, 15.8}, {32, 18.4}, {64, 21.5}, {128, 26.8}, {256, 38.1}},
	DecodeCtxMS: 0.036, DecodeCtx0: 2176, CPUMS: 2, EagerMul: 1.12, EagerMS: 14,
	PrefillMSTok: 0.0666, ChunkFixMS: 23, HostGBs: 18, LoadOverlap: 0.5, WriteShare: 0.1,
	NoiseRun: 0.008, NoiseStep: 0.02,
	StartupS: 300, PinGBs: 1.2, RuntimeGB: 2,
}

// llama8b1x24 is a dense 8B model in bf16 on one card of 24 GB: little KV memory, 32 layers with 8 KV heads,
// 8.03e9 parameters (15.0 GiB). SGLang's automatic chunk and graph sizes are smaller on such a card.
var llama8b1x24 = Profile{
	Name: "llama8b-1x24", Model: "LlamaForCausalLM", Ranks: 1, GPUTotalMiB: 24564,
	ContextLen: 131072, Vocab: 128256, CellBytes: 131072, Shards: 4, AutoChunk: 4096, AutoGraphBS: 48,
	BeforeLoadGiB: 23.2, AfterLoadGiB: 8.1,
	RuntimeGiB: 0.73, GraphBaseGiB: 0.25, GraphPerBSGiB: 0.002, PrefillGraphMiB: 100,
	ActBaseGiB: 0.2, ActPer1kGiB: 0.075, FragGiB: 0.08, FragTauS: 300, StagingGiB: 0.06, SpreadGiB: 0.02,
	DecodeTable: [][2]float64{{1, 27.96}, {8, 31.2}, {32, 45.96}, {64, 65.16}, {128, 101.64}, {256, 174}},
	DecodeCtxMS: 0.2, DecodeCtx0: 2176, CPUMS: 2.5, EagerMul: 1.12, EagerMS: 14,
	PrefillMSTok: 0.125, ChunkFixMS: 42, HostGBs: 16, LoadOverlap: 0.5, WriteShare: 0.1,
	NoiseRun: 0.008, NoiseStep: 0.02,
	StartupS: 150, PinGBs: 1.2, RuntimeGB: 2,
}
