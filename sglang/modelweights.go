package sglang

import (
	"slices"
	"strings"
)

// Quantization is what a checkpoint's quantization_config says about the size of its weights.
type Quantization struct {
	Method     string  // "fp8", "awq", "compressed-tensors", ...; "" when unquantized
	ParamBytes float64 // bytes of one quantized weight, scales included
	Experts    bool    // only the experts are quantized
	Ignored    []string
}

// readQuantization takes the weight width, what stays unquantized, and the KV cache's own dtype.
func (m *ModelConfig) readQuantization(c *configJSON) {
	q := c.section("quantization_config")
	if q == nil {
		if q = c.section("compression_config"); q == nil {
			return
		}
	}
	if inner := q.section("quantization"); inner != nil { // modelopt's hf_quant_config.json
		q = inner
	}
	method := strings.ToLower(q.word("quant_method", "quant_algo"))
	m.Quant = Quantization{Method: method, ParamBytes: q.paramBytes(method), Experts: method == "mxfp4"}
	for _, v := range append(q.list("ignore", "modules_to_not_convert", "exclude_modules", "ignored_layers"), q.list("exclude")...) {
		if s, ok := v.(string); ok && len(m.Quant.Ignored) < maxLayers {
			m.Quant.Ignored = append(m.Quant.Ignored, s)
		}
	}
	kv := strings.ToLower(q.word("kv_cache_quant_algo", "kv_cache_dtype"))
	if scheme := q.section("kv_cache_scheme"); scheme != nil && scheme.hint(64, "num_bits") == 8 {
		kv = "fp8"
	}
	if strings.HasPrefix(kv, "fp8") {
		m.KVQuant = "fp8_e4m3"
	}
}

// paramBytes is one quantized weight with its share of scales.
func (c *configJSON) paramBytes(method string) float64 {
	bits := c.hint(64, "bits", "w_bit", "num_bits", "weight_bits")
	group := c.hint(maxWidth, "group_size", "q_group_size")
	if groups := c.section("config_groups"); groups != nil { // compressed-tensors
		for _, name := range sortedKeys(groups.text) {
			weights := groups.section(name)
			if weights == nil {
				continue
			}
			if weights = weights.section("weights"); weights == nil {
				continue
			}
			bits, group = weights.hint(64, "num_bits"), weights.hint(maxWidth, "group_size")
			break
		}
	}
	algo := strings.ToLower(method + " " + c.word("quant_algo", "fmt", "activation_scheme"))
	switch {
	case strings.Contains(algo, "nvfp4"), strings.Contains(algo, "fp4") && strings.Contains(algo, "modelopt"):
		return 0.5 + 1.0/16
	case strings.Contains(algo, "mxfp4"):
		return 0.5 + 1.0/32
	case strings.Contains(algo, "mxfp8"):
		return 1 + 1.0/32
	case strings.Contains(algo, "bitsandbytes"):
		if eight, _ := c.flag("load_in_8bit"); eight {
			return 1
		}
		return 0.5 + 1.0/16
	case bits == 0 || bits == 8:
		return 1
	}
	width := float64(bits) / 8
	if group > 0 {
		width += 2.5 / float64(group) // scale of two bytes, zero point of half a byte
	}
	return width
}

func sortedKeys(m map[string]any) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// skips reports whether a part of the model is left unquantized.
func (q Quantization) skips(part string) bool {
	for _, pattern := range q.Ignored {
		if strings.Contains(pattern, part) {
			return true
		}
	}
	return false
}

// weightShape is what the estimate of weight bytes needs beside the attention's shape.
type weightShape struct {
	inter, moeInter, sharedInter   int
	experts, shared                int
	denseLayers                    int // leading layers without experts
	denseOnly                      []int
	everyN, everyOffset            int // Jamba, Qwen: only each n-th layer has experts
	expertLayers                   int // when the configuration lists them, else -1
	qLora, nope                    int
	tied, gatedQuery, plainMLP     bool
	kda                            bool
	visionLayers, visionW, visionI int
}

