package sglang

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ModelConfig is what a model's config.json says about memory. Counts are of the whole model, before
// it is split over ranks. Field names follow SGLang's configs/model_config.py.
type ModelConfig struct {
	Architecture string // first of "architectures"
	ModelType    string
	Dtype        string // of unquantized weights: "bfloat16", "float16", "float32"
	Layers       int    // num_hidden_layers
	Hidden       int
	Vocab        int
	ContextLen   int // as SGLang derives it from the configuration
	Multimodal   bool

	Heads, KVHeads      int
	HeadDim, VHeadDim   int
	SWAKVHeads          int // sliding-window layers, where they differ
	SWAHeadDim, SWAVDim int

	MLA           bool // multi-head latent attention: one latent row a token, on every rank
	KVLoraRank    int
	QKRopeHeadDim int
	DSA           DSA

	KVLayers []int // layers with a KV cache that holds every token
	Sliding  []int // layers that only need the window; see SWASince
	SWASince Version
	Window   int // sliding window, tokens

	StateLayers []int // layers with a fixed state a request instead of KV (linear attention, Mamba)
	State       StateShape

	NextN   int    // layers of the model's own draft head (num_nextn_predict_layers)
	KVQuant string // KV dtype the checkpoint asks for: "fp8_e4m3" or ""
	Quant   Quantization

	shape   weightShape
	unsized string // why the arithmetic does not know this model, "" when it does
}

// DSA is the indexer of DeepSeek sparse attention (V3.2, GLM-5): a narrow fp8 key a token beside the
// latent row. The zero value is a model without.
type DSA struct {
	HeadDim int // index_head_dim
	Heads   int
	Pool    int   // tokens that share one index row (index_kpool), 1 normally
	Skip    []int // layers that reuse the top-k of the one before (no index rows from 0.5.20 on with elision)
}

// On reports whether the model has an indexer.
func (d DSA) On() bool { return d.HeadDim > 0 }

// bytesPerLayer is one token's index row: fp8 key and a float32 scale a block of 128
// (mem_cache/memory_pool.py, DSATokenToKVPool).
func (d DSA) bytesPerLayer() int {
	row := d.HeadDim + d.HeadDim/128*4
	pool := max(1, d.Pool)
	return (row + pool - 1) / pool
}

// ParseModelConfig reads a model's config.json. An error names the field that is missing or wrong.
// Fields of nested language models (text_config, llm_config, ...) are found.
func ParseModelConfig(data []byte) (ModelConfig, error) {
	c, err := decodeConfig(data)
	if err != nil {
		return ModelConfig{}, err
	}
	m := ModelConfig{ModelType: c.word("model_type"), Dtype: weightDtype(c)}
	if names, ok := c.top["architectures"].([]any); ok && len(names) > 0 {
		m.Architecture, _ = names[0].(string)
	}
	m.Layers = c.layers()
	m.Hidden = c.count(maxWidth, "hidden_size", "n_embd", "d_model", "dim")
	m.Vocab = c.hint(maxVocab, "vocab_size")
	m.NextN = c.hint(maxLayers, "num_nextn_predict_layers", "mtp_num_hidden_layers", "mtp_num_layers")
	m.ContextLen = c.contextLen()
	m.Multimodal = c.top["vision_config"] != nil || c.top["audio_config"] != nil || c.top["thinker_config"] != nil
	m.readHeads(c)
	m.readLatent(c)
	if err := m.check(c); err != nil {
		return ModelConfig{}, err
	}
	m.readLayers(c)
	m.readQuantization(c)
	m.shape = readWeightShape(c, &m)
	if c.err != nil {
		return ModelConfig{}, c.err
	}
	return m, nil
}

// layers is num_hidden_layers; NemotronH gives a pattern instead.
func (c *configJSON) layers() int {
	if n := c.count(maxLayers, "num_hidden_layers", "n_layer", "n_layers", "num_layers"); n > 0 {
		return n
	}
	if n := len(c.list("layers_block_type")); n > 0 {
		return min(n, maxLayers)
	}
	return min(len(c.word("hybrid_override_pattern")), maxLayers)
}

func weightDtype(c *configJSON) string {
	if d := strings.TrimPrefix(c.word("torch_dtype", "dtype"), "torch."); d != "" {
		return d
	}
	return "bfloat16"
}

// contextLen is SGLang's get_context_length: the trained length, times the factor of a rope scaling
// that does not name its original length.
func (c *configJSON) contextLen() int {
	const longest = 1 << 31
	n := c.hint(longest, "max_sequence_length", "seq_length", "max_seq_len", "model_max_length", "max_position_embeddings")
	if n == 0 {
		n = 2048
	}
	rope := c.section("rope_scaling")
	if rope == nil {
		return n
	}
	factor, ok := rope.number("factor")
	_, original := rope.text["original_max_position_embeddings"]
	if !ok || original || rope.word("rope_type") == "llama3" || factor < 1 || factor > 1024 {
		return n
	}
	return int(min(float64(n)*factor, longest))
}

