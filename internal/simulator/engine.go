package simulator

import (
	"math"
	"math/rand/v2"

	"sgtune/sglang"
)

// Engine is the scheduler, the cache and the clock of one running server, in virtual time: one forward
// step after the other, each either a prefill or a decode, as SGLang's event loop does. It is driven
// from outside (Submit, Advance) and is not safe for concurrent use.
type Engine struct {
	p     *Profile
	s     *Settings
	b     *Budget
	rng   *rand.Rand
	now   float64 // end of the last completed step, or later when idle
	cache *radix

	waiting   []*Request
	running   []*Request
	chunked   *Request // the one request whose prompt is only partly computed
	step      step
	prefilled bool // the last step was a prefill

	ratio     newTokenRatio
	pace      pacer
	speed     float64 // this launch's own factor on step times
	frag      float64 // this launch's own factor on fragmentation
	busyS     float64
	peakAct   float64
	pending   int // tokens of loaded-back blocks whose cost falls on the next step
	failAfter float64
	extraMS   float64 // a fault's addition to each prefill step

	observer   Observer
	counters   Counters
	lastDecode struct {
		at     float64
		tokens int
		steps  int
	}
	genTokS  float64
	hitRate  float64 // of the last prefill step
	finished []*Request
	failure  *Failure
}

// Observer hears of batches as they complete; the server turns them into log lines.
type Observer interface {
	PrefillDone(PrefillBatch)
	DecodeDone(DecodeBatch)
	Retracted(Retraction)
}

// PrefillBatch is what a prefill line says.
type PrefillBatch struct {
	At                             float64
	Seqs, NewTokens, CachedTokens  int
	Running, Queued, PendingTokens int
	Usage, TokS                    float64
}

// DecodeBatch is what a decode line says.
type DecodeBatch struct {
	At                    float64
	Running, Queued, Used int
	Graph                 bool
	Usage, TokS           float64
}

// Retraction is what a retraction line says.
type Retraction struct {
	At                 float64
	Requests, Gained   int
	RatioFrom, RatioTo float64
}

// Counters add up over an engine's life.
type Counters struct {
	OutputTokens, PromptTokens, CachedTokens int
	HostTokens                               int // of CachedTokens, loaded back from the host tier
	Finished, Retractions, RetractedRequests int
	FirstTokens                              int // of OutputTokens, those that a prefill gave
	ComputedTokens                           int // by prefill steps, after a retraction once more
	PrefillSteps, DecodeSteps                int
	RunningS, UsedS, QueuedS                 float64 // integrals over time
}

type step struct {
	kind    stepKind
	end     float64
	started float64
	parts   []part
	cached  int
	decodes bool // a mixed step also decodes the running batch
}

type stepKind uint8

const (
	stepNone stepKind = iota
	stepPrefill
	stepDecode
)

// part is one request's share of a prefill step.
type part struct {
	r    *Request
	n    int
	last bool
}

// newEngine makes an idle engine at simulated time now.
func newEngine(p *Profile, s *Settings, b *Budget, seed uint64, now float64) *Engine {
	rng := rand.New(rand.NewPCG(seed, 0xE7617E))
	e := &Engine{
		p: p, s: s, b: b, rng: rng, now: now,
		cache:     newRadix(b.Tokens, b.HostTokens, s.WritePolicy == "write_through_selective"),
		ratio:     ratioFor(s.Conservativeness),
		speed:     math.Exp(rng.NormFloat64() * p.NoiseRun),
		frag:      math.Exp(rng.NormFloat64() * 0.12),
		failAfter: math.Inf(1),
	}
	return e
}

// Submit queues a request at its Arrival time; an idle clock moves up to it.
func (e *Engine) Submit(r *Request) {
	r.Cached = -1
	r.MaxNew = min(r.MaxNew, e.b.Tokens-r.Prompt.Len-2)
	if e.step.kind == stepNone && r.Arrival > e.now {
		e.integrate(r.Arrival)
		e.now = r.Arrival
	}
	e.waiting = append(e.waiting, r)
	e.pace.demand += r.Prompt.Len + r.MaxNew
}

