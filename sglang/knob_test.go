package sglang_test

import (
	"slices"
	"strings"
	"testing"

	"sgtune/sglang"
)

func TestKnobTable(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, k := range sglang.Knobs() {
		if seen[k.Name] {
			t.Errorf("%s is in the table twice", k.Name)
		}
		seen[k.Name] = true
		if k.Meaning == "" || strings.HasSuffix(k.Meaning, ".") {
			t.Errorf("%s: meaning %q, want a sentence fragment", k.Name, k.Meaning)
		}
		if !sglang.Known(k.Name) {
			t.Errorf("%s is not known", k.Name)
		}
		if k.Kind == sglang.KindChoice && len(k.Choices) == 0 {
			t.Errorf("%s has no choices", k.Name)
		}
		if k.Default != nil {
			if err := sglang.CheckValue(k.Name, k.Default); err != nil {
				t.Errorf("default of %s: %v", k.Name, err)
			}
		}
		for what, text := range map[string]string{"effect": k.Effect, "risk": k.Risk, "group": string(k.Group)} {
			if text == "" || strings.HasSuffix(text, ".") {
				t.Errorf("%s: %s %q, want a sentence fragment", k.Name, what, text)
			}
		}
		if k.Renamed != "" {
			if _, ok := sglang.Lookup(k.Renamed); !ok {
				t.Errorf("%s was renamed to %s, which is not in the table", k.Name, k.Renamed)
			}
		}
	}
	if len(seen) < 40 {
		t.Errorf("%d knobs, want the 40 most used", len(seen))
	}
	if k, ok := sglang.Lookup("num-continuous-decode-steps"); !ok || !k.Dead {
		t.Errorf("num-continuous-decode-steps: %+v, want dead", k)
	}
	if k, ok := sglang.Lookup("hicache-size"); !ok || k.Unit != "GB per rank" || k.Kind != sglang.KindInt {
		t.Errorf("hicache-size: %+v, want whole GB per rank", k)
	}
}

func TestKnown(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"mem-fraction-static": true, "cuda-graph-max-bs": true, "moe-a2a-backend": true, "tensor-parallel-size": true,
		"env.NCCL_ALGO": true, "env.": false, "mem-fraction": false, "bogus": false, "": false,
	} {
		if got := sglang.Known(name); got != want {
			t.Errorf("Known(%q) = %v, want %v", name, got, want)
		}
	}
}

func TestSuggest(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"mem_fraction_static":     "mem-fraction-static",
		"mem-fracton-static":      "mem-fraction-static",
		"--mem-fraction-static":   "mem-fraction-static",
		"mem-fraction":            "mem-fraction-static",
		"hicach-size":             "hicache-size",
		"hicache_size":            "hicache-size",
		"chunked-prefil-size":     "chunked-prefill-size",
		"schedule-conservativnes": "schedule-conservativeness",
		"kv-cache-dtpye":          "kv-cache-dtype",
		"tp-szie":                 "tp-size",
		"completely-other-thing":  "",
		"":                        "",
	} {
		if got := sglang.Suggest(name); got != want {
			t.Errorf("Suggest(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestCheckValue(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		value any
		want  string // "" = fine
	}{
		{"mem-fraction-static", 0.85, ""},
		{"mem-fraction-static", 1.2, "between"},
		{"mem-fraction-static", 1.0, "below 1"},
		{"mem-fraction-static", 0.0, "between"},
		{"mem-fraction-static", "high", "takes a number"},
		{"hicache-size", 48.0, ""},
		{"hicache-size", 48.5, "whole number"},
		{"hicache-size", -1.0, "at least 0"},
		{"chunked-prefill-size", -1.0, ""},
		{"chunked-prefill-size", -2.0, "at least -1"},
		{"schedule-policy", "lpm", ""},
		{"schedule-policy", "nope", "choose from"},
		{"enable-mixed-chunk", true, ""},
		{"enable-mixed-chunk", "yes", "bare flag"},
		{"cuda-graph-bs-decode", []any{1.0, 2.0, 4.0}, ""},
		{"cuda-graph-bs-decode", []any{1.5}, "whole number"},
		{"cuda-graph-bs-decode", 4.0, "list"},
		{"attention-backend", "fa3", ""},
		{"unknown-flag", "anything", ""},
	} {
		err := sglang.CheckValue(tt.name, tt.value)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("CheckValue(%s, %v) = %v, want %q", tt.name, tt.value, err, tt.want)
		}
		if err != nil && !strings.Contains(err.Error(), tt.name) {
			t.Errorf("CheckValue(%s, %v) does not name the flag: %v", tt.name, tt.value, err)
		}
	}
}

