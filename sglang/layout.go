package sglang

import "strings"

// Defaults of SGLang's flags that size memory (0.5.23; unchanged since they exist).
const (
	defaultSlidingRatio = 0.8
	defaultStateRatio   = 0.9
	// indexPage is the page size that sparse attention forces on NVIDIA GPUs
	// (mem_cache/memory_pool.py, DSATokenToKVPool).
	indexPage = 64
)

// Layout is how one launch spreads a model over ranks and memory: the flags that decide the size of a
// token. Use LayoutOf to fill it.
type Layout struct {
	Version     Version // zero means as the newest version known
	TP, PP, DP  int
	DPAttention bool // data-parallel attention: each of DP groups has its own KV pool
	Nodes       int
	KVDtype     string // as passed: "auto", "bf16", "fp8_e4m3", ...
	PageSize    int
	Context     int // 0: the model's own
	MaxRunning  int // 0: SGLang's default
	Hicache     bool
	NoRadix     bool

	SlidingRatio float64 // --swa-full-tokens-ratio
	PlainSliding bool    // --disable-hybrid-swa-memory: all layers keep every token
	StateRatio   float64 // --mamba-full-memory-ratio
	StateSlots   int     // --max-mamba-cache-size, 0: by ratio
	StateBytes   float64 // bytes of a state element (--mamba-ssm-dtype), 0: as the model says

	GPUInputs    bool   // multimodal features travel by CUDA IPC (--mm-feature-transport)
	RawIndexRows bool   // attention backends that keep fp8 latent rows without scales
	Draft        string // speculative algorithm, upper case, "" when none
	DraftLayers  int    // KV layers of the draft model, 0: as the model's own draft head, else 1
	DraftTokens  int    // --speculative-num-draft-tokens
}

// LayoutOf reads a launch's flags, by SGLang's own names without dashes in front.
func LayoutOf(cfg Config, v Version) Layout {
	n := func(fallback int, names ...string) int {
		for _, name := range names {
			if f, ok := cfg.Float(name); ok && f >= 1 && f <= maxVocab {
				return int(f)
			}
		}
		return fallback
	}
	on := func(name string) bool { b, _ := cfg[name].(bool); return b }
	word := func(name string) string { s, _ := cfg[name].(string); return s }
	ratio := func(name string, fallback float64) float64 {
		if f, ok := cfg.Float(name); ok && f > 0 {
			return f
		}
		return fallback
	}
	l := Layout{
		Version: v, TP: n(1, "tp-size", "tensor-parallel-size"), PP: n(1, "pp-size", "pipeline-parallel-size"),
		DP: n(1, "dp-size", "data-parallel-size"), DPAttention: on("enable-dp-attention"), Nodes: n(1, "nnodes"),
		KVDtype: word("kv-cache-dtype"), PageSize: n(1, "page-size"), Context: n(0, "context-length"), MaxRunning: n(0, "max-running-requests"),
		NoRadix: on("disable-radix-cache"), Hicache: on("enable-hierarchical-cache") || hicacheGB(cfg) > 0,
		SlidingRatio: ratio("swa-full-tokens-ratio", defaultSlidingRatio), PlainSliding: on("disable-hybrid-swa-memory"),
		StateRatio: ratio("mamba-full-memory-ratio", defaultStateRatio), StateSlots: n(0, "max-mamba-cache-size"),
		Draft: strings.ToUpper(word("speculative-algorithm")), DraftTokens: n(0, "speculative-num-draft-tokens"),
	}
	if size := n(1, "attn-dp-size"); size > 1 { // 0.5.23's name for data-parallel attention
		l.DP, l.DPAttention = size, true
	}
	transport := word("mm-feature-transport")
	l.GPUInputs = transport == "cuda_ipc" || transport == "cuda_vmm"
	l.StateBytes, _ = DtypeBytes(word("mamba-ssm-dtype"))
	for _, name := range []string{"dsa-prefill-backend", "dsa-decode-backend", "nsa-prefill-backend", "nsa-decode-backend"} {
		if b := word(name); b == "trtllm" || b == "tilelang" {
			l.RawIndexRows = true
		}
	}
	return l
}

// inputReserveGiB is what 0.5.23 keeps for a multimodal model: a cache of 100 MiB for embeddings, and
// 1 GiB for features that are handed over on the GPU (mem_cache/kv_cache_configurator.py,
// mm_runtime_reservation_gb).
func (l Layout) inputReserveGiB() float64 {
	if l.GPUInputs {
		return (100 + 1024) / 1024.0
	}
	return 100 / 1024.0
}

// AttentionTP is the number of ranks over which KV heads are split.
func (l Layout) AttentionTP() int {
	if l.DPAttention {
		return max(1, l.TP/max(1, l.DP))
	}
	return max(1, l.TP)
}

// Ranks is the number of GPU processes of the whole launch.
func (l Layout) Ranks() int {
	ranks := max(1, l.TP) * max(1, l.PP)
	if !l.DPAttention {
		ranks *= max(1, l.DP)
	}
	return ranks
}

// RanksPerHost is the number of GPU processes on each host.
func (l Layout) RanksPerHost() int { return max(1, l.Ranks()/max(1, l.Nodes)) }

// Pools is the number of separate KV pools: data-parallel groups hold different requests.
func (l Layout) Pools() int { return max(1, l.DP) }

// since reports whether the launch's version is v or newer; an unknown one counts as the newest.
func (l Layout) since(v Version) bool { return l.Version == Version{} || l.Version.Compare(v) >= 0 }

// stage is the layers [start, end) of one pipeline stage: even shares, the last stages one more
// (distributed/utils.py, get_pp_indices).
func (l Layout) stage(layers, rank int) (start, end int) {
	pp := max(1, l.PP)
	base, more := layers/pp, layers%pp
	for i := range rank + 1 {
		start = end
		end += base
		if i >= pp-more {
			end++
		}
	}
	return start, end
}

// ForcedPage is the page size in force: sparse attention has pages of 64 on NVIDIA GPUs, whatever was
// asked for.
func (m *ModelConfig) ForcedPage(l Layout) int {
	if m.DSA.On() && l.PageSize <= 1 {
		return indexPage
	}
	return max(1, l.PageSize)
}
