package sglang_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/sglang"
)

func TestParseModelConfigFacts(t *testing.T) {
	t.Parallel()
	kimi := readModel(t, "kimi-k2.5")
	if !kimi.MLA || kimi.Layers != 61 || kimi.KVLoraRank != 512 || kimi.QKRopeHeadDim != 64 || !kimi.Multimodal || kimi.Architecture != "KimiK25ForConditionalGeneration" || kimi.ContextLen != 262144 {
		t.Errorf("Kimi K2.5: %+v", kimi)
	}
	if q := kimi.Quant; q.Method != "compressed-tensors" || math.Abs(q.ParamBytes-0.578) > 0.001 {
		t.Errorf("Kimi K2.5 weights: %+v, want INT4 in groups of 32", q)
	}
	if d := cmp.Diff([]int{3, 7, 11, 15, 19, 23, 26}, readModel(t, "kimi-linear-48b-a3b").KVLayers); d != "" {
		t.Errorf("Kimi Linear counts its layers from 1:\n%s", d)
	}
	if d := cmp.Diff([]int{4, 12, 20, 28}, readModel(t, "jamba-1.5-mini").KVLayers); d != "" {
		t.Errorf("Jamba:\n%s", d)
	}
	if got := readModel(t, "llama-3.1-8b").ContextLen; got != 131072 {
		t.Errorf("Llama 3.1 context %d, want 131072: its rope factor is in it", got)
	}
	if got := readModel(t, "llama-4-scout").ContextLen; got != 10485760 {
		t.Errorf("Llama 4 context %d, want 10485760", got)
	}
}

