package simulator

import (
	"fmt"
	"math"
	"slices"
)

// Profile is one simulated machine and model: what never changes between launches. Memory is in
// GiB a rank unless a name says otherwise, times are in milliseconds unless they end in S.
type Profile struct {
	Name        string
	Model       string // class name in the "Load weight end" line
	Ranks       int    // tensor-parallel size the memory figures hold for
	GPUTotalMiB int
	ContextLen  int
	Vocab       int
	CellBytes   int // bytes of one KV token a rank at bf16
	Shards      int // checkpoint files

	AutoChunk, AutoGraphBS int // SGLang's automatic values on such a GPU, 0 = 8192 and 512

	// BeforeLoadGiB and AfterLoadGiB are T and A of the memory formula: free memory of the smallest
	// rank before and after the weights.
	BeforeLoadGiB, AfterLoadGiB float64
	// What the static budget does not contain: runtime buffers beside the pool, CUDA graphs
	// (base + per captured batch size), the request table (running x context x 4 bytes).
	RuntimeGiB, GraphBaseGiB, GraphPerBSGiB float64
	PrefillGraphMiB                         float64 // what the automatic fraction sets aside for prefill graphs
	// A prefill of n tokens needs ActBaseGiB (saturating) + n/1024 x ActPer1kGiB.
	ActBaseGiB, ActPer1kGiB float64
	// Fragmentation approaches FragGiB with time constant FragTauS of busy time; hicache keeps staging buffers.
	FragGiB, FragTauS, StagingGiB float64
	SpreadGiB                     float64 // the other ranks have up to this much more free memory

	DecodeTable              [][2]float64 // batch size, ms of one decode step
	DecodeCtxMS, DecodeCtx0  float64      // ms per request and 1000 tokens of context above DecodeCtx0
	CPUMS                    float64      // scheduler time of a step
	EagerMul, EagerMS        float64      // decode batches above the largest captured graph
	PrefillMSTok, ChunkFixMS float64      // ms a token, ms a prefill step (kernel launches, small batches)
	HostGBs                  float64      // host link of one rank, 10^9 bytes/s, at page size 1
	LoadOverlap, WriteShare  float64      // share of a load back, of a write through, that delays a step
	NoiseRun, NoiseStep      float64      // relative standard deviations

	StartupS  float64 // launch to ready without a host pool
	PinGBs    float64 // host pages pinned a second, all ranks together, at StartupS
	RuntimeGB float64 // host memory of one rank beside the pools, 10^9 bytes
}

// kimi8x96 is the founding machine: Kimi-K2.5 INT4, MLA, 8 GPUs of 96 GB. T, A and the 5.81 GiB of
// graphs and runtime (2.00 request table + 0.25 + 0.488 + 512 x 0.006) reproduce the observed tokens and
// free memory; the decode table is scaled so that the founding workload lies inside the observed
// bands (about 45 running: 600-850 tok/s, about 145 running: 1,300-1,450 tok/s). The rest is assumed.
var kimi8x96 = Profile{
	Name: "kimi-8x96", Model: "KimiK25ForConditionalGeneration", Ranks: 8, GPUTotalMiB: 97871,
	ContextLen: 262144, Vocab: 163840, CellBytes: 70272, Shards: 64,
	BeforeLoadGiB: 94.037, AfterLoadGiB: 21.7085,
	RuntimeGiB: 0.25, GraphBaseGiB: 0.488, GraphPerBSGiB: 0.006, PrefillGraphMiB: 1536,
	ActBaseGiB: 0.5, ActPer1kGiB: 0.16, FragGiB: 0.22, FragTauS: 300, StagingGiB: 0.12, SpreadGiB: 0.05,
	DecodeTable: [][2]float64{{1, 10.7}, {8, 22}, {32, 45}, {64, 62}, {128, 77}, {256, 108}},
	DecodeCtxMS: 0.062, DecodeCtx0: 2176, CPUMS: 2.5, EagerMul: 1.12, EagerMS: 14,
	PrefillMSTok: 0.21, ChunkFixMS: 69, HostGBs: 7.3, LoadOverlap: 0.5, WriteShare: 0.1,
	NoiseRun: 0.008, NoiseStep: 0.02,
	StartupS: 900, PinGBs: 1.5, RuntimeGB: 2,
}

// profiles are all simulated machines, the founding one first.
var profiles = []*Profile{&kimi8x96, &llama70b4x80, &llama8b1x24}

// Profiles lists the names Lookup knows.
func Profiles() []string {
	var names []string
	for _, p := range profiles {
		names = append(names, p.Name)
	}
	return names
}

// Lookup returns the profile of that name.
func Lookup(name string) (Profile, error) {
	for _, known := range profiles {
		if known.Name == name {
			p := *known
			p.DecodeTable = slices.Clone(p.DecodeTable)
			return p, nil
		}
	}
	return Profile{}, fmt.Errorf("no simulated profile %q; known: %v", name, Profiles())
}

// decodeMS is the time of one decode step of n requests whose contexts add up to ctx tokens.
func (p *Profile) decodeMS(n int, ctx float64, graphMaxBS int) float64 {
	x := float64(max(n, 1))
	t := interpLog(p.DecodeTable, x) + p.DecodeCtxMS*(ctx-x*p.DecodeCtx0)/1000
	t = max(t, 1)
	if n > graphMaxBS {
		t = t*p.EagerMul + p.EagerMS
	}
	return t + p.CPUMS*(1+x/220)
}

// prefillMS is the time of one prefill step of n new tokens that attend to ctx tokens on average.
func (p *Profile) prefillMS(n int, ctx float64) float64 {
	return p.ChunkFixMS + float64(n)*p.PrefillMSTok*(1+0.012*ctx/1000)
}

// interpLog is piecewise linear in log2(x), linear in x beyond the last point.
func interpLog(tab [][2]float64, x float64) float64 {
	if x <= tab[0][0] {
		return tab[0][1]
	}
	for i := 1; i < len(tab); i++ {
		if x <= tab[i][0] {
			a, b := tab[i-1], tab[i]
			return a[1] + (b[1]-a[1])*math.Log2(x/a[0])/math.Log2(b[0]/a[0])
		}
	}
	a, b := tab[len(tab)-2], tab[len(tab)-1]
	return b[1] + (b[1]-a[1])/(b[0]-a[0])*(x-b[0])
}
