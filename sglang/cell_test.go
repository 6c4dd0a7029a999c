package sglang_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sgtune/sglang"
)

func readModel(t testing.TB, name string) *sglang.ModelConfig {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "config", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := sglang.ParseModelConfig(data)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return &m
}

func cellOf(t *testing.T, model, version string, flags sglang.Config) sglang.Cell {
	t.Helper()
	var v sglang.Version
	if version != "" {
		var err error
		if v, err = sglang.ParseVersion(version); err != nil {
			t.Fatal(err)
		}
	}
	c, err := readModel(t, model).Cell(sglang.LayoutOf(flags, v))
	if err != nil {
		t.Fatalf("%s: %v", model, err)
	}
	return c
}

// TestModelCells: bytes a token, by hand from each model's shape: heads x (key + value) x layers x 2,
// or latent row x layers x 2.
func TestModelCells(t *testing.T) {
	t.Parallel()
	tp := func(n float64) sglang.Config { return sglang.Config{"tp-size": n} }
	for _, tt := range []struct {
		name, model, version string
		flags                sglang.Config
		want                 float64
	}{
		{"GQA", "llama-3.1-8b", "", tp(1), 8 * 256 * 32 * 2},
		{"GQA, one head a rank", "llama-3.1-8b", "", tp(8), 256 * 32 * 2},
		{"more ranks than heads", "llama-3.1-8b", "", tp(16), 256 * 32 * 2},
		{"GQA 70B", "llama-3.1-70b", "0.4.9.post6", tp(4), 2 * 256 * 80 * 2},
		{"fp8", "llama-3.1-70b", "", sglang.Config{"tp-size": 4.0, "kv-cache-dtype": "fp8_e5m2"}, 2 * 256 * 80},
		{"nvfp4: a scale of one byte for 16", "llama-3.1-8b", "", sglang.Config{"kv-cache-dtype": "nvfp4"}, 8 * 256 * 32 * 9 / 16},
		{"mxfp8: a scale of one byte for 32", "llama-3.1-8b", "", sglang.Config{"kv-cache-dtype": "mxfp8"}, 8 * 256 * 32 * 33 / 32},
		{"DP attention: heads over tp/dp ranks", "llama-3.1-70b", "", sglang.Config{"tp-size": 8.0, "dp-size": 4.0, "enable-dp-attention": true}, 4 * 256 * 80 * 2},
		{"DP attention by its new name", "llama-3.1-70b", "", sglang.Config{"tp-size": 8.0, "attn-dp-size": 8.0}, 8 * 256 * 80 * 2},
		{"pipeline: the stage with 40 layers", "llama-3.1-70b", "", sglang.Config{"tp-size": 4.0, "pp-size": 2.0}, 2 * 256 * 40 * 2},
		{"MoE", "qwen3-30b-a3b", "", tp(2), 2 * 256 * 48 * 2},
		{"GLM-4.5", "glm-4.5", "", tp(8), 256 * 92 * 2},
		{"MLA is not split", "deepseek-v3", "", tp(8), 576 * 61 * 2},
		{"MLA fp8", "deepseek-v3", "", sglang.Config{"tp-size": 16.0, "kv-cache-dtype": "fp8_e4m3"}, 576 * 61},
		{"MLA, uneven stages", "deepseek-v3", "", sglang.Config{"tp-size": 8.0, "pp-size": 2.0}, 576 * 31 * 2},
		{"MTP: one layer more", "deepseek-v3", "", sglang.Config{"tp-size": 8.0, "speculative-algorithm": "EAGLE"}, 576 * 62 * 2},
		{"MTP before 0.5.15: a pool outside", "deepseek-v3", "0.5.12", sglang.Config{"tp-size": 8.0, "speculative-algorithm": "EAGLE"}, 576 * 61 * 2},
		{"n-grams have no draft model", "deepseek-v3", "", sglang.Config{"tp-size": 8.0, "speculative-algorithm": "NGRAM"}, 576 * 61 * 2},
		{"Kimi K2", "kimi-k2", "", tp(8), 576 * 61 * 2},
		{"Kimi K2.5, nested", "kimi-k2.5", "", tp(8), 70272},
		{"Kimi K2.5 fp8, nested", "kimi-k2.5", "", sglang.Config{"tp-size": 8.0, "kv-cache-dtype": "fp8_e4m3"}, 35136},
		{"DSA: index rows of 132 bytes", "deepseek-v3.2", "", tp(8), 61 * (576*2 + 132)},
		{"DSA fp8: rows with scales and bf16 rope", "deepseek-v3.2", "", sglang.Config{"kv-cache-dtype": "fp8_e4m3"}, 61 * (656 + 132)},
		{"DSA fp8, raw rows", "deepseek-v3.2", "", sglang.Config{"kv-cache-dtype": "fp8_e4m3", "dsa-decode-backend": "trtllm"}, 61 * (576 + 132)},
		{"DSA fp8 to 0.5.15: divided by the plain row", "deepseek-v3.2", "0.5.12", sglang.Config{"kv-cache-dtype": "fp8_e4m3"}, 61 * (576 + 132)},
		{"DSA with MTP", "deepseek-v3.2", "", sglang.Config{"speculative-algorithm": "EAGLE"}, 62 * (576*2 + 132)},
		{"two pools: 18 full, 18 sliding at 0.8", "gpt-oss-120b", "", tp(1), 18*2048 + 0.8*18*2048},
		{"two pools, own ratio, fp8", "gpt-oss-120b", "", sglang.Config{"tp-size": 2.0, "swa-full-tokens-ratio": 0.5, "kv-cache-dtype": "fp8_e4m3"}, 18*512 + 0.5*18*512},
		{"one pool before 0.5.9", "gpt-oss-120b", "0.5.6.post2", tp(1), 36 * 2048},
		{"one pool when asked", "gpt-oss-120b", "", sglang.Config{"disable-hybrid-swa-memory": true}, 36 * 2048},
		{"Llama 4: one layer in four is full", "llama-4-scout", "", tp(8), 12*512 + 0.8*36*512},
		{"Gemma 3 keeps all tokens everywhere", "gemma-3-27b", "", tp(1), 16 * 256 * 62 * 2},
		{"Qwen3-Next: 12 of 48 layers", "qwen3-next-80b-a3b", "", tp(1), 2 * 512 * 12 * 2},
		{"Kimi Linear: 7 of 27 layers, MLA", "kimi-linear-48b-a3b", "", tp(4), 576 * 7 * 2},
		{"Jamba: 4 of 32 layers", "jamba-1.5-mini", "", tp(1), 8 * 256 * 4 * 2},
		{"Granite: 4 of 40 layers", "granite-4.0-h-small", "", tp(2), 4 * 256 * 4 * 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := cellOf(t, tt.model, tt.version, tt.flags); math.Abs(got.Bytes-tt.want) > 1e-6 {
				t.Errorf("%s %v: cell %.1f bytes, want %.1f", tt.model, tt.flags, got.Bytes, tt.want)
			}
		})
	}
}

