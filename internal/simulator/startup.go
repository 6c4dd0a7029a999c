package simulator

import (
	"fmt"

	"sgtune/sglang"
)

// mark is what happens besides printing at a moment of the start.
type mark uint8

const (
	markNone      mark = iota
	markHostCheck      // SGLang compares the host pool with free host memory
	markPinned         // the host pool is in place
	markBind           // the HTTP port opens
	markReady
	markFail // the start dies here of entry.failure
	markHang // the start stands still here for ever
)

// entry is one moment of a start.
type entry struct {
	at      float64               // simulated seconds from process start
	text    string                // raw text: whole lines without time, or a piece of a progress bar
	raw     bool                  // text is printed as it is
	rank0   bool                  // text is rank 0's line
	perRank func(rank int) string // a line of every rank instead of text
	freeGiB float64               // free memory of the smallest rank from here on, 0 = unchanged
	hostGB  float64               // pinned host memory of all ranks from here on, 0 = unchanged
	mark    mark
	failure *Failure
}

// start is the whole start-up as data: tests read it, the server plays it.
type start struct {
	entries []entry
	ready   float64
}

// shares of the start-up time at which things happen (a real start of the founding machine: most of it is loading weights).
const (
	atArgs, atTemplate, atInit, atInitEnd = 0.002, 0.008, 0.020, 0.028
	atLoad, atLoaded, atPool              = 0.030, 0.860, 0.863
	atCapture, atCaptured, atCapacity     = 0.865, 0.935, 0.937
	atTree, atHTTP                        = 0.940, 0.950
)

// builder appends entries with the clock of one start.
type builder struct {
	l     *launch
	out   []entry
	s     float64 // start-up time without extras
	extra float64 // added so far: slow load, host pool
}

func (b *builder) at(share float64) float64 { return share*b.s + b.extra }

func (b *builder) add(share float64, e entry) {
	e.at = b.at(share)
	b.out = append(b.out, e)
}

func (b *builder) line(share float64, format string, a ...any) {
	b.add(share, entry{text: fmt.Sprintf(format, a...)})
}

func (b *builder) rank0(share float64, format string, a ...any) {
	b.add(share, entry{text: fmt.Sprintf(format, a...), rank0: true})
}

// each prints a line for every rank; freeGiB (of the smallest rank) is booked with it when above 0.
func (b *builder) each(share, freeGiB float64, f func(rank int) string) {
	b.add(share, entry{perRank: f, freeGiB: freeGiB})
}

// timeline lays out the start: what the log says when, how memory moves, and where it dies.
func (l *launch) timeline() start {
	b := &builder{l: l, s: l.s.Sim.StartupS}
	b.line(atArgs, "%s", l.serverArgs())
	if l.d.release > r046 {
		b.line(atTemplate, "Using default HuggingFace chat template with detected content format: string")
	}
	b.dist()
	if b.weights() && b.pools() && b.capture() {
		b.capacity()
		b.hostPool()
		b.http()
	}
	return start{entries: b.out, ready: b.at(1)}
}

func (b *builder) dist() {
	m, p := &b.l.b, &b.l.p
	total := float64(p.GPUTotalMiB) / 1024
	what := "torch distributed"
	if b.l.d.release >= r0523 {
		what = "parallel"
	}
	b.each(atInit, total-0.4, func(int) string { return "Init " + what + " begin." })
	b.add(atInit+0.003, entry{text: "sglang is using nccl==2.27.3", rank0: true})
	b.each(atInitEnd, 0, func(r int) string {
		elapsed := fmt.Sprintf("elapsed=%.2f s", (atInitEnd-atInit)*b.s+0.01*float64(r))
		switch {
		case b.l.d.release < r0510:
			return "Init torch distributed ends. mem usage=0.73 GB"
		case b.l.d.release == r0510:
			return "Init torch distributed ends. " + elapsed + ", mem usage=0.73 GB"
		}
		return "Init parallel ends. " + elapsed
	})
	if b.l.d.release >= r0523 {
		b.each(atInitEnd+0.0005, 0, func(int) string { return "Memory baseline taken. mem usage=0.73 GB" })
	}
	b.each(atLoad, m.BeforeLoadGiB, func(r int) string {
		return fmt.Sprintf("Load weight begin. avail mem=%.2f GB", m.BeforeLoadGiB+m.SpreadGiB[r])
	})
}

