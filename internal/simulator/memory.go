package simulator

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"sgtune/sglang"
)

const gib = 1 << 30

// Failure says why a launch ended by itself. Cause is a word of the failure vocabulary.
type Failure struct {
	Phase sglang.Phase
	Cause string
	At    float64 // simulated seconds from process start
	Rank  int     // the rank that failed first

	Before string // printed before the traceback, "" = nothing
	Text   string // last line of the traceback
}

// Error makes a Failure usable as an error.
func (f *Failure) Error() string { return fmt.Sprintf("%s in %s: %s", f.Cause, f.Phase, f.Text) }

// Budget is where the memory of one launch goes; figures of the smallest rank, GiB.
type Budget struct {
	BeforeLoadGiB, AfterLoadGiB  float64
	SlackGiB                     float64 // outside the static budget
	Tokens, HostTokens           int
	HostGB                       float64 // decimal GB a rank
	CellBytes                    int
	KVGiB, AfterPoolGiB          float64
	GraphGiB, AfterGraphGiB      float64
	MaxRunning, Chunk, GraphMax  int
	GraphSizes                   []int
	SpreadGiB                    []float64 // rank -> how much more free memory it has than the smallest
	Fraction                     float64
	Clamped                      []string // lines about clamped values
	kvDtype                      string
	tableGiB                     float64
	stagingGiB                   float64
	startFailure                 *Failure
	contextLen, maxPrefillTokens int
}

// KVDtype is the pool's element type as the log prints it.
func (b *Budget) KVDtype() string { return b.kvDtype }

// smallest is the rank with the least memory: spread 0.
func (b *Budget) smallest() int { return slices.Index(b.SpreadGiB, 0) }

// plan sizes one launch by SGLang's own arithmetic (sglang.KVTokens, sglang.HostPoolTokens) and
// records the failure a start would die of, host memory aside.
func (d *dialect) plan(p *Profile, s *Settings, seed uint64) Budget {
	b := Budget{
		BeforeLoadGiB: p.BeforeLoadGiB, AfterLoadGiB: p.AfterLoadGiB,
		Fraction: s.Fraction, Chunk: s.Chunk, contextLen: s.ContextLen, maxPrefillTokens: s.MaxPrefillTokens,
	}
	rng := rand.New(rand.NewPCG(seed, 0x5eed))
	b.SpreadGiB = make([]float64, s.TP)
	for i := range b.SpreadGiB {
		b.SpreadGiB[i] = 0.01 + rng.Float64()*p.SpreadGiB
	}
	b.SpreadGiB[rng.IntN(len(b.SpreadGiB))] = 0
	b.fraction(d, p, s)
	b.pool(d, p, s)
	if b.startFailure == nil {
		b.graphs(d, p, s)
		b.hostPool(s)
	}
	return b
}

// fraction resolves the automatic values of SGLang for this GPU size.
func (b *Budget) fraction(d *dialect, p *Profile, s *Settings) {
	if b.Chunk == 0 {
		b.Chunk = cmp.Or(p.AutoChunk, 8192)
	}
	b.GraphMax = s.GraphMaxBS
	if b.GraphMax == 0 {
		b.GraphMax = cmp.Or(p.AutoGraphBS, 512)
		if d.release <= r049 && p.AutoGraphBS == 0 {
			b.GraphMax = 160
		}
	}
	switch {
	case b.Fraction != 0:
	case d.release == r046: // GPUs of more than 80 and less than 96 GiB
		b.Fraction = 0.88
	default:
		reserved := 512 + 1.5*math.Max(float64(b.Chunk), 2048) + float64(s.TP)/8*1024 + 2*float64(b.GraphMax) + p.PrefillGraphMiB
		total := float64(p.GPUTotalMiB)
		if total > 60*1024 {
			reserved = math.Max(reserved, 10240)
		}
		b.Fraction = math.Round((total-reserved)/total*1000) / 1000
	}
	b.SlackGiB = b.BeforeLoadGiB * (1 - b.Fraction)
}

func (b *Budget) pool(d *dialect, p *Profile, s *Settings) {
	b.kvDtype = "torch.bfloat16"
	b.CellBytes = p.CellBytes
	switch s.KVDtype {
	case "fp8_e4m3":
		b.kvDtype, b.CellBytes = "torch.float8_e4m3fn", p.CellBytes/2
	case "fp8_e5m2":
		b.kvDtype, b.CellBytes = "torch.float8_e5m2", p.CellBytes/2
	}
	profiled := sglang.KVTokens(b.BeforeLoadGiB, b.AfterLoadGiB, b.Fraction, float64(b.CellBytes), s.PageSize)
	minimum := 1 - b.AfterLoadGiB/b.BeforeLoadGiB
	switch {
	case b.AfterLoadGiB-b.SlackGiB <= 0 && d.release >= r0523:
		b.startFailure = &Failure{Phase: sglang.PhaseKVPool, Cause: "kv_pool_nonpositive", Rank: b.smallest(), Text: fmt.Sprintf(
			"ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=%s. Raise --mem-fraction-static above %.3f (minimum viable = 1 - available/pre = %.4f). If using speculative decoding, draft weights are now counted.",
			pyFloat(b.Fraction), math.Ceil(minimum*1000)/1000, minimum)}
		return
	case profiled <= 0:
		b.startFailure = &Failure{Phase: sglang.PhaseKVPool, Cause: "kv_pool_nonpositive", Rank: b.smallest(), Text: d.fewTokens(b.Fraction)}
		return
	}
	b.Tokens = profiled
	if s.MaxTotalTokens > profiled {
		b.Clamped = append(b.Clamped, fmt.Sprintf("max_total_tokens=%d is larger than the profiled value %d. Use the profiled value instead.", s.MaxTotalTokens, profiled))
	} else if s.MaxTotalTokens > 0 {
		b.Tokens = s.MaxTotalTokens / s.PageSize * s.PageSize
	}
	b.KVGiB = float64(b.Tokens) * float64(b.CellBytes) / gib
	b.runningLimit(s)
	b.tableGiB = float64(b.MaxRunning) * float64(b.contextLen) * 4 / gib
	b.AfterPoolGiB = b.AfterLoadGiB - b.KVGiB - b.tableGiB - p.RuntimeGiB
}