// Advance completes every step that ends at or before to. It stops for good at a failure.
func (e *Engine) Advance(to float64) {
	for e.failure == nil {
		if e.step.kind != stepNone {
			if e.step.end > to {
				return
			}
			e.completeStep()
			continue
		}
		if !e.startStep() {
			if to > e.now && !math.IsInf(to, 1) {
				e.integrate(to)
				e.now = to
			}
			return
		}
	}
}

// NextEvent is when the running step ends, +Inf when idle.
func (e *Engine) NextEvent() float64 {
	if e.step.kind == stepNone {
		return math.Inf(1)
	}
	return e.step.end
}

// Idle reports that nothing runs and nothing waits.
func (e *Engine) Idle() bool {
	return len(e.waiting) == 0 && len(e.running) == 0 && e.chunked == nil && e.step.kind == stepNone
}

// Failed returns what ended the engine, nil while it lives.
func (e *Engine) Failed() *Failure { return e.failure }

// takeFinished returns the requests that ended since the last call.
func (e *Engine) takeFinished() []*Request {
	f := e.finished
	e.finished = nil
	return f
}

func (e *Engine) integrate(to float64) {
	dt := to - e.now
	e.counters.RunningS += dt * float64(len(e.running))
	e.counters.UsedS += dt * float64(e.cache.used())
	e.counters.QueuedS += dt * float64(len(e.waiting))
}

// startStep chooses the next forward: prefill whenever something can be admitted, else decode; between two
// prefill steps the running batch gets one decode step, so that a decode waits for one chunk at most.
// False means idle.
func (e *Engine) startStep() bool {
	if (!e.prefilled || len(e.running) == 0) && e.planPrefill() {
		e.begin(stepPrefill, e.prefillTime())
		return true
	}
	if len(e.running) == 0 {
		e.ratio.reset()
		return false
	}
	e.makeRoomForDecode()
	if len(e.running) == 0 {
		return len(e.waiting) > 0 && e.startStep()
	}
	e.begin(stepDecode, e.decodeTime())
	return true
}

func (e *Engine) begin(kind stepKind, ms float64) {
	d := ms / 1000 * e.speed * (1 + e.p.NoiseStep*(2*e.rng.Float64()-1)*1.73)
	e.prefilled = kind == stepPrefill
	e.step.kind, e.step.started, e.step.end = kind, e.now, e.now+d
}

func (e *Engine) prefillTime() float64 {
	n, ctx := 0, 0.0
	for _, pt := range e.step.parts {
		n += pt.n
		ctx += float64(pt.n) * (float64(pt.r.computed) + float64(pt.n)/2)
	}
	t := e.p.prefillMS(n, ctx/float64(max(n, 1))) + e.transferMS() + e.extraMS
	if e.s.MixedChunk && len(e.running) > 0 {
		t = t*1.06 + 0.55*e.decodeTime()
	}
	return t
}

func (e *Engine) decodeTime() float64 {
	ctx := 0
	for _, r := range e.running {
		ctx += r.computed
	}
	t := e.p.decodeMS(len(e.running), float64(ctx), e.b.GraphMax)
	if e.s.hicache() {
		t += 0.25
	}
	if e.s.Policy != "fcfs" {
		t += e.p.CPUMS * 0.25 * math.Min(1, float64(len(e.waiting))/128)
	}
	return t + e.transferMS()
}

// transferMS is the delay by host tier traffic since the last step.
func (e *Engine) transferMS() float64 {
	if e.b.HostTokens == 0 {
		return 0
	}
	perToken := float64(e.b.CellBytes) / (e.p.HostGBs * 1e9) * 1000
	t := float64(e.pending)*perToken*e.p.LoadOverlap + float64(e.cache.takeBackups())*perToken*e.p.WriteShare
	e.pending = 0
	return t
}