func (b *builder) weights() bool {
	m, p, f := &b.l.b, &b.l.p, &b.l.s.Sim.Faults
	span := (atLoaded-atLoad)*b.s + f.SlowLoadS
	per := span / float64(p.Shards)
	for i := 0; i <= p.Shards; i++ {
		bar := fmt.Sprintf("Loading safetensors checkpoint shards: %3d%% Completed | %d/%d [%s<%s, %5.2fs/it]",
			i*100/p.Shards, i, p.Shards, clockText(per*float64(i)), clockText(per*float64(p.Shards-i)), per)
		if i > 0 {
			bar = "\r" + bar
		}
		if i == p.Shards || b.l.d.release < r0510 { // older bars have a line for each step
			bar += "\n"
		}
		done := float64(i) / float64(p.Shards)
		b.out = append(b.out, entry{
			at: b.at(atLoad) + span*done*0.995, text: bar, raw: true,
			freeGiB: m.BeforeLoadGiB - (m.BeforeLoadGiB-m.AfterLoadGiB)*done,
		})
		if f.LoadHang && i == p.Shards/2 {
			b.out = append(b.out, entry{at: b.at(atLoad) + span*done, mark: markHang})
			return false
		}
		if f.LoadOOM && i == p.Shards*6/10 {
			free := 0.21
			b.out = append(b.out, entry{at: b.at(atLoad) + span*done, mark: markFail, failure: &Failure{
				Phase: sglang.PhaseWeightLoad, Cause: "weights_too_big", Rank: m.smallest(),
				Text: "torch.OutOfMemoryError: " + oomText(p, m.smallest(), 0.4375, free),
			}})
			return false
		}
	}
	b.extra += f.SlowLoadS
	b.each(atLoaded, m.AfterLoadGiB, func(r int) string {
		what := fmt.Sprintf("elapsed=%.2f s, type=%s", span+0.05*float64(r), p.Model)
		if b.l.d.release < r0510 {
			what = fmt.Sprintf("type=%s, dtype=torch.bfloat16", p.Model)
		}
		return fmt.Sprintf("Load weight end. %s, avail mem=%.2f GB, mem usage=%.2f GB.", what, m.AfterLoadGiB+m.SpreadGiB[r], m.BeforeLoadGiB-m.AfterLoadGiB)
	})
	return true
}

// fail ends the timeline with the failure the budget foresaw.
func (b *builder) fail(share float64) bool {
	b.add(share, entry{mark: markFail, failure: b.l.b.startFailure})
	return false
}

func (b *builder) pools() bool {
	m := &b.l.b
	if m.startFailure != nil && m.startFailure.Phase == sglang.PhaseKVPool {
		return b.fail(atPool)
	}
	for _, text := range m.Clamped {
		b.each(atPool-0.001, 0, func(int) string { return text })
	}
	b.each(atPool, 0, func(int) string {
		dtype := "dtype: " + m.kvDtype + ", "
		if b.l.d.release < r0523 {
			dtype = ""
		}
		return fmt.Sprintf("KV Cache is allocated. %s#tokens: %d, KV size: %.2f GB", dtype, m.Tokens, m.KVGiB)
	})
	b.each(atPool+0.0005, m.AfterPoolGiB, func(r int) string {
		return fmt.Sprintf("Memory pool end. avail mem=%.2f GB", m.AfterPoolGiB+m.SpreadGiB[r])
	})
	return true
}

func (b *builder) capture() bool {
	m := &b.l.b
	if len(m.GraphSizes) == 0 {
		return true
	}
	sizes, newest := listText(m.GraphSizes), b.l.d.release >= r0523
	if newest {
		b.rank0(atCapture, "Disable prefill CUDA graph because cuda_graph_config resolved prefill.backend='disabled' (e.g. via --cuda-graph-backend-prefill=disabled or auto-disable rules).")
	}
	b.each(atCapture+0.0005, 0, func(r int) string {
		what := "cuda graph begin. This can take up to several minutes."
		if newest {
			what = "target decode CUDA graph begin. backend=full, num_tokens_per_req=1,"
		}
		return fmt.Sprintf("Capture %s avail mem=%.2f GB", what, m.AfterPoolGiB+m.SpreadGiB[r])
	})
	if !newest {
		b.rank0(atCapture+0.0007, "Capture cuda graph bs %s", sizes)
	}
	span := atCaptured - atCapture - 0.001
	if !b.graphBar(span) {
		return false
	}
	b.each(atCaptured, m.AfterGraphGiB, func(r int) string {
		elapsed, free := span*b.s+0.01*float64(r), m.AfterGraphGiB+m.SpreadGiB[r]
		if newest {
			return fmt.Sprintf("Capture target decode CUDA graph end. bs=%s, elapsed=%.2f s, mem usage=%.2f GB, avail mem=%.2f GB.", sizes, elapsed, m.GraphGiB, free)
		}
		return fmt.Sprintf("Capture cuda graph end. Time elapsed: %.2f s. mem usage=%.2f GB. avail mem=%.2f GB.", elapsed, m.GraphGiB, free)
	})
	return true
}

// graphBar is the progress bar of the capture, which takes span of the start; false when memory ran out in it.
func (b *builder) graphBar(span float64) bool {
	m := &b.l.b
	n := len(m.GraphSizes)
	sp := span * b.s / float64(n)
	for i := 0; i <= n; i++ {
		free := m.AfterPoolGiB - m.GraphGiB*float64(i)/float64(n)
		size := fmt.Sprintf("bs=%d ", m.GraphSizes[max(n-1-i, 0)])
		if b.l.d.release == r046 {
			size = ""
		}
		bar := fmt.Sprintf("Capturing batches (%savail_mem=%.2f GB): %3d%%|          | %d/%d [%s<%s, %5.2fs/it]",
			size, max(free, 0.05), i*100/n, i, n, clockText(sp*float64(i)), clockText(sp*float64(n-i)), sp)
		if i > 0 {
			bar = "\r" + bar
		}
		failed := m.startFailure != nil && (free < 0.3 || i == n)
		if i == n || failed {
			bar += "\n"
		}
		b.add(atCapture+0.001+span*float64(i)/float64(n)*0.99, entry{text: bar, raw: true, freeGiB: max(free, 0.05)})
		if failed {
			return b.fail(atCapture + 0.001 + span*float64(i)/float64(n)*0.99 + 0.0001)
		}
	}
	return true
}