// TestModelStates: bytes of one state slot, by hand: (channels x (kernel-1) x 2 + heads x head x state x 4) x layers.
func TestModelStates(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		model string
		tp    float64
		want  float64
	}{
		{"qwen3-next-80b-a3b", 1, 36 * (8192*3*2 + 32*128*128*4)},
		{"qwen3-next-80b-a3b", 4, 36 * (2048*3*2 + 8*128*128*4)},
		{"kimi-linear-48b-a3b", 1, 20 * (3*4096*3*2 + 32*128*128*4)},
		{"jamba-1.5-mini", 1, 28 * (8192*3*2 + 8192*16*4)},
		{"granite-4.0-h-small", 1, 36 * ((8192+2*128)*3*2 + 128*64*128*4)},
		{"granite-4.0-h-small", 2, 36 * ((4096+2*128)*3*2 + 64*64*128*4)}, // one group, a copy for each rank
		{"llama-3.1-8b", 1, 0},
	} {
		if got := cellOf(t, tt.model, "", sglang.Config{"tp-size": tt.tp}).State.SlotBytes; got != tt.want {
			t.Errorf("%s, tp %.0f: state %.0f bytes, want %.0f", tt.model, tt.tp, got, tt.want)
		}
	}
	half := cellOf(t, "qwen3-next-80b-a3b", "", sglang.Config{"mamba-ssm-dtype": "bfloat16"}).State.SlotBytes
	if want := 36.0 * (8192*3*2 + 32*128*128*2); half != want {
		t.Errorf("bf16 state %.0f bytes, want %.0f", half, want)
	}
}

