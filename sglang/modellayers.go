package sglang

import (
	"math"
	"slices"
	"strings"
)

// StateShape is what one request occupies in one state layer, before it is split over the attention
// ranks (configs/mamba_utils.py, Mamba2StateShape and KimiLinearStateShape).
type StateShape struct {
	Conv        int // channels of the short convolution
	ConvGroups  int // groups x state size that are replicated up to the ranks, 0 when none
	GroupCount  int
	ConvKernel  int
	Heads       int // recurrent state: Heads x HeadDim x StateSize
	HeadDim     int
	StateSize   int
	StateBytes  float64 // bytes of one element of the recurrent state; 4 (float32) by default
	unknownSize bool
}

// Known reports whether the shape could be read.
func (s StateShape) Known() bool { return !s.unknownSize && (s.Conv > 0 || s.Heads > 0) }

// BytesPerLayer is one request's state in one layer on one rank, the recurrent part with elemBytes
// an element (0: as the model says). The convolution part is bf16.
func (s StateShape) BytesPerLayer(attentionTP int, elemBytes float64) float64 {
	tp := float64(max(1, attentionTP))
	if elemBytes <= 0 {
		elemBytes = s.StateBytes
	}
	groups := float64(s.GroupCount)
	if s.GroupCount > 0 && math.Mod(groups, tp) != 0 {
		groups = tp // groups are replicated so that each rank has its own
	}
	conv := (float64(s.Conv) + 2*groups*float64(s.ConvGroups)) / tp * float64(max(0, s.ConvKernel-1))
	state := float64(s.Heads) / tp * float64(s.HeadDim) * float64(s.StateSize)
	return math.Trunc(conv)*2 + math.Trunc(state)*elemBytes
}

// slidingSince is from which version on SGLang gives the sliding-window layers of an architecture a
// pool of their own (configs/model_config.py, is_hybrid_swa_model; the first of the wheels read that
// has it). All other models with a window, Gemma 2 and 3 among them, keep every token in every layer.
var slidingSince = map[string]Version{
	"Llama4ForConditionalGeneration": mem0509, "GptOssForCausalLM": mem0509, "MiMoV2FlashForCausalLM": mem0509, "Step3p5ForCausalLM": mem0509,
	"MiMoV2ForCausalLM": mem0512, "Gemma4ForCausalLM": mem0512, "Gemma4ForConditionalGeneration": mem0512, "LagunaForCausalLM": mem0512,
	"Step3p7ForConditionalGeneration": mem0515, "Gemma4UnifiedForConditionalGeneration": mem0515, "UnlimitedOCRForCausalLM": mem0515,
	"MellumForCausalLM": mem0518, "MuseGlimmerForCausalLM": mem0518, "MuseGlimmerForConditionalGeneration": mem0518, "InklingForConditionalGeneration": mem0518,
	"GraniteSWAForCausalLM": mem0520, "GraniteMoeSWAForCausalLM": mem0520, "IQuestQ1ForCausalLM": mem0520,
	"BeamForCausalLM": mem0523, "DiffusionGemmaForBlockDiffusion": mem0523, "EmbeddingGemma2Model": mem0523,
}

// Versions at which memory sizing changed (each the first of the wheels read that has the change).
var (
	mem0503 = Version{Minor: 5, Patch: 3}
	mem0505 = Version{Minor: 5, Patch: 5}
	mem0506 = Version{Minor: 5, Patch: 6}
	mem0509 = Version{Minor: 5, Patch: 9}
	mem0512 = Version{Minor: 5, Patch: 12}
	mem0515 = Version{Minor: 5, Patch: 15}
	mem0518 = Version{Minor: 5, Patch: 18}
	mem0520 = Version{Minor: 5, Patch: 20}
	mem0523 = Version{Minor: 5, Patch: 23}
)

// readLayers sorts the layers into those with full KV, those with a sliding window and those with a
// state. It changes nothing for an ordinary model.
func (m *ModelConfig) readLayers(c *configJSON) {
	m.KVLayers = allLayers(m.Layers)
	m.Window = c.hint(maxVocab, "sliding_window", "sliding_window_size", "attention_chunk_size")
	switch {
	case strings.HasPrefix(m.Architecture, "LongcatFlash"): // two attentions a layer
		m.KVLayers = allLayers(2 * m.Layers)
	case strings.HasPrefix(m.Architecture, "DeepseekV4"):
		m.unsized = "DeepSeek V4 keeps compressed pools of several ratios"
	case strings.HasPrefix(m.Architecture, "MiniMaxM3"):
		m.unsized = "MiniMax M3 keeps a sparse pool and an index pool"
	}
	m.readSliding(c)
	m.readState(c)
	m.DSA.skipShared(c, m.Layers)
}