func (e *Engine) completeStep() {
	st := &e.step
	e.integrate(st.end)
	e.busyS += st.end - st.started
	e.now = st.end
	kind := st.kind
	st.kind = stepNone
	if kind == stepPrefill {
		e.completePrefill()
		return
	}
	e.completeDecode()
}

// completePrefill is where a launch with too little memory dies: the forward's activations on top of
// what fragmentation took. The allocator keeps its peak, so free memory never comes back.
func (e *Engine) completePrefill() {
	n := 0
	for _, pt := range e.step.parts {
		n += pt.n
	}
	need := activationGiB(e.p, n)
	free := e.b.AfterGraphGiB - e.b.stagingGiB - e.fragGiB()
	if need > free || (e.now >= e.failAfter) {
		e.failure = &Failure{
			Phase: sglang.PhasePrefill, Cause: "prefill_activation", At: e.now, Rank: e.b.smallest(),
			Text: "torch.OutOfMemoryError: " + oomText(e.p, e.b.smallest(), need, math.Max(math.Min(free, need-0.02), 0.02)),
		}
		return
	}
	e.peakAct = math.Max(e.peakAct, need)
	e.counters.ComputedTokens += n
	e.hitRate = float64(e.step.cached) / float64(max(e.step.cached+n, 1))
	e.counters.PrefillSteps++
	seqs := 0
	for _, pt := range e.step.parts {
		seqs++
		e.advancePrefill(pt)
	}
	if e.step.decodes {
		e.decodeRunning(e.step.parts)
	}
	if e.observer != nil {
		e.observer.PrefillDone(PrefillBatch{
			At: e.now, Seqs: seqs, NewTokens: n, CachedTokens: e.step.cached, Usage: e.usage(),
			Running: len(e.running) - seqs, Queued: len(e.waiting), PendingTokens: e.pendingTokens(),
			TokS: float64(n) / (e.step.end - e.step.started),
		})
	}
	e.step.parts = e.step.parts[:0]
}

func (e *Engine) pendingTokens() int {
	if e.chunked == nil {
		return 0
	}
	return e.chunked.context() - e.chunked.computed
}

func (e *Engine) completeDecode() {
	e.counters.DecodeSteps++
	e.ratio.decay()
	before := e.counters.OutputTokens
	n := len(e.running)
	e.decodeRunning(nil)
	e.lastDecode.steps++
	e.lastDecode.tokens += e.counters.OutputTokens - before
	if e.lastDecode.steps < e.s.DecodeLogInterval {
		return
	}
	if dt := e.now - e.lastDecode.at; dt > 0 {
		e.genTokS = float64(e.lastDecode.tokens) / dt
	}
	if e.observer != nil {
		e.observer.DecodeDone(DecodeBatch{
			At: e.now, Running: n, Queued: len(e.waiting), Used: e.cache.used(),
			Graph: n <= e.b.GraphMax, Usage: e.usage(), TokS: e.genTokS,
		})
	}
	e.lastDecode.at, e.lastDecode.tokens, e.lastDecode.steps = e.now, 0, 0
}

// usage is the share of the pool that running requests hold.
func (e *Engine) usage() float64 { return float64(e.cache.used()) / float64(e.cache.capacity) }

// fragGiB is what the allocator lost to fragmentation so far.
func (e *Engine) fragGiB() float64 {
	return e.p.FragGiB * e.frag * (1 - math.Exp(-e.busyS/e.p.FragTauS))
}

// freeGiB is the free memory of the smallest rank now: peaks stay reserved.
func (e *Engine) freeGiB() float64 {
	return math.Max(e.b.AfterGraphGiB-e.b.stagingGiB-e.peakAct-e.fragGiB(), 0)
}
