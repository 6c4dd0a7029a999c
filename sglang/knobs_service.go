package sglang

var quantizations = []string{
	"awq", "fp8", "mxfp8", "gptq", "marlin", "gptq_marlin", "awq_marlin", "bitsandbytes", "gguf", "modelopt", "modelopt_fp8",
	"modelopt_fp4", "nvfp4_online", "modelopt_mixed", "petit_nvfp4", "w8a8_int8", "w8a8_fp8", "moe_wna16", "qoq", "w4afp8", "mxfp4",
	"auto-round", "auto-round-int8", "compressed-tensors", "modelslim", "mxfp_w4a8", "quark", "quark_int4fp8_moe", "quark_mxfp4",
	"mlx_q4", "mlx_q8", "unquant", "humming",
}

const sameInEveryTrial = "set in every launch, so that it can measure; no part of a configuration"

// serviceKnobs are the knobs of weights, and those a server is run and watched with.
var serviceKnobs = []Knob{
	{
		Name: "quantization", Group: GroupWeights, Kind: KindChoice, Choices: quantizations,
		Meaning: "quantize the weights when they are loaded, or say how a checkpoint is quantized", Effect: "less memory, faster decode", Risk: "answers may change", Use: "kept out of every search",
	},
	{
		Name: "torchao-config", Group: GroupWeights, Kind: KindText,
		Meaning: "quantize the weights by torchao", Effect: "less memory", Risk: "answers may change", Use: "kept out of every search",
	},
	{
		Name: "dtype", Group: GroupWeights, Kind: KindChoice, Default: "auto", Choices: []string{"auto", "half", "float16", "bfloat16", "float", "float32"},
		Lossy:   []string{"half", "float16"},
		Meaning: "number format of weights and activations", Effect: "float32 takes twice the memory", Risk: "float16 overflows where bfloat16 does not: answers may change",
	},
	{
		Name: "load-format", Group: GroupWeights, Kind: KindText, Default: "auto", Lossy: []string{"dummy"},
		Meaning: "how weights are read", Effect: "a faster or slower start", Risk: "dummy makes random weights: answers are noise",
	},
	{
		Name: "watchdog-timeout", Group: GroupService, Unit: "s", Kind: KindFloat, Default: 300.0, Min: 1,
		Meaning: "seconds without progress until the server kills itself", Effect: "none", Risk: "shorter than the longest legal step: it kills a healthy server",
	},
	{
		Name: "dist-timeout", Group: GroupService, Unit: "s", Kind: KindInt, Min: 1,
		Meaning: "seconds until ranks give each other up", Effect: "none", Risk: "too short for a slow load from network storage",
	},
	{
		Name: "skip-server-warmup", Group: GroupService, Kind: KindBool, Default: false,
		Meaning: "call the server ready before it has made one token", Effect: "ready some seconds earlier", Risk: "a server that cannot answer is called ready", Use: "refused in a study",
	},
	{
		Name: "decode-log-interval", Group: GroupService, Unit: "steps", Kind: KindInt, Default: 40.0, Min: 1,
		Meaning: "decode steps between two log lines", Effect: "none", Risk: "none", Use: sameInEveryTrial,
	},
	{
		Name: "random-seed", Group: GroupService, Kind: KindInt,
		Meaning: "seed of sampling", Effect: "none", Risk: "without it every start samples otherwise", Use: sameInEveryTrial,
	},
	{
		Name: "enable-metrics", Group: GroupService, Kind: KindBool, Default: false,
		Meaning: "counters under /metrics", Effect: "hardly any", Risk: "none", Use: sameInEveryTrial,
	},
	{
		Name: "enable-cache-report", Group: GroupService, Kind: KindBool, Default: false,
		Meaning: "report cached prompt tokens in every answer", Effect: "none", Risk: "none", Use: sameInEveryTrial,
	},
	{
		Name: "log-level", Group: GroupService, Kind: KindText, Default: "info",
		Meaning: "how much is logged", Effect: "none", Risk: "above info the batch and ready lines vanish, and nobody can say how the server is", Use: "the log is read at info",
	},
	{
		Name: "crash-dump-folder", Group: GroupService, Kind: KindText,
		Meaning: "where a crashing server writes its last requests", Effect: "none", Risk: "prompts of users on disk",
	},
}
