package export

import "sgtune/sglang"

// refusedKeys are flags that SGLang 0.5.23 accepts on the command line and refuses in a --config
// file: those whose argparse action is neither store nor store_true (sglang/srt/arg_groups/fields:
// BooleanOptionalAction and its --no- forms, LoRAPathAction).
var refusedKeys = withNegations(
	"dcp-replicate-q-proj", "dllm-fdfo", "enable-decoder-swa-bounded-replay", "enable-dsa-fused-indexer",
	"enable-fused-qk-norm-rope", "enable-tf32-matmul", "enable-tp-lm-head-all-to-all", "experts-shared-outer-loras",
	"lora-paths", "lora-strict-loading", "mm-enable-dp-encoder", "ple-offload-embedding",
	"speculative-enable-w4a4-mxfp4-megamoe",
)

func withNegations(names ...string) map[string]bool {
	out := map[string]bool{}
	for _, name := range names {
		out[name], out["no-"+name] = true, true
	}
	return out
}

// forParser replaces the two deprecated flags that a --config file may not hold by what SGLang
// itself turns them into (arg_groups/cuda_graph_hook.py, parallel_hook.py).
func forParser(flags sglang.Config) sglang.Config {
	out := flags.Clone()
	if out["disable-cuda-graph"] == true {
		out["disable-decode-cuda-graph"], out["disable-prefill-cuda-graph"] = true, true
	}
	delete(out, "disable-cuda-graph")
	if out["enable-dp-attention"] == true {
		for _, name := range []string{"dp-size", "data-parallel-size"} {
			width, given := out[name]
			if _, explicit := out["attn-dp-size"]; given && !explicit {
				out["attn-dp-size"] = width
				delete(out, name)
			}
		}
	}
	delete(out, "enable-dp-attention")
	return out
}