func TestLossy(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		value any
		want  bool
	}{
		{"kv-cache-dtype", "bf16", false},
		{"kv-cache-dtype", "bfloat16", false},
		{"kv-cache-dtype", "auto", false},
		{"kv-cache-dtype", "fp8_e4m3", true},
		{"kv-cache-dtype", "fp8_e5m2", true},
		{"kv-cache-dtype", "nvfp4", true},
		{"kv-cache-dtype", "something-new", true},
		{"quantization", "fp8", true},
		{"quantization", "unquant", false},
		{"speculative-accept-threshold-single", 0.9, true},
		{"speculative-accept-threshold-acc", 1.0, false},
		{"quantization", "", false},
		{"torchao-config", "int4wo-128", true},
		{"torchao-config", "", false},
		{"modelopt-quant", "fp8", true},
		{"quantize-and-serve", true, true},
		{"quantize-and-serve", false, false},
		{"json-model-override-args", "{}", false},
		{"json-model-override-args", `{"num_hidden_layers": 2}`, true},
		{"load-format", "auto", false},
		{"load-format", "dummy", true},
		{"load-format", "bitsandbytes", true},
		{"dtype", "float16", true},
		{"dtype", "bfloat16", false},
		{"mamba-ssm-dtype", "bfloat16", true},
		{"mamba-ssm-dtype", "float32", false},
		{"enable-double-sparsity", true, true},
		{"hierarchical-sparse-attention-extra-config", `{"algorithm": "quest"}`, true},
		{"deepep-dispatcher-output-dtype", "fp8", true},
		{"deepep-dispatcher-output-dtype", "auto", false},
		{"nsa-prefill-backend", "flashmla_sparse", false},
		{"dsa-prefill-backend", "flashmla_sparse_q8", true},
		{"enable-quant-communications", true, true},
		{"enable-tf32-matmul", true, true},
		{"sampling-defaults", "openai", true},
		{"sampling-defaults", "model", false},
		{"prefill-kv-cache-dequant-dtype", "auto", false},
		{"speculative-draft-model-quantization", "fp8", false}, // the model checks every draft
		{"enable-nan-detection", true, false},
		{"enable-fp32-lm-head", true, false},
		{"mem-fraction-static", 0.9, false},
		{"env.NCCL_ALGO", "Ring", false},
	} {
		if got := sglang.Lossy(tt.name, tt.value); got != tt.want {
			t.Errorf("Lossy(%s, %v) = %v, want %v", tt.name, tt.value, got, tt.want)
		}
	}
	if sglang.LossyDtype("torch.bfloat16") || sglang.LossyDtype("") || !sglang.LossyDtype("torch.float8_e4m3fn") {
		t.Error("LossyDtype misjudges a printed dtype")
	}
}