func (m *ModelConfig) readSliding(c *configJSON) {
	since, ok := slidingSince[m.Architecture]
	if opted, _ := c.flag("is_hybrid_swa"); !ok && opted {
		since, ok = mem0515, true
	}
	if !ok {
		return
	}
	var sliding []int
	switch {
	case m.Architecture == "Llama4ForConditionalGeneration":
		for i := range m.Layers {
			if (i+1)%4 != 0 {
				sliding = append(sliding, i)
			}
		}
	case m.Architecture == "UnlimitedOCRForCausalLM":
		sliding = allLayers(m.Layers)
	case len(c.list("hybrid_layer_pattern")) > 0: // MiMo: 1 is sliding
		sliding = layersWhere(c.list("hybrid_layer_pattern"), m.Layers, func(v any) bool { return v == 1.0 })
	case len(c.list("local_layer_ids")) > 0:
		for _, v := range c.list("local_layer_ids") {
			if i, ok := whole(v, m.Layers-1); ok {
				sliding = append(sliding, i)
			}
		}
		slices.Sort(sliding)
		sliding = slices.Compact(sliding)
	default:
		sliding = layersWhere(layerTypes(c, m.Layers, m.Architecture), m.Layers, func(v any) bool { return v == "sliding_attention" })
	}
	if m.Architecture == "LagunaForCausalLM" && m.Window == 0 {
		return
	}
	m.Sliding, m.SWASince = sliding, since
}

// layerTypes is the list of that name; gpt-oss configurations without it alternate, sliding first.
func layerTypes(c *configJSON, layers int, architecture string) []any {
	types := c.list("layer_types")
	if len(types) > 0 || architecture != "GptOssForCausalLM" {
		return types
	}
	for i := range layers {
		kind := "full_attention"
		if i%2 == 0 {
			kind = "sliding_attention"
		}
		types = append(types, kind)
	}
	return types
}

// layersWhere is the indices below n whose entry satisfies the condition.
func layersWhere(list []any, n int, is func(any) bool) []int {
	var out []int
	for i, v := range list[:min(n, len(list))] {
		if is(v) {
			out = append(out, i)
		}
	}
	return out
}

// readState finds the layers that hold a state instead of KV, and its shape.
func (m *ModelConfig) readState(c *configJSON) {
	state, kv := m.stateLayers(c)
	if len(state) == 0 {
		return
	}
	m.StateLayers, m.KVLayers = state, kv
	m.State = stateShape(c, m)
	if bytes, ok := DtypeBytes(c.word("mamba_ssm_dtype")); ok {
		m.State.StateBytes = bytes
	} else {
		m.State.StateBytes = 4
	}
}

// stateLayers are the layers with a state and those with KV. In Falcon-H1 every layer has both.
func (m *ModelConfig) stateLayers(c *configJSON) (state, kv []int) {
	all := allLayers(m.Layers)
	if linear := c.section("linear_attn_config"); linear != nil { // Kimi Linear counts from 1
		for _, v := range linear.list("kda_layers") {
			if i, ok := whole(v, m.Layers); ok && i >= 1 {
				state = append(state, i-1)
			}
		}
		slices.Sort(state)
		state = slices.Compact(state)
		return state, without(all, state)
	}
	if strings.HasPrefix(m.Architecture, "FalconH1") {
		return all, all
	}
	if pattern := c.word("hybrid_override_pattern"); pattern != "" && len(c.list("layers_block_type")) == 0 { // NemotronH
		for i, kind := range []byte(pattern[:min(len(pattern), m.Layers)]) {
			switch kind {
			case 'M':
				state = append(state, i)
			case '*':
				kv = append(kv, i)
			}
		}
		return state, kv
	}
	if types := c.list("layer_types", "layers_block_type"); len(types) > 0 {
		state = layersWhere(types, m.Layers, isStateLayer)
		kv = layersWhere(types, m.Layers, isAttentionLayer)
		if len(state) > 0 {
			return state, kv
		}
		return nil, nil
	}
	if kinds := c.list("attn_type_list"); len(kinds) > 0 { // MiniMax: 0 is linear
		state = layersWhere(kinds, m.Layers, func(v any) bool { return v == 0.0 })
		return state, without(all, state)
	}
	return m.periodicStateLayers(c, all)
}

// periodicStateLayers handles configurations that give a period instead of a list.
func (m *ModelConfig) periodicStateLayers(c *configJSON, all []int) (state, kv []int) {
	every, offset := 0, 0
	switch {
	case c.hint(maxLayers, "attn_layer_period") > 0: // Jamba
		every, offset = c.hint(maxLayers, "attn_layer_period"), c.hint(maxLayers, "attn_layer_offset")
	case c.hint(maxLayers, "full_attention_interval") > 0: // Qwen3-Next: the last of each group
		every = c.hint(maxLayers, "full_attention_interval")
		offset = every - 1
	case c.word("model_type") == "qwen3_next":
		every, offset = 4, 3
	case c.hint(maxLayers, "layer_group_size") > 1 && strings.HasPrefix(m.Architecture, "Bailing"):
		every = c.hint(maxLayers, "layer_group_size")
		offset = every - 1
	default:
		return nil, nil
	}
	for i := range m.Layers {
		if i%every == offset%every {
			kv = append(kv, i)
		}
	}
	return without(all, kv), kv
}

