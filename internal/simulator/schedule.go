package simulator

import (
	"cmp"
	"math"
	"slices"
)

// clipNewTokens is SGLang's CLIP_MAX_NEW_TOKENS: no request reserves more than this for its output.
const clipNewTokens = 4096

// retractSteps is how many decode steps a retraction must make room for.
const retractSteps = 20

// newTokenRatio is the share of the remaining output that admission reserves for each running request:
// it starts at 0.7 x conservativeness, decays over 600 decode steps to a floor, and is raised by a
// retraction. SGLang's floor is 0.14 of the start; 0.06 is used here because the founding machine really
// ran about tokens / mean resident length requests at once.
type newTokenRatio struct{ value, start, floor, step float64 }

func ratioFor(conservativeness float64) newTokenRatio {
	start := math.Min(0.7*conservativeness, 1)
	floor := start * 0.06
	return newTokenRatio{value: start, start: start, floor: floor, step: (start - floor) / 600}
}

func (r *newTokenRatio) decay() { r.value = math.Max(r.value-r.step, r.floor) }
func (r *newTokenRatio) reset() { r.value = r.start }

// context is the length of what must be in memory before the next token: prompt and answer so far.
func (r *Request) context() int { return r.Prompt.Len + r.Out }

// reserve is what a request may still need.
func (r *Request) reserve() float64 { return float64(min(r.MaxNew-r.Out, clipNewTokens)) }

// planPrefill fills e.step.parts with the next prefill batch; false when there is none.
func (e *Engine) planPrefill() bool {
	e.step.parts, e.step.cached = e.step.parts[:0], 0
	if e.chunked == nil && (len(e.waiting) == 0 || len(e.running) >= e.b.MaxRunning) {
		return false
	}
	budget := e.b.Chunk
	if budget < 0 {
		budget = max(e.b.maxPrefillTokens, e.b.contextLen)
	}
	room := e.room()
	if r := e.chunked; r != nil {
		n := min(budget, r.context()-r.computed)
		for !e.allocate(r, n) {
			if len(e.running) == 0 {
				return false // cannot happen: Submit refuses what does not fit the pool alone
			}
			e.retractOne()
		}
		e.addPart(r, n)
		budget -= n
		room -= float64(n) + r.reserve()*e.ratio.value
	}
	if e.chunked == nil {
		e.order()
		e.admitWaiting(budget, room)
	}
	e.step.decodes = e.s.MixedChunk && len(e.running) > 0 && len(e.step.parts) > 0
	return len(e.step.parts) > 0
}

// room is what admission may hand out: free and evictable tokens less what running requests will need.
func (e *Engine) room() float64 {
	room := float64(e.cache.freeTokens() + e.cache.evictable())
	for _, r := range e.running {
		room -= r.reserve() * e.ratio.value
	}
	return room
}

// order sorts the queue by the schedule policy; fcfs and unknown policies keep arrival order, and so
// does lpm for a long queue, as in SGLang.
func (e *Engine) order() {
	if len(e.waiting) > 128 {
		return
	}
	switch e.s.Policy {
	case "lpm", "dfs-weight":
		for _, r := range e.waiting {
			d, h := e.cache.match(r.Prompt.Blocks)
			r.waitingFor = d + h
		}
		slices.SortStableFunc(e.waiting, func(a, b *Request) int { return cmp.Compare(b.waitingFor, a.waitingFor) })
	case "lof":
		slices.SortStableFunc(e.waiting, func(a, b *Request) int { return cmp.Compare(b.MaxNew, a.MaxNew) })
	case "shortest-prefill-first":
		slices.SortStableFunc(e.waiting, func(a, b *Request) int { return cmp.Compare(a.Prompt.Len, b.Prompt.Len) })
	}
}