func (b *builder) capacity() {
	m := &b.l.b
	newest := b.l.d.release >= r0523
	if m.Tokens < m.contextLen && newest {
		b.each(atCapacity-0.0005, 0, func(int) string {
			return fmt.Sprintf("KV pool holds %d tokens, fewer than --context-length %d. One full-length request cannot fit, so long requests will be refused or truncated at serving time. Lower --context-length, raise --mem-fraction-static, or free memory taken before the pool is sized.", m.Tokens, m.contextLen)
		})
	}
	free := fmt.Sprintf(", available_gpu_mem=%.2f GB", m.AfterGraphGiB+m.SpreadGiB[0])
	if b.l.d.release == r046 {
		free = ""
	}
	b.rank0(atCapacity, "max_total_num_tokens=%d, chunked_prefill_size=%d, max_prefill_tokens=%d, max_running_requests=%d, context_len=%d%s",
		m.Tokens, m.Chunk, m.maxPrefillTokens, m.MaxRunning, m.contextLen, free)
	if !b.l.s.DisableRadix && newest {
		b.each(atCapacity+0.0005, 0, func(int) string {
			return "Init Unified Radix Cache. Components: (<ComponentType.FULL: 0>,). Tree Core: RustUnifiedTreeCore"
		})
	}
}

// hostPool pins the host tier: a silent stretch that grows with its size.
func (b *builder) hostPool() {
	m, p, s := &b.l.b, &b.l.p, &b.l.s
	if !s.hicache() {
		if s.Sim.Faults.HostOOM {
			b.add(atTree, entry{mark: markFail, failure: kernelKill(sglang.PhaseHostPool)})
		}
		return
	}
	b.add(atTree-0.002, entry{mark: markHostCheck})
	if m.HostTokens < m.Tokens && b.l.d.release >= r0523 {
		b.each(atTree-0.0015, 0, func(int) string {
			return fmt.Sprintf("HiCache kv host pool (%d tokens) is smaller than the device pool (%d tokens);L2 cache effectiveness is reduced.", m.HostTokens, m.Tokens)
		})
	}
	b.each(atTree-0.001, 0, func(int) string { return b.l.d.hostPool(m.HostTokens, m.HostGB) })
	all := m.HostGB * float64(s.TP)
	span := all / p.PinGBs * b.s / p.StartupS
	const pieces = 8
	for i := 1; i <= pieces; i++ {
		b.out = append(b.out, entry{at: b.at(atTree) + span*float64(i)/pieces, hostGB: all * float64(i) / pieces})
		if s.Sim.Faults.HostOOM && i == pieces*3/4 {
			b.out = append(b.out, entry{at: b.at(atTree) + span*float64(i)/pieces, mark: markFail, failure: kernelKill(sglang.PhaseHostPool)})
			return
		}
	}
	b.extra += span
	b.add(atTree, entry{mark: markPinned})
}

// kernelKill is a scheduler that the kernel's OOM killer chose.
func kernelKill(phase sglang.Phase) *Failure {
	return &Failure{Phase: phase, Cause: "kernel_oom_kill", Rank: 5, Text: "killed by the kernel: out of host memory"}
}

func (b *builder) http() {
	if !b.l.s.DisableRadix && b.l.d.release >= r0523 {
		b.each(atTree+0.001, 0, func(int) string {
			return fmt.Sprintf("Tree cache initialized: source=default impl=UnifiedRadixCache hybrid_swa=False hybrid_ssm=False hicache_attached=%s", pyBool(b.l.s.hicache()))
		})
	}
	if b.l.d.release >= r0523 {
		b.timings()
	}
	b.add(atHTTP, entry{mark: markBind})
	b.add(1, entry{mark: markReady})
}

func (b *builder) timings() {
	b.line(atHTTP-0.001, "Engine startup timings (s): load_weight=%.2f, kv_cache_allocation=1.31, scheduler_e2e=%.2f, cuda_graph={prefill=0.00, decode=%.2f, target_verify=0.00, draft_prefill=0.00, draft_decode=0.00, draft_extend=0.00}, tokenizer_e2e=14.21",
		(atLoaded-atLoad)*b.s+b.l.s.Sim.Faults.SlowLoadS, b.at(atHTTP), (atCaptured-atCapture)*b.s)
}

func pyBool(v bool) string {
	if v {
		return "True"
	}
	return "False"
}

// clockText is a progress bar's mm:ss.
func clockText(s float64) string { return fmt.Sprintf("%02d:%02d", int(s)/60, int(s)%60) }