func isStateLayer(v any) bool {
	switch v {
	case "linear_attention", "mamba", "mamba2", "conv", "short_conv", "jet", "recurrent", "lightning", "lightning-attn", "kda", "gdn":
		return true
	}
	return false
}

func isAttentionLayer(v any) bool {
	switch v {
	case "full_attention", "attention", "attn", "swa", "sliding_attention", "standard", "minicpm4":
		return true
	}
	return false
}

// stateShape reads the shape by the fields that are there; each family names them differently.
func stateShape(c *configJSON, m *ModelConfig) StateShape {
	n := func(names ...string) int { return c.hint(maxWidth, names...) }
	if linear := c.section("linear_attn_config"); linear != nil {
		heads, dim := linear.hint(maxWidth, "num_heads"), linear.hint(maxWidth, "head_dim")
		return StateShape{Conv: 3 * heads * dim, ConvKernel: linear.hint(64, "short_conv_kernel_size"), Heads: heads, HeadDim: dim, StateSize: dim}
	}
	switch {
	case n("linear_num_value_heads") > 0 || c.word("model_type") == "qwen3_next": // gated delta net
		or := func(v, other int) int {
			if v > 0 {
				return v
			}
			return other
		}
		heads, dim, key := or(n("linear_num_value_heads"), 32), or(n("linear_value_head_dim"), 128), or(n("linear_key_head_dim"), 128)
		return StateShape{
			Conv: heads * dim, GroupCount: or(n("linear_num_key_heads"), 16), ConvGroups: key, ConvKernel: or(n("linear_conv_kernel_dim"), 4),
			Heads: heads, HeadDim: dim, StateSize: key,
		}
	case n("mamba_num_heads") > 0: // NemotronH
		inner := n("mamba_num_heads") * n("mamba_head_dim")
		return StateShape{
			Conv: inner, GroupCount: max(1, n("n_groups")), ConvGroups: n("ssm_state_size"), ConvKernel: n("conv_kernel"),
			Heads: n("mamba_num_heads"), HeadDim: n("mamba_head_dim"), StateSize: n("ssm_state_size"),
		}
	case n("mamba_n_heads") > 0: // Falcon-H1, Granite
		inner := n("mamba_d_ssm")
		if inner == 0 {
			inner = max(1, n("mamba_expand")) * m.Hidden
		}
		return StateShape{
			Conv: inner, GroupCount: max(1, n("mamba_n_groups")), ConvGroups: n("mamba_d_state"), ConvKernel: n("mamba_d_conv"),
			Heads: n("mamba_n_heads"), HeadDim: inner / n("mamba_n_heads"), StateSize: n("mamba_d_state"),
		}
	case n("mamba_d_state") > 0: // Jamba: Mamba 1
		inner := max(1, n("mamba_expand")) * m.Hidden
		return StateShape{Conv: inner, ConvKernel: n("mamba_d_conv"), Heads: inner, HeadDim: 1, StateSize: n("mamba_d_state")}
	case n("conv_L_cache") > 0: // LFM2: a short convolution only
		return StateShape{Conv: m.Hidden, ConvKernel: n("conv_L_cache")}
	case len(c.list("attn_type_list")) > 0 || strings.HasPrefix(m.Architecture, "Bailing"): // lightning attention
		return StateShape{Heads: m.Heads, HeadDim: m.HeadDim, StateSize: m.HeadDim}
	}
	return StateShape{unknownSize: true}
}

// skipShared lists the layers that reuse the top-k of an earlier one
// (configs/model_config.py, dsa_layer_skips_topk).
func (d *DSA) skipShared(c *configJSON, layers int) {
	if !d.On() || len(d.Skip) > 0 {
		return
	}
	period := max(1, c.hint(maxLayers, "cli_factor"))
	pattern := c.word("index_topk_pattern")
	freq := max(1, c.hint(maxLayers, "index_topk_freq"))
	offset := c.hint(maxLayers, "index_skip_topk_offset")
	if offset == 0 {
		offset = 2
	}
	for i := range layers {
		var skips bool
		switch {
		case period > 1:
			skips = i%period != 0
		case pattern != "":
			skips = i < len(pattern) && pattern[i] == 'S'
		default:
			skips = max(i-offset+1, 0)%freq != 0
		}
		if skips {
			d.Skip = append(d.Skip, i)
		}
	}
}