func TestParseModelConfigDialects(t *testing.T) {
	t.Parallel()
	const heads = `"num_attention_heads":8,"hidden_size":512`
	for _, tt := range []struct {
		name, config string
		check        func(m sglang.ModelConfig) bool
	}{
		{"head_dim from the width", `{"num_hidden_layers":2,` + heads + `}`, func(m sglang.ModelConfig) bool { return m.HeadDim == 64 && m.VHeadDim == 64 && m.KVHeads == 8 }},
		{"GPT-2 names", `{"n_layer":12,"n_head":12,"n_embd":768}`, func(m sglang.ModelConfig) bool { return m.Layers == 12 && m.HeadDim == 64 }},
		{"multi-query", `{"num_hidden_layers":2,"multi_query":true,` + heads + `}`, func(m sglang.ModelConfig) bool { return m.KVHeads == 1 }},
		{"ChatGLM groups", `{"num_layers":28,"multi_query_group_num":2,"num_attention_heads":32,"hidden_size":4096}`, func(m sglang.ModelConfig) bool { return m.KVHeads == 2 && m.HeadDim == 128 }},
		{"DBRX", `{"n_layers":40,"n_heads":48,"d_model":6144,"attn_config":{"kv_n_heads":8}}`, func(m sglang.ModelConfig) bool { return m.KVHeads == 8 && m.HeadDim == 128 }},
		{"nulls are absent", `{"num_hidden_layers":2,"head_dim":null,"num_key_value_heads":null,"v_head_dim":0,` + heads + `}`, func(m sglang.ModelConfig) bool { return m.HeadDim == 64 && m.VHeadDim == 64 && m.KVHeads == 8 }},
		{
			"Gemma without heads", `{"architectures":["Gemma3ForConditionalGeneration"],"text_config":{"model_type":"gemma3_text","hidden_size":2560,"num_hidden_layers":34}}`,
			func(m sglang.ModelConfig) bool { return m.Heads == 8 && m.KVHeads == 4 && m.HeadDim == 256 },
		},
		{"llm_config", `{"llm_config":{"num_hidden_layers":3,` + heads + `}}`, func(m sglang.ModelConfig) bool { return m.Layers == 3 }},
		{"thinker_config.text_config", `{"thinker_config":{"text_config":{"num_hidden_layers":5,` + heads + `}}}`, func(m sglang.ModelConfig) bool { return m.Layers == 5 && m.Multimodal }},
		{"Python's NaN and Infinity", "\xef\xbb\xbf" + `{"num_hidden_layers":2,"x":[NaN,-Infinity,Infinity,"NaN \" Infinity"],` + heads + `}`, func(m sglang.ModelConfig) bool { return m.Layers == 2 }},
		{"MLA switched off", `{"num_hidden_layers":2,"use_mla":false,"kv_lora_rank":512,` + heads + `}`, func(m sglang.ModelConfig) bool { return !m.MLA }},
		{
			"pattern of letters", `{"architectures":["NemotronHForCausalLM"],"hybrid_override_pattern":"M-M*-ME*","mamba_num_heads":8,"mamba_head_dim":64,"ssm_state_size":128,"conv_kernel":4,` + heads + `}`,
			func(m sglang.ModelConfig) bool {
				return m.Layers == 8 && len(m.StateLayers) == 3 && cmp.Equal(m.KVLayers, []int{3, 7}) && m.State.Known()
			},
		},
		{
			"MiMo pattern", `{"architectures":["MiMoV2FlashForCausalLM"],"num_hidden_layers":4,"hybrid_layer_pattern":[0,1,1,0],"swa_num_key_value_heads":4,"v_head_dim":32,` + heads + `}`,
			func(m sglang.ModelConfig) bool {
				return cmp.Equal(m.Sliding, []int{1, 2}) && m.SWAKVHeads == 4 && m.VHeadDim == 32 && m.SWAVDim == 64
			},
		},
		{
			"linear attention first", `{"architectures":["MiniMaxText01ForCausalLM"],"num_hidden_layers":4,"attn_type_list":[0,0,0,1],` + heads + `}`,
			func(m sglang.ModelConfig) bool { return cmp.Equal(m.KVLayers, []int{3}) && m.State.Known() },
		},
		{
			"KV dtype of the checkpoint", `{"num_hidden_layers":2,"quantization_config":{"quant_method":"modelopt","quant_algo":"FP8","kv_cache_quant_algo":"FP8"},` + heads + `}`,
			func(m sglang.ModelConfig) bool { return m.KVQuant == "fp8_e4m3" && m.Quant.ParamBytes == 1 },
		},
		{
			"KV scheme of compressed-tensors", `{"num_hidden_layers":2,"quantization_config":{"quant_method":"compressed-tensors","kv_cache_scheme":{"num_bits":8,"type":"float"}},` + heads + `}`,
			func(m sglang.ModelConfig) bool { return m.KVQuant == "fp8_e4m3" },
		},
		{
			"AWQ", `{"num_hidden_layers":2,"quantization_config":{"quant_method":"awq","bits":4,"group_size":128},` + heads + `}`,
			func(m sglang.ModelConfig) bool { return math.Abs(m.Quant.ParamBytes-0.5195) < 0.001 },
		},
		{
			"rope factor without its origin", `{"num_hidden_layers":2,"max_position_embeddings":4096,"rope_scaling":{"type":"linear","factor":4.0},` + heads + `}`,
			func(m sglang.ModelConfig) bool { return m.ContextLen == 16384 },
		},
	} {
		m, err := sglang.ParseModelConfig([]byte(tt.config))
		if err != nil || !tt.check(m) {
			t.Errorf("%s: %v, %+v", tt.name, err, m)
		}
	}
}