// TestStateTakesFromPool follows _handle_max_mamba_cache by hand for 30 GiB and the default ratio:
// budget 30 x 0.9/1.9 GiB.
func TestStateTakesFromPool(t *testing.T) {
	t.Parallel()
	const slot, cell = 77266944, 24576
	for _, tt := range []struct {
		name, version string
		flags         sglang.Config
		slots, tokens int
	}{
		{"0.5.23: one slot of padding", "0.5.23", sglang.Config{}, 196, (30<<30 - 197*slot) / cell},
		{"0.5.12: none", "0.5.12", sglang.Config{}, 197, (30<<30 - 197*slot) / cell},
		{"a number of slots", "0.5.12", sglang.Config{"max-mamba-cache-size": 64.0}, 64, (30<<30 - 64*slot) / cell},
		{"no radix cache: one a request", "0.5.12", sglang.Config{"disable-radix-cache": true, "max-running-requests": 32.0}, 32, (30<<30 - 32*slot) / cell},
	} {
		c := cellOf(t, "qwen3-next-80b-a3b", tt.version, tt.flags)
		tokens, slots := c.Tokens(30, 1)
		if slots != tt.slots || tokens != tt.tokens {
			t.Errorf("%s: %d tokens and %d slots, want %d and %d", tt.name, tokens, slots, tt.tokens, tt.slots)
		}
	}
	c := cellOf(t, "qwen3-next-80b-a3b", "0.5.12", sglang.Config{})
	tokens, slots := c.Tokens(30, 1)
	if got := c.RunningLimit(tokens, slots, 262144, 0); got != 197/3 {
		t.Errorf("at most %d requests run, want %d: three slots each", got, 197/3)
	}
}

// TestMultimodalReserve: 0.5.23 keeps 100 MiB, and 1 GiB more for features on the GPU.
func TestMultimodalReserve(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		model, version string
		flags          sglang.Config
		want           float64
	}{
		{"kimi-k2.5", "0.5.23", sglang.Config{}, 0.09765625},
		{"kimi-k2.5", "0.5.23", sglang.Config{"mm-feature-transport": "cuda_ipc"}, 1.09765625},
		{"kimi-k2.5", "0.5.20", sglang.Config{}, 0},
		{"kimi-k2.5", "", sglang.Config{}, 0},
		{"kimi-k2", "0.5.23", sglang.Config{}, 0},
	} {
		c := cellOf(t, tt.model, tt.version, tt.flags)
		tokens, _ := c.Tokens(10, 1)
		if want := int((10 - tt.want) * sglang.GiB / 70272); c.FixedGiB() != tt.want || tokens != want {
			t.Errorf("%s %s: reserve %v and %d tokens of 10 GiB, want %v and %d", tt.model, tt.version, c.FixedGiB(), tokens, tt.want, want)
		}
	}
}

func TestRunningLimit(t *testing.T) {
	t.Parallel()
	c := cellOf(t, "llama-3.1-8b", "", sglang.Config{})
	for _, tt := range []struct{ tokens, context, asked, want int }{
		{424075, 131072, 0, 2048}, {930386, 131072, 0, 3634}, {5000000, 131072, 0, 4096}, {1000, 131072, 0, 500}, {424075, 131072, 64, 64},
	} {
		if got := c.RunningLimit(tt.tokens, 0, tt.context, tt.asked); got != tt.want {
			t.Errorf("%+v: limit %d", tt, got)
		}
	}
}

func TestCellRefuses(t *testing.T) {
	t.Parallel()
	parse := func(text string) *sglang.ModelConfig {
		m, err := sglang.ParseModelConfig([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return &m
	}
	for _, tt := range []struct{ name, config, dtype, want string }{
		{"a dtype nobody knows", `{"num_hidden_layers":2,"num_attention_heads":4,"head_dim":64}`, "int3", `kv-cache-dtype "int3"`},
		{"compressed pools", `{"architectures":["DeepseekV4ForCausalLM"],"num_hidden_layers":2,"num_attention_heads":4,"head_dim":64}`, "", "--observed"},
		{"a state of unknown shape", `{"num_hidden_layers":2,"num_attention_heads":4,"head_dim":64,"layer_types":["linear_attention","full_attention"]}`, "", "linear-attention state"},
	} {
		if _, err := parse(tt.config).Cell(sglang.LayoutOf(sglang.Config{"kv-cache-dtype": tt.dtype}, sglang.Version{})); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
	}
}

// TestModelParameters: the estimate of weights against the sizes that the models are known by.
func TestModelParameters(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		model    string
		billions float64
	}{
		{"llama-3.1-8b", 8.03},
		{"llama-3.1-70b", 70.55},
		{"qwen3-30b-a3b", 30.5},
		{"deepseek-v3", 671},
		{"glm-4.5", 353},
		{"gpt-oss-120b", 116.8},
		{"qwen3-next-80b-a3b", 79.7},
		{"gemma-3-27b", 27.4},
		{"kimi-k2", 1026},
		{"kimi-linear-48b-a3b", 49.1},
		{"jamba-1.5-mini", 51.6},
		{"granite-4.0-h-small", 32.2},
		{"llama-4-scout", 108.6},
	} {
		got := readModel(t, tt.model).Parameters().Total() / 1e9
		if math.Abs(got/tt.billions-1) > 0.03 {
			t.Errorf("%s: %.1f billion parameters, want %.1f within 3%%", tt.model, got, tt.billions)
		}
	}
}