// runningLimit is SGLang's default and clamp of --max-running-requests.
func (b *Budget) runningLimit(s *Settings) {
	b.MaxRunning = s.MaxRunning
	if b.MaxRunning == 0 {
		b.MaxRunning = min(max(b.Tokens*512/b.contextLen, 2048), 4096)
	}
	if got := min(b.MaxRunning, max(b.Tokens/2, 1)); got < b.MaxRunning {
		if s.MaxRunning > 0 {
			b.Clamped = append(b.Clamped, fmt.Sprintf("max_running_requests was reduced from the requested %d to %d (per dp worker) due to the available KV cache capacity.", b.MaxRunning, got))
		}
		b.MaxRunning = got
	}
	if s.MaxRunning > 0 {
		b.GraphMax = min(b.GraphMax, b.MaxRunning)
	}
}

func (b *Budget) graphs(d *dialect, p *Profile, s *Settings) {
	if s.DisableGraphs {
		b.GraphMax = 0
	} else {
		b.GraphSizes = graphSizes(b.GraphMax)
		b.GraphGiB = p.GraphBaseGiB + p.GraphPerBSGiB*float64(b.GraphMax)
	}
	b.AfterGraphGiB = b.AfterPoolGiB - b.GraphGiB
	if s.hicache() {
		b.stagingGiB = p.StagingGiB
	}
	if b.AfterGraphGiB < 0.05 {
		b.startFailure = &Failure{Phase: sglang.PhaseGraphCapture, Cause: "graph_capture_oom", Rank: b.smallest(), Text: d.graphFailed(
			oomText(p, b.smallest(), 0.4375, max(b.AfterGraphGiB+0.3, 0.05)))}
	}
}

// graphSizes is the batch sizes SGLang captures up to limit.
func graphSizes(limit int) []int {
	sizes := []int{1, 2, 4, 8, 12}
	for n := 16; n <= limit; {
		sizes = append(sizes, n)
		switch {
		case n < 256:
			n += 8
		case n < 512:
			n += 16
		default:
			n += 32
		}
	}
	sizes = slices.DeleteFunc(sizes, func(n int) bool { return n > limit })
	if len(sizes) == 0 || sizes[len(sizes)-1] != limit {
		sizes = append(sizes, limit)
	}
	return sizes
}

func (b *Budget) hostPool(s *Settings) {
	if !s.hicache() {
		return
	}
	if s.HicacheGB > 0 {
		b.HostTokens = sglang.HostPoolTokens(s.HicacheGB, float64(b.CellBytes), s.PageSize)
	} else {
		b.HostTokens = (int(float64(b.Tokens)*s.HicacheRatio)/s.PageSize + 1) * s.PageSize
	}
	b.HostGB = float64(b.HostTokens) * float64(b.CellBytes) / 1e9
}

// activationGiB is the peak of one prefill forward of n tokens.
func activationGiB(p *Profile, n int) float64 {
	x := float64(n)
	return p.ActBaseGiB*x/(x+256) + p.ActPer1kGiB*x/1024
}

// oomText is PyTorch's message; sizes in GiB.
func oomText(p *Profile, rank int, want, free float64) string {
	total := float64(p.GPUTotalMiB) / 1024
	return fmt.Sprintf("CUDA out of memory. Tried to allocate %s. GPU %d has a total capacity of %.2f GiB of which %s is free. "+
		"Including non-PyTorch memory, this process has %.2f GiB memory in use. Of the allocated memory %.2f GiB is allocated by PyTorch, "+
		"with 212.00 MiB allocated in private pools (e.g., CUDA Graphs), and 1.31 GiB is reserved by PyTorch but unallocated. "+
		"If reserved but unallocated memory is large try setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  "+
		"See documentation for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)",
		sizeText(want), rank, total, sizeText(free), total-free, total-free-3.84)
}

func sizeText(g float64) string {
	if g < 1 {
		return fmt.Sprintf("%.2f MiB", g*1024)
	}
	return fmt.Sprintf("%.2f GiB", g)
}
