package sglang

import (
	"fmt"
	"math"
	"slices"
)

// Cell is what one token of the KV pool costs on one rank, and the fixed state beside the pool.
// With pipeline stages it is the stage with the largest cell: tokens are the least over the stages.
type Cell struct {
	Bytes      float64   // what the memory budget is divided by to give max_total_num_tokens
	Pool       []float64 // bytes a token that the "KV Cache is allocated" line may show instead
	HostBytes  float64   // one token of the host pool that --hicache-size measures
	ExtraHost  float64   // one token of the index and draft host pools beside it
	DtypeBytes float64   // of one KV element
	Dtype      string    // resolved: "bfloat16", "fp8_e4m3", ...
	Kind       string    // the attention in words: "GQA", "MLA", ...
	Layers     int       // layers with KV on the rank
	Sliding    int       // of them with a sliding window and a pool of their own
	State      StateBudget
	ReserveGiB float64  // kept out of the budget for multimodal inputs
	Notes      []string // what is assumed
}

// StateBudget is the memory that linear-attention layers take from the KV pool's share
// (mem_cache/kv_cache_configurator.py, _handle_max_mamba_cache). The zero value takes nothing.
type StateBudget struct {
	SlotBytes   float64 // one state slot on one rank
	Slots       int     // fixed number, 0: by Ratio
	Ratio       float64 // state memory : KV memory
	Padding     int     // slots the pool adds
	PerRequest  int     // slots one running request needs
	DraftTokens int     // intermediate states a verified request needs
	MaxRunning  int     // requests those are kept for
}

// Cell is the cell of this model under a layout. An error says what the layout lacks, or that the
// arithmetic does not know the model.
func (m *ModelConfig) Cell(l Layout) (Cell, error) {
	if m.unsized != "" {
		return Cell{}, fmt.Errorf("%s: %s, which this arithmetic does not know; give a start-up log (--observed)", m.Name(), m.unsized)
	}
	dtype := m.kvDtype(l)
	bytes, ok := DtypeBytes(dtype)
	if !ok {
		return Cell{}, fmt.Errorf("kv-cache-dtype %q is not known (auto, bf16, fp8_e4m3, fp8_e5m2, mxfp8, nvfp4, ...)", dtype)
	}
	if len(m.StateLayers) > 0 && !m.State.Known() {
		return Cell{}, fmt.Errorf("%s: the size of its linear-attention state cannot be read from config.json; give a start-up log (--observed)", m.Name())
	}
	var widest Cell
	for rank := range max(1, l.PP) {
		start, end := l.stage(m.Layers, rank)
		c := m.stageCell(l, bytes, dtype, func(layer int) bool { return max(1, l.PP) == 1 || start <= layer && layer < end })
		if c.Bytes > widest.Bytes {
			widest = c
		}
	}
	if widest.Bytes <= 0 {
		return Cell{}, fmt.Errorf("%s: no layer has a KV cache; there is nothing to predict", m.Name())
	}
	widest.State = m.stateBudget(l)
	if m.Multimodal && l.Version.Compare(mem0523) >= 0 { // an unknown version keeps nothing
		widest.ReserveGiB = l.inputReserveGiB()
	}
	return widest, nil
}

// kvDtype resolves --kv-cache-dtype: "auto" is what the checkpoint's quantization asks for (since
// 0.5.6), else the dtype of the weights.
func (m *ModelConfig) kvDtype(l Layout) string {
	switch {
	case l.KVDtype != "" && l.KVDtype != "auto":
		return l.KVDtype
	case m.KVQuant != "" && l.since(mem0506):
		return m.KVQuant
	case m.Dtype == "float32": // SGLang loads float32 checkpoints in half precision
		return "bfloat16"
	}
	return m.Dtype
}

// stageCell is the cell of the layers that mine selects.
func (m *ModelConfig) stageCell(l Layout, bytes float64, dtype string, mine func(int) bool) Cell {
	count := func(layers []int) int {
		n := 0
		for _, i := range layers {
			if mine(i) {
				n++
			}
		}
		return n
	}
	c := Cell{DtypeBytes: bytes, Dtype: dtype, Layers: count(m.KVLayers)}
	switch {
	case m.MLA:
		m.latentCell(&c, l, mine)
	case len(m.Sliding) > 0 && l.since(m.SWASince) && !l.PlainSliding:
		m.slidingCell(&c, l, count(m.Sliding))
	default:
		m.headsCell(&c, l)
	}
	return c
}

// headsCell is multi-head and grouped-query attention: KV heads are split over the attention ranks.
func (m *ModelConfig) headsCell(c *Cell, l Layout) {
	c.Kind = "GQA"
	switch m.KVHeads {
	case m.Heads:
		c.Kind = "MHA"
	case 1:
		c.Kind = "MQA"
	}
	v := m.VHeadDim
	if !l.since(mem0509) {
		v = m.HeadDim // older versions count the key's width twice
	}
	c.Bytes = math.Trunc(CellBytesMHA(m.KVHeads, m.HeadDim, v, c.Layers, l.AttentionTP(), c.DtypeBytes))
	c.Pool = []float64{c.Bytes, math.Trunc(CellBytesMHA(m.KVHeads, m.HeadDim, m.VHeadDim, c.Layers, l.AttentionTP(), c.DtypeBytes))}
	c.HostBytes = c.Bytes
	m.addDraft(c, l, c.Bytes/float64(max(1, c.Layers)), 0)
}