func TestAutoKVIsLossy(t *testing.T) {
	t.Parallel()
	type m = map[string]any
	for _, tt := range []struct {
		name, version string
		config        m
		want          bool
	}{
		{name: "ModelOpt in config.json", config: m{"quantization_config": m{"quant_algo": "NVFP4", "kv_cache_scheme": m{"type": "float", "num_bits": 8.0}}}, want: true},
		{name: "hf_quant_config.json", config: m{"quantization": m{"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}, want: true},
		{name: "of a text model inside", config: m{"text_config": m{"quantization_config": m{"kv_cache_quant_algo": "fp8"}}}, want: true},
		{name: "before SGLang followed it", version: "0.5.5.post3", config: m{"quantization": m{"kv_cache_quant_algo": "FP8"}}},
		{name: "since then", version: "0.5.6", config: m{"quantization": m{"kv_cache_quant_algo": "FP8"}}, want: true},
		{name: "FP8 weights alone", config: m{"quantization_config": m{"quant_method": "fp8"}}},
		{name: "no KV quantization", config: m{"quantization": m{"quant_algo": "FP8", "kv_cache_quant_algo": nil}}},
		{name: "compressed tensors are not followed", config: m{"quantization_config": m{"quant_method": "compressed-tensors", "kv_cache_scheme": m{"type": "float", "num_bits": 8.0}}}},
		{name: "integers", config: m{"quantization_config": m{"quant_algo": "W8A8", "kv_cache_scheme": m{"type": "int", "num_bits": 8.0}}}},
		{name: "nothing", config: m{}},
	} {
		if got := sglang.AutoKVIsLossy(tt.config, version(t, tt.version)); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestCurrentName(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, version, want string }{
		{"cuda-graph-max-bs", "0.5.23", "cuda-graph-max-bs-decode"},
		{"cuda-graph-max-bs", "0.5.18", "cuda-graph-max-bs-decode"},
		{"cuda-graph-max-bs", "0.5.12", "cuda-graph-max-bs"},
		{"nsa-prefill", "0.5.23", "dsa-prefill-backend"},
		{"dsa-prefill-backend", "0.5.9", "nsa-prefill-backend"},
		{"dsa-prefill-backend", "0.5.3.post3", "nsa-prefill"},
		{"tensor-parallel-size", "0.5.23", "tp-size"},
		{"tensor-parallel-size", "0.4.6.post5", "tp-size"},
		{"attn-cp-size", "0.5.9", "attn-cp-size"},
		{"cuda-graph-max-bs-decode", "0.5.9", "cuda-graph-max-bs"},
		{"cuda-graph-max-bs-decode", "0.5.23", "cuda-graph-max-bs-decode"},
		{"mem-fraction-static", "0.4.6.post5", "mem-fraction-static"},
		{"bogus", "0.5.23", "bogus"},
	} {
		v, err := sglang.ParseVersion(tt.version)
		if err != nil {
			t.Fatal(err)
		}
		if tt.version == "0.5.23" && sglang.CurrentName(tt.name, sglang.Version{}) != tt.want {
			t.Errorf("%s in an unknown version is not named as in the newest", tt.name)
		}
		if got := sglang.CurrentName(tt.name, v); got != tt.want {
			t.Errorf("%s in %s = %s, want %s", tt.name, tt.version, got, tt.want)
		}
	}
}

func TestInstrument(t *testing.T) {
	t.Parallel()
	all := sglang.InstrumentFlags(nil, nil)
	for _, flag := range []string{"--enable-metrics", "--enable-cache-report", "--decode-log-interval", "--random-seed"} {
		if !slices.Contains(all, flag) {
			t.Errorf("%s is missing in %v", flag, all)
		}
	}
	some := sglang.InstrumentFlags(func(flag string) bool { return flag != "enable-cache-report" }, sglang.Config{"random-seed": 7.0})
	if slices.Contains(some, "--random-seed") || slices.Contains(some, "--enable-cache-report") || !slices.Contains(some, "--enable-metrics") {
		t.Errorf("%v: want neither what the user set nor what the version lacks", some)
	}
	env := sglang.InstrumentEnv(map[string]string{"SGLANG_PYSPY_DUMP_BEFORE_CRASH": "1"})
	if _, set := env["SGLANG_PYSPY_DUMP_BEFORE_CRASH"]; set || env["SGLANG_CUDA_COREDUMP_BEFORE_CRASH"] != "0" {
		t.Errorf("environment %v overrides the user's", env)
	}
}