// TestKVDtypeAuto: "auto" is the checkpoint's own KV dtype from 0.5.6 on, else the weights'.
func TestKVDtypeAuto(t *testing.T) {
	t.Parallel()
	m, err := sglang.ParseModelConfig([]byte(`{"num_hidden_layers":2,"num_attention_heads":8,"head_dim":64,"torch_dtype":"bfloat16","quantization_config":{"quant_method":"modelopt","kv_cache_quant_algo":"FP8"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]string{"0.5.23": "fp8_e4m3", "0.5.6": "fp8_e4m3", "0.5.5.post3": "bfloat16"} {
		v, err := sglang.ParseVersion(version)
		if err != nil {
			t.Fatal(err)
		}
		c, err := m.Cell(sglang.LayoutOf(sglang.Config{"kv-cache-dtype": "auto"}, v))
		if err != nil || c.Dtype != want {
			t.Errorf("%s: %q, %v, want %s", version, c.Dtype, err, want)
		}
	}
}

func TestParseModelConfigRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, config, want string }{
		{"no JSON", `layers: 61`, "not valid JSON"},
		{"a list", `[1,2]`, "not a JSON object"},
		{"null", `null`, "not a JSON object"},
		{"empty", ``, "not valid JSON"},
		{"no layers", `{"hidden_size":64}`, "num_hidden_layers is missing"},
		{"no heads", `{"num_hidden_layers":2,"hidden_size":64}`, "num_attention_heads is missing"},
		{"no width", `{"num_hidden_layers":2,"num_attention_heads":64}`, "hidden_size (or head_dim) is missing"},
		{"MLA without rope", `{"num_hidden_layers":2,"kv_lora_rank":512}`, "qk_rope_head_dim is missing"},
		{"index without its width", `{"num_hidden_layers":2,"kv_lora_rank":512,"qk_rope_head_dim":64,"index_topk":2048}`, "index_head_dim is missing"},
		{"negative", `{"num_hidden_layers":-3,"num_attention_heads":4}`, "num_hidden_layers is -3"},
		{"huge", `{"num_hidden_layers":2e9,"num_attention_heads":4}`, "num_hidden_layers is 2000000000"},
		{"fraction", `{"num_hidden_layers":2,"num_attention_heads":4.5,"hidden_size":64}`, "num_attention_heads is 4.5"},
		{"text", `{"num_hidden_layers":2,"num_attention_heads":4,"head_dim":"64"}`, `head_dim is "64"`},
		{"too long", `{"x":"` + strings.Repeat("y", 9<<20) + `"}`, "too much"},
	} {
		if _, err := sglang.ParseModelConfig([]byte(tt.config)); err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want one line with %q", tt.name, err, tt.want)
		}
	}
}

// FuzzConfigJSON: no configuration, however strange, panics or gives figures that are not numbers.
func FuzzConfigJSON(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "config", "*.json"))
	if err != nil || len(files) == 0 {
		f.Fatalf("no configurations: %v", err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, uint8(8), uint8(2), "fp8_e4m3", 0.88)
	}
	f.Add([]byte(`{"num_hidden_layers":4096,"num_attention_heads":1048576,"head_dim":1048576,"attn_layer_period":1}`), uint8(1), uint8(255), "auto", -1e300)
	f.Add([]byte(`{"num_hidden_layers":3,"num_attention_heads":1,"head_dim":1,"layer_types":[null,{},"mamba"],"x":NaN}`), uint8(0), uint8(0), "", math.Inf(1))
	f.Fuzz(func(t *testing.T, data []byte, tp, pp uint8, dtype string, fraction float64) {
		m, err := sglang.ParseModelConfig(data)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("an error of several lines: %q", err)
			}
			return
		}
		cfg := sglang.Config{
			"tp-size": float64(tp), "pp-size": float64(pp), "dp-size": fraction, "enable-dp-attention": tp%2 == 0, "kv-cache-dtype": dtype, "mem-fraction-static": fraction,
			"speculative-algorithm": "EAGLE", "hicache-size": 16.0, "swa-full-tokens-ratio": fraction,
		}
		layout := sglang.LayoutOf(cfg, sglang.Version{})
		prior, err := sglang.NewPrior(&m, layout, 80, 0, sglang.Auto{GraphMax: 256})
		if err != nil {
			return
		}
		p := prior.Predict(layout, cfg)
		for _, v := range []float64{prior.Cell.Bytes, prior.Cell.HostBytes, p.Tokens.Low, p.Tokens.Mid, p.Tokens.High, p.HostPoolTokens.Mid, p.LowestFraction, m.Parameters().Total()} {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Errorf("a figure is %v: %+v", v, p)
			}
		}
		if p.Tokens.Low > p.Tokens.High {
			t.Errorf("an empty range: %+v", p.Tokens)
		}
	})
}