func readWeightShape(c *configJSON, m *ModelConfig) weightShape {
	n := func(names ...string) int { return c.hint(maxWidth, names...) }
	w := weightShape{
		inter:    n("intermediate_size", "n_inner", "ffn_hidden_size"),
		moeInter: n("moe_intermediate_size", "expert_ffn_hidden_size", "intermediate_size"),
		experts:  n("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts"),
		shared:   n("n_shared_experts", "num_shared_experts"), sharedInter: n("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "shared_intermediate_size"),
		denseLayers: n("first_k_dense_replace", "moe_layer_start_index"), qLora: n("q_lora_rank"), nope: n("qk_nope_head_dim"),
		everyN: max(1, n("expert_layer_period", "decoder_sparse_step", "interleave_moe_layer_step")), everyOffset: n("expert_layer_offset"), expertLayers: -1,
		kda: c.section("linear_attn_config") != nil,
	}
	if w.inter == 0 {
		w.inter = 4 * m.Hidden
	}
	if w.sharedInter == 0 && w.shared > 0 {
		w.sharedInter = w.shared * w.moeInter
	}
	if _, named := c.value("expert_layer_period"); named == "" && w.everyN > 1 {
		w.everyOffset = w.everyN - 1
	}
	if strings.HasPrefix(m.Architecture, "Llama4") {
		w.sharedInter, w.inter = w.moeInter, n("intermediate_size_mlp")
	}
	if pattern := c.word("hybrid_override_pattern"); pattern != "" { // NemotronH
		w.plainMLP = true
		w.expertLayers = strings.Count(pattern[:min(len(pattern), m.Layers)], "E")
	}
	if m.ModelType == "nemotron" || strings.HasPrefix(m.ModelType, "gpt2") || m.ModelType == "falcon" || m.ModelType == "phi" || m.ModelType == "opt" {
		w.plainMLP = true
	}
	for _, v := range c.list("mlp_only_layers") {
		if i, ok := whole(v, m.Layers-1); ok {
			w.denseOnly = append(w.denseOnly, i)
		}
	}
	w.tied = tiedEmbeddings(c, m)
	gated, named := c.flag("attn_output_gate")
	w.gatedQuery = gated || !named && (strings.HasPrefix(m.Architecture, "Qwen3Next") || strings.HasPrefix(m.Architecture, "Qwen3_5"))
	if v := c.section("vision_config"); v != nil {
		w.visionLayers = v.hint(maxLayers, "num_hidden_layers", "depth", "vt_num_hidden_layers")
		w.visionW = v.hint(maxWidth, "vt_hidden_size", "hidden_size", "embed_dim")
		w.visionI = v.hint(maxWidth, "vt_intermediate_size", "intermediate_size")
	}
	return w
}

func tiedEmbeddings(c *configJSON, m *ModelConfig) bool {
	if tied, named := c.flag("tie_word_embeddings"); named {
		return tied
	}
	return strings.HasPrefix(m.Architecture, "Gemma") || strings.HasPrefix(m.ModelType, "gemma")
}

// Parameters are how many weights each part of the model has.
type Parameters struct {
	Embeddings, Attention, Latent, State float64 // Latent: small projections every rank holds whole
	Dense, Experts, Shared, Router       float64
	Vision, Draft                        float64 // Draft: the model's own draft head
}

// Total is the whole model without its draft head, as model cards count it.
func (p Parameters) Total() float64 {
	return p.Embeddings + p.Attention + p.Latent + p.State + p.Dense + p.Experts + p.Shared + p.Router + p.Vision
}

// Parameters estimates the model's size from its shape. Norms and biases are left out (below 0.1%).
func (m *ModelConfig) Parameters() Parameters {
	w, h := m.shape, float64(m.Hidden)
	p := Parameters{Embeddings: float64(m.Vocab) * h * 2}
	if w.tied {
		p.Embeddings /= 2
	}
	attention, latent := m.attentionParams()
	p.Attention = attention * float64(len(m.KVLayers))
	p.Latent = latent * float64(len(m.KVLayers))
	p.State = m.stateParams() * float64(len(m.StateLayers))
	matrices := 3.0
	if w.plainMLP {
		matrices = 2
	}
	expertLayers := float64(m.expertLayers())
	dense := float64(m.Layers) - expertLayers
	if w.expertLayers >= 0 { // NemotronH: a layer is one thing only
		dense = float64(m.Layers - len(m.KVLayers) - len(m.StateLayers) - w.expertLayers)
	}
	p.Dense = max(0, dense) * matrices * h * float64(w.inter)
	expert := float64(w.experts) * matrices * h * float64(w.moeInter)
	shared := matrices * h * float64(w.sharedInter)
	p.Experts, p.Shared, p.Router = expertLayers*expert, expertLayers*shared, expertLayers*h*float64(w.experts)
	p.Draft = float64(m.NextN) * (attention + latent + expert + shared + 2*h*h)
	if vision := float64(w.visionW); vision > 0 {
		inter := float64(w.visionI)
		if inter == 0 {
			inter = 4 * vision
		}
		p.Vision = float64(w.visionLayers)*(4*vision*vision+2*vision*inter) + 2*vision*h
	}
	return p
}

// expertLayers is how many layers have experts.
func (m *ModelConfig) expertLayers() int {
	w := m.shape
	if w.experts == 0 {
		return 0
	}
	if w.expertLayers >= 0 {
		return w.expertLayers
	}
	n := 0
	for i := w.denseLayers; i < m.Layers; i++ {
		if i%w.everyN == w.everyOffset%w.everyN && !slices.Contains(w.denseOnly, i) {
			n++
		}
	}
	return n
}

// attentionParams is one layer's attention: the part split over the ranks and the part each holds.
func (m *ModelConfig) attentionParams() (split, whole float64) {
	w, h := m.shape, float64(m.Hidden)
	if !m.MLA {
		heads, kv := float64(m.Heads), float64(m.KVHeads)
		query := h * heads * float64(m.HeadDim)
		if w.gatedQuery {
			query *= 2
		}
		return query + h*kv*float64(m.HeadDim+m.VHeadDim) + heads*float64(m.VHeadDim)*h, 0
	}
	heads, rope, lora := float64(m.Heads), float64(m.QKRopeHeadDim), float64(m.KVLoraRank)
	nope, v, q := float64(w.nope), float64(m.VHeadDim), float64(w.qLora)
	whole = h * (lora + rope)
	split = lora*heads*(nope+v) + heads*v*h
	if q > 0 {
		whole += h * q
		split += q * heads * (nope + rope)
	} else {
		split += h * heads * (nope + rope)
	}
	if m.DSA.On() {
		index := float64(m.DSA.Heads) * float64(m.DSA.HeadDim)
		whole += q*index + h*float64(m.DSA.HeadDim) + h*float64(m.DSA.Heads)
	}
	return split, whole
}

// stateParams is one state layer's mixer: projections in and out.
func (m *ModelConfig) stateParams() float64 {
	s, h := m.State, float64(m.Hidden)
	inner := float64(s.Heads) * float64(s.HeadDim)
	if m.shape.kda { // q, k, v, o of the same width, and low-rank gates
		return h*4*inner + 2*(h+inner)*float64(s.HeadDim)
	}
	if inner == 0 { // short convolution: in (3 wide) and out
		return 4 * h * h
	}
	gates := 2 * float64(s.Heads)
	if s.HeadDim == 1 { // Mamba 1 has them per channel, of low rank
		gates = 0
	}
	return h*(2*inner+2*float64(s.GroupCount)*float64(s.ConvGroups)+gates) + inner*h
}