// headDefaults are what the Python class of a model type fills in where its config.json is silent.
var headDefaults = map[string]struct{ heads, kv, dim int }{
	"gemma_text": {8, 4, 256}, "gemma": {16, 16, 256}, "gemma2": {8, 4, 256}, "gemma3": {8, 4, 256}, "gemma3_text": {8, 4, 256},
	"gemma3n_text": {8, 2, 256}, "gemma4_text": {8, 4, 256},
	"qwen3": {32, 32, 128}, "qwen3_next": {16, 2, 256}, "qwen3_5_text": {16, 4, 256}, "qwen3_5_moe_text": {16, 2, 256},
	"gpt_oss": {64, 8, 64}, "llama4_text": {40, 8, 128}, "nemotron_h": {32, 8, 128},
}

func (m *ModelConfig) readHeads(c *configJSON) {
	fill := headDefaults[c.word("model_type")]
	m.Heads = c.count(maxWidth, "num_attention_heads", "n_head", "n_heads", "num_heads")
	if m.Heads == 0 {
		m.Heads = fill.heads
	}
	m.KVHeads = kvHeads(c)
	if m.KVHeads == 0 {
		m.KVHeads = m.Heads
		if fill.kv > 0 {
			m.KVHeads = fill.kv
		}
	}
	m.HeadDim = c.count(maxWidth, "head_dim", "attention_head_dim")
	if m.HeadDim == 0 {
		m.HeadDim = fill.dim
	}
	if m.HeadDim == 0 && m.Heads > 0 {
		m.HeadDim = m.Hidden / m.Heads
	}
	or := func(n, other int) int {
		if n > 0 {
			return n
		}
		return other
	}
	m.VHeadDim = or(c.count(maxWidth, "v_head_dim"), m.HeadDim)
	m.SWAHeadDim = or(c.count(maxWidth, "swa_head_dim"), m.HeadDim)
	m.SWAVDim = or(c.count(maxWidth, "swa_v_head_dim"), m.SWAHeadDim)
	m.SWAKVHeads = c.count(maxWidth, "swa_num_key_value_heads")
	if other := c.section("attention_other_setting"); m.SWAKVHeads == 0 && other != nil { // Step 3.5
		m.SWAKVHeads = other.hint(maxWidth, "num_attention_groups")
	}
	m.SWAKVHeads = or(m.SWAKVHeads, m.KVHeads)
}

// kvHeads follows get_total_num_kv_heads; 0 means as many as attention heads.
func kvHeads(c *configJSON) int {
	if multi, _ := c.flag("multi_query"); multi {
		if arch, _ := c.flag("new_decoder_architecture"); !arch {
			return 1
		}
	}
	if attn := c.section("attn_config"); attn != nil { // DBRX, MPT
		if n := attn.hint(maxWidth, "kv_n_heads"); n > 0 {
			return n
		}
	}
	return c.count(maxWidth, "n_head_kv", "num_kv_heads", "num_key_value_heads", "multi_query_group_num", "num_attention_groups")
}

func (m *ModelConfig) readLatent(c *configJSON) {
	m.KVLoraRank = c.count(maxWidth, "kv_lora_rank")
	if use, present := c.flag("use_mla"); m.KVLoraRank == 0 || present && !use {
		m.KVLoraRank = 0
		return
	}
	m.MLA = true
	m.QKRopeHeadDim = c.count(maxWidth, "qk_rope_head_dim")
	if nope, _ := c.flag("use_mla_nope"); nope && strings.HasPrefix(m.Architecture, "BailingMoeV3") {
		m.QKRopeHeadDim = 0
	} else if m.QKRopeHeadDim == 0 && c.err == nil {
		c.err = errors.New("config.json: qk_rope_head_dim is missing; a model with kv_lora_rank needs it")
	}
	if v, _ := c.value("index_topk"); v == nil {
		return
	}
	m.DSA = DSA{HeadDim: c.count(maxWidth, "index_head_dim"), Heads: c.hint(maxWidth, "index_n_heads"), Pool: max(1, c.hint(maxWidth, "index_kpool"))}
	if m.DSA.HeadDim == 0 && c.err == nil {
		c.err = errors.New("config.json: index_head_dim is missing; a model with index_topk needs it")
	}
	for i, kind := range c.list("indexer_types") {
		if kind == "shared" && i < m.Layers {
			m.DSA.Skip = append(m.DSA.Skip, i)
		}
	}
}

// check names the first field without which nothing can be computed.
func (m *ModelConfig) check(c *configJSON) error {
	if c.err != nil {
		return c.err
	}
	missing := func(field string) error {
		return fmt.Errorf("config.json: %s is missing; give the config.json of the language model itself", field)
	}
	switch {
	case m.Layers == 0:
		return missing("num_hidden_layers")
	case m.MLA:
		return nil
	case m.Heads == 0:
		return missing("num_attention_heads")
	case m.HeadDim == 0:
		return missing("hidden_size (or head_dim)")
	}
	return nil
}

// Unsized says why the cell of this model is not known, "" when it is. A start-up log then has to
// tell it.
func (m *ModelConfig) Unsized() string { return m.unsized }

// Name is the model in words, for a person.
func (m *ModelConfig) Name() string {
	if m.Architecture != "" {
		return m.Architecture
	}
	if m.ModelType != "" {
		return m.ModelType
	}
	return "model"
}

// allLayers is 0..n-1.
func allLayers(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// without is a, less what is in b. Both are sorted.
func without(a, b []int) []int {
	var out []int
	for _, v := range a {
		if _, found := slices.BinarySearch(b, v); !found {
			out = append(out, v)
		}
	}
	return out
}