// admitWaiting takes requests from the head of the queue until the batch, the pool or the chunk is
// full. Only the last one may be cut; it becomes e.chunked.
func (e *Engine) admitWaiting(budget int, room float64) {
	taken := 0
	for _, r := range e.waiting {
		if budget <= 0 || len(e.running)+len(e.step.parts) >= e.b.MaxRunning {
			break
		}
		blocks, hostTokens, alias := e.lookUp(r)
		extend := r.context() - blocks*blockTokens - alias
		shared := e.cache.unlockedIn(r.Prompt.Blocks, blocks)
		need := float64(extend+alias+hostTokens) + r.reserve()*e.ratio.value
		if need >= room-float64(shared) || !e.pace.allows(r, blocks*blockTokens-shared, e) {
			// An empty server must take it however tight: it would wait for ever.
			if len(e.running)+len(e.step.parts) > 0 || e.chunked != nil {
				break
			}
		}
		if e.lockPrefix(r, blocks); r.inserted < blocks {
			alias = 0
		}
		extend = r.context() - r.computed - alias
		n := min(extend, budget)
		if !e.allocate(r, n+alias) {
			e.release(r)
			break
		}
		r.computed += alias
		cached := r.computed
		if r.Cached < 0 {
			r.Cached, r.AdmittedAt = cached, e.now
			r.FromHost = r.loaded
			e.counters.PromptTokens += r.Prompt.Len
			e.counters.CachedTokens += cached
		}
		e.step.cached += cached
		taken++
		e.pace.admit(r, blocks*blockTokens-shared, e)
		e.addPart(r, n)
		budget -= n
		room -= need + float64(shared)
		if n < extend {
			e.chunked = r
			break
		}
	}
	e.waiting = append(e.waiting[:0], e.waiting[taken:]...)
}

// lookUp finds what the cache has of a request's prompt: usable whole blocks, how many of their
// tokens are on the host only, and how many tokens of the remainder (at least one token of the prompt is always computed).
func (e *Engine) lookUp(r *Request) (blocks, hostTokens, alias int) {
	if e.s.DisableRadix {
		return 0, 0, 0
	}
	device, host := e.cache.matchPrompt(&r.Prompt)
	blocks = device + host
	if blocks > len(r.Prompt.Blocks) {
		blocks = len(r.Prompt.Blocks)
		alias = r.Prompt.Rest
	}
	if r.Out == 0 && blocks*blockTokens+alias >= r.Prompt.Len {
		if alias > 0 {
			alias--
		} else {
			blocks--
			alias = blockTokens - 1
		}
	}
	return blocks, max(min(device+host, blocks)-device, 0) * blockTokens, alias
}

// lockPrefix pins the first cached blocks of a request and loads the host's ones back as far as
// there is room.
func (e *Engine) lockPrefix(r *Request, blocks int) {
	r.path, r.inserted, r.computed, r.loaded = r.path[:0], 0, 0, 0
	for _, h := range r.Prompt.Blocks[:blocks] {
		i := e.cache.index[h]
		if i == 0 || e.cache.nodes[i].tier&onDevice == 0 {
			break
		}
		e.cache.lock(i)
		r.path = append(r.path, i)
	}
	for _, h := range r.Prompt.Blocks[len(r.path):blocks] {
		i := e.cache.index[h]
		if i == 0 || !e.cache.evict(blockTokens) {
			break
		}
		e.cache.loadBack(i)
		r.path = append(r.path, i)
		e.pending += blockTokens
		e.counters.HostTokens += blockTokens
		r.loaded += blockTokens
	}
	r.inserted = len(r.path)
	r.computed = r.inserted * blockTokens
}

// allocate gives a request n private tokens.
func (e *Engine) allocate(r *Request, n int) bool {
	if !e.cache.evict(n) {
		return false
	}
	r.private += n
	e.cache.private += n
	return true
}

func (e *Engine) addPart(r *Request, n int) {
	last := r.computed+n >= r.context()
	e.step.parts = append(e.step.parts, part{r: r, n: n, last: last})
	if last && e.chunked == r {
		e.chunked = nil
	}
}
