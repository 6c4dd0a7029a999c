package sglang

import (
	"slices"
	"strings"
)

// Lossy reports whether a setting may change the model's answers: a KV cache or state cache below
// the model's own precision, weights, activations or traffic quantized by flag, attention that skips
// tokens, speculative acceptance below certainty, other sampling. kv-cache-dtype "auto" is not lossy
// by itself: it follows the checkpoint, see AutoKVIsLossy, and what it became is in the KV line of
// the log, see LossyDtype. name may be that of any version.
func Lossy(name string, value any) bool {
	text := FormatValue(value)
	if rule, ok := lossyRules[CurrentName(name, Version{})]; ok {
		return rule(text, value)
	}
	k, ok := Lookup(name)
	return ok && slices.Contains(k.Lossy, text)
}

// lossyRules are the flags that may change answers, and by which values. Where a format is chosen,
// the values that keep the model's own are named, so that one nobody knows yet counts as lossy.
var lossyRules = map[string]func(text string, value any) bool{
	"kv-cache-dtype":                   func(text string, _ any) bool { return text != "auto" && LossyDtype(text) },
	"speculative-draft-kv-cache-dtype": func(text string, _ any) bool { return text != "auto" && LossyDtype(text) },

	"quantization":                     unless("unquant"),
	"torchao-config":                   unless(),
	"modelopt-quant":                   unless(),
	"modelopt-checkpoint-restore-path": unless(),
	"rl-quant-profile":                 unless(),
	"quantize-and-serve":               unless("false"),
	"load-format":                      oneOf("dummy", "bitsandbytes", "flash_rl"), // dummy: random weights
	"dtype":                            oneOf("half", "float16"),
	"mamba-ssm-dtype":                  unless("float32"),
	"json-model-override-args":         unless("{}"),
	"kt-weight-path":                   unless(), // experts on the CPU in INT4 or INT8

	"prefill-kv-cache-dequant-dtype":         unless("auto"),
	"qsa-indexer-dtype":                      unless("auto", "bfloat16"),
	"deepep-dispatcher-output-dtype":         unless("auto", "bf16"),
	"flashinfer-a2a-dispatch-type":           unless("auto", "bf16"),
	"enable-quant-communications":            unless("false"),
	"enable-w4a4-mxfp4-megamoe":              unless("false"),
	"enable-deepseek-v4-fp4-indexer":         unless("false"),
	"enable-int8-mamba-checkpoint":           unless("false"),
	"enable-mamba-cache-stochastic-rounding": unless("false"),
	"enable-tf32-matmul":                     unless("false"),
	"dsa-prefill-backend":                    oneOf("flashmla_sparse_q8"),
	"dsv4-prefill-backend":                   oneOf("flashmla_sparse_q8"),

	"enable-double-sparsity": unless("false"),
	"enable-hisparse":        unless("false"),
	"hisparse-config":        unless(),

	"speculative-accept-threshold-single": below1,
	"speculative-accept-threshold-acc":    below1,
	"sampling-defaults":                   unless("model"), // openai: not the checkpoint's temperature
}

// unless is lossy for every value but "" and those.
func unless(kept ...string) func(string, any) bool {
	return func(text string, _ any) bool { return text != "" && !slices.Contains(kept, text) }
}

func oneOf(lossy ...string) func(string, any) bool {
	return func(text string, _ any) bool { return slices.Contains(lossy, text) }
}

func below1(_ string, value any) bool {
	v, ok := value.(float64)
	return !ok || v < 1
}

// LossyDtype reports whether a KV element type, as a flag or as a log spells it, is below 16 bits.
// A name nobody knows counts as lossy; "" (older logs print none) does not.
func LossyDtype(name string) bool {
	if name == "" {
		return false
	}
	bytes, ok := DtypeBytes(name)
	return !ok || bytes < 2
}

// AutoKVIsLossy reports whether kv-cache-dtype auto gives an FP8 cache for a checkpoint in a version,
// from its config.json or hf_quant_config.json: since 0.5.6 SGLang follows a quantization config that
// names an FP8 KV cache (mem_cache/kv_cache_dtype.py; ModelOpt's kv_cache_quant_algo, or its
// kv_cache_scheme of 8-bit floats). An unknown version counts as the newest.
func AutoKVIsLossy(modelConfig map[string]any, v Version) bool {
	if v != (Version{}) && v.Compare(v0506) < 0 {
		return false
	}
	return namesFP8Cache(modelConfig)
}

func namesFP8Cache(modelConfig map[string]any) bool {
	_, modelopt := modelConfig["quant_algo"]
	for key, value := range modelConfig {
		switch v := value.(type) {
		case map[string]any:
			switch key {
			case "quantization_config", "quantization", "text_config", "compression_config":
				if namesFP8Cache(v) {
					return true
				}
			case "kv_cache_scheme":
				if modelopt && v["type"] == "float" && v["num_bits"] == 8.0 {
					return true
				}
			}
		case string:
			named := key == "kv_cache_quant_algo" || key == "kv_cache_quant_method" || modelopt && key == "kv_cache_scheme"
			if word := strings.ToUpper(v); named && (strings.Contains(word, "FP8") || strings.Contains(word, "FLOAT8")) {
				return true
			}
		}
	}
	return false
}
