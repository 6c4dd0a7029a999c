package sglang

import (
	"slices"
	"strings"
)

// Lossy reports whether a setting may change the model's answers: a KV cache below 16 bits, a
// quantization asked for by flag, speculative acceptance below certainty. kv-cache-dtype "auto" is
// not lossy by itself: it follows the checkpoint, see AutoKVIsLossy, and what it became is in the
// KV line of the log, see LossyDtype.
func Lossy(name string, value any) bool {
	text := FormatValue(value)
	switch name {
	case "kv-cache-dtype", "speculative-draft-kv-cache-dtype":
		return text != "auto" && LossyDtype(text)
	case "quantization":
		return text != "" && text != "unquant"
	case "dtype":
		return text == "half" || text == "float16"
	case "speculative-accept-threshold-single", "speculative-accept-threshold-acc":
		v, ok := value.(float64)
		return !ok || v < 1
	case "torchao-config", "modelopt-quant", "rl-quant-profile", "prefill-kv-cache-dequant-dtype", "json-model-override-args":
		return text != ""
	case "quantize-and-serve":
		return text == "true"
	case "load-format":
		return text == "dummy" // random weights
	}
	k, ok := Lookup(name)
	return ok && slices.Contains(k.Lossy, text)
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

// AutoKVIsLossy reports whether kv-cache-dtype auto would give an FP8 cache for a checkpoint, from
// its config.json or hf_quant_config.json: since 0.5.6 SGLang follows a quantization config that
// names an FP8 KV cache (mem_cache/kv_cache_dtype.py).
func AutoKVIsLossy(modelConfig map[string]any) bool {
	for key, value := range modelConfig {
		switch v := value.(type) {
		case map[string]any:
			if (key == "quantization_config" || key == "quantization" || key == "text_config" || key == "compression_config") && AutoKVIsLossy(v) {
				return true
			}
		case string:
			if (key == "kv_cache_quant_algo" || key == "kv_cache_quant_method") && strings.Contains(strings.ToUpper(v), "FP8") {
				return true
			}
		}
	}
	return false
}