// latentCell is MLA: each rank holds the whole latent row, and with sparse attention an index row.
func (m *ModelConfig) latentCell(c *Cell, l Layout, mine func(int) bool) {
	c.Kind = "MLA"
	elem := c.DtypeBytes
	if c.Dtype == "mxfp8" {
		elem = 1 // no scales beside latent rows
	}
	plain := float64(m.KVLoraRank+m.QKRopeHeadDim) * elem
	row, stored := plain, plain
	index, indexed := 0.0, 0
	if m.DSA.On() {
		c.Kind = "MLA with sparse attention"
		if c.Dtype == "fp8_e4m3" && !l.RawIndexRows { // scales, and the rope part in bf16
			stored = float64(m.KVLoraRank + m.KVLoraRank/128*4 + 2*m.QKRopeHeadDim)
			if l.since(mem0518) { // before, the budget was divided by the plain row
				row = stored
			}
		}
		layers := m.KVLayers
		if l.since(mem0523) || l.since(mem0520) && !l.Hicache {
			layers = without(layers, m.DSA.Skip)
		}
		for _, i := range layers {
			if mine(i) {
				indexed++
			}
		}
		index = float64(m.DSA.bytesPerLayer())
	}
	n := float64(c.Layers)
	c.Bytes = math.Trunc(row*n) + index*float64(indexed)
	c.Pool = []float64{c.Bytes, math.Trunc(plain * n), math.Trunc(stored * n), math.Trunc(stored*n) + index*n}
	c.HostBytes, c.ExtraHost = math.Trunc(stored*n), index*float64(indexed)
	if m.DSA.On() && !l.since(mem0512) { // one pool for both until then
		c.HostBytes, c.ExtraHost = c.HostBytes+index*n, 0
	}
	m.addDraft(c, l, row, index)
}

// slidingCell is a model with two pools: tokens are counted in the full one, the sliding one holds
// SlidingRatio of them (model_executor/pool_configurator.py, HybridSWAPoolConfigurator).
func (m *ModelConfig) slidingCell(c *Cell, l Layout, sliding int) {
	c.Kind, c.Sliding = "full and sliding-window attention", sliding
	tp := l.AttentionTP()
	full := CellBytesMHA(m.KVHeads, m.HeadDim, m.VHeadDim, 1, tp, c.DtypeBytes)
	window := CellBytesMHA(m.SWAKVHeads, m.SWAHeadDim, m.SWAVDim, 1, tp, c.DtypeBytes)
	nFull := float64(c.Layers - sliding)
	ratio := l.SlidingRatio
	if nFull == 0 { // only windows: nothing to relate to
		ratio = 1
	}
	c.Bytes = full*nFull + ratio*window*float64(sliding)
	c.HostBytes, c.ExtraHost = full*nFull, ratio*window*float64(sliding)
	if nFull == 0 {
		c.HostBytes, c.ExtraHost = c.Bytes, 0
	}
	m.addDraft(c, l, full, 0)
}

// drafts are the speculative algorithms with a draft model that keeps KV.
var drafts = []string{"EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "DFLASH", "DSPARK", "UNO"}

// addDraft grows the cell by the draft model's layers (since 0.5.15; before, the draft's pool came
// out of the memory outside the static budget). layer and index are one target layer's bytes.
func (m *ModelConfig) addDraft(c *Cell, l Layout, layer, index float64) {
	if !slices.Contains(drafts, l.Draft) {
		return
	}
	layers := l.DraftLayers
	if layers == 0 {
		layers = m.NextN
	}
	if layers == 0 {
		layers = 1
		c.Notes = append(c.Notes, "the draft model is taken for one layer like the model's own")
	}
	extra := math.Trunc(layer * float64(layers))
	extra += index * float64(layers)
	if l.since(mem0515) {
		c.Bytes += extra
	} else {
		c.Notes = append(c.Notes, "this version's draft pool comes out of the free memory after the pool")
	}
	if l.since(mem0512) {
		c.ExtraHost += extra
	}
}

// stateBudget is what the state layers take.
func (m *ModelConfig) stateBudget(l Layout) StateBudget {
	if len(m.StateLayers) == 0 {
		return StateBudget{}
	}
	most := 0 // the stage with most state layers decides for all
	for rank := range max(1, l.PP) {
		start, end := l.stage(m.Layers, rank)
		n := 0
		for _, i := range m.StateLayers {
			if start <= i && i < end {
				n++
			}
		}
		most = max(most, n)
	}
	dp := 1
	if l.DPAttention {
		dp = l.Pools()
	}
	s := StateBudget{
		SlotBytes: m.State.BytesPerLayer(l.AttentionTP(), l.StateBytes) * float64(most),
		Ratio:     l.StateRatio, Slots: l.StateSlots / dp, MaxRunning: l.MaxRunning / dp, PerRequest: 3,
	}
	switch {
	case l.NoRadix:
		s.PerRequest = 1
	case l.since(mem0520):
		s.PerRequest = 5 // with the extra buffer that newer versions choose
	}
	switch {
	case s.Slots > 0:
	case l.NoRadix && l.MaxRunning > 0:
		s.Slots = max(1, l.MaxRunning/dp)
	case !l.since(mem0503), l.NoRadix && !l.since(mem0509):
		s.Slots = 512
	}
	if l.since(mem0518) {
		s.Padding = 1
	}
	if l.Draft != "" {
		s.DraftTokens = l.DraftTokens
	}
	return s
}
