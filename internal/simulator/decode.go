package simulator

import (
	"math"
	"slices"
)

// advancePrefill books one request's share of a completed prefill step: its blocks join the tree, and
// after the last share the request has its next token and joins the running batch.
func (e *Engine) advancePrefill(pt part) {
	r := pt.r
	if r.Done {
		return
	}
	r.computed += pt.n
	e.share(r, r.Prompt.Blocks)
	if !pt.last {
		return
	}
	e.token(r)
	if r.Out >= r.MaxNew {
		e.finish(r)
		return
	}
	e.running = append(e.running, r)
}

// share moves complete blocks of a request's own tokens into the tree, where others find them.
func (e *Engine) share(r *Request, blocks []uint64) {
	if e.s.DisableRadix {
		return
	}
	for r.inserted < len(blocks) && (r.inserted+1)*blockTokens <= r.computed && r.private >= blockTokens {
		r.private -= blockTokens
		r.path = append(r.path, e.cache.insert(blocks[r.inserted]))
		r.inserted++
	}
}

// token gives a request one more output token.
func (e *Engine) token(r *Request) {
	r.Out++
	e.counters.OutputTokens++
	if r.Out == 1 {
		r.FirstAt = e.now
		e.counters.FirstTokens++
	} else {
		r.MaxGap = math.Max(r.MaxGap, e.now-r.LastAt)
	}
	r.LastAt = e.now
}

// decodeRunning gives every running request a token; those of a mixed step's own prefill parts got
// theirs already.
func (e *Engine) decodeRunning(parts []part) {
	isNew := func(r *Request) bool {
		return slices.ContainsFunc(parts, func(pt part) bool { return pt.r == r })
	}
	kept := e.running[:0]
	for _, r := range e.running {
		if parts == nil || !isNew(r) {
			if r.Out < r.MaxNew {
				if parts != nil && !e.cache.evict(1) {
					kept = append(kept, r)
					continue
				}
				r.computed++
				r.private++
				e.cache.private++
				e.token(r)
			}
		}
		if r.Out >= r.MaxNew {
			e.finish(r)
			continue
		}
		kept = append(kept, r)
	}
	clear(e.running[len(kept):])
	e.running = kept
}

// finish ends a request: its whole sequence becomes evictable cache, what does not fill a block is freed.
func (e *Engine) finish(r *Request) {
	if !e.s.DisableRadix && !r.Aborted {
		all := append(r.Prompt.Blocks[:len(r.Prompt.Blocks):len(r.Prompt.Blocks)], r.Prompt.outputBlocks(r.Out)...)
		e.share(r, all)
		if r.Prompt.Rest > 0 && len(r.path) > len(r.Prompt.Blocks) {
			e.cache.name(r.Prompt.Tail, r.path[len(r.Prompt.Blocks)])
		}
	}
	e.release(r)
	r.Done = true
	e.pace.demand -= r.Prompt.Len + r.MaxNew
	e.counters.Finished++
	e.finished = append(e.finished, r)
}

// release gives back all memory of a request.
func (e *Engine) release(r *Request) {
	e.pace.release(r)
	e.cache.private -= r.private
	r.private = 0
	e.cache.unlock(r.path)
	r.path, r.inserted, r.computed = r.path[:0], 0, 0
}

// raise is the share of SGLang's own estimate by which a retraction lifts the ratio: the pacer does
// the rest of the damping.
const raise = 0.1

// makeRoomForDecode evicts for one token a running request and, when that is not enough, throws
// requests out of the batch, the youngest first, until retractSteps steps fit (SGLang's retract_decode).
func (e *Engine) makeRoomForDecode() {
	if e.cache.evict(len(e.running)) {
		return
	}
	before, freed, n := e.ratio.value, e.cache.freeTokens()+e.cache.evictable(), 0
	for len(e.running) > 1 && !e.cache.evict(len(e.running)*retractSteps) {
		e.retractOne()
		n++
	}
	if len(e.running) == 1 && !e.cache.evict(1) {
		e.retractOne() // alone and still too long: it is cut by max length before this can happen
		n++
	}
	if n == 0 {
		return
	}
	decoded, wanted := 0.0, 1.0
	for _, r := range e.running {
		decoded += float64(r.Out)
		wanted += float64(r.MaxNew)
	}
	e.ratio.value = math.Min(math.Max(raise*(decoded+retractSteps*float64(len(e.running)))/wanted, e.ratio.value), 1)
	e.counters.Retractions++
	e.counters.RetractedRequests += n
	if e.observer != nil {
		e.observer.Retracted(Retraction{
			At: e.now, Requests: n, Gained: e.cache.freeTokens() + e.cache.evictable() - freed,
			RatioFrom: before, RatioTo: e.ratio.value,
		})
	}
}

// retractOne sends the running request with the shortest answer back to the queue. What it generated
// stays part of its context and is computed again; its prompt usually is still cached.
func (e *Engine) retractOne() {
	if len(e.running) == 0 {
		return
	}
	k := 0
	for i, r := range e.running {
		if r.Out < e.running[k].Out || r.Out == e.running[k].Out && r.Prompt.Len > e.running[k].Prompt.Len {
			k = i
		}
	}
	r := e.running[k]
	e.running = slices.Delete(e.running, k, k+1)
	e.release(r)
	r.Retracted++
	e.waiting = slices.Insert(e.waiting, 0, r)
}

// Abort ends every request that keep rejects: waiting ones at once, running ones too.
func (e *Engine) abort(match func(*Request) bool) {
	end := func(list []*Request) []*Request {
		return slices.DeleteFunc(list, func(r *Request) bool {
			if !match(r) {
				return false
			}
			r.Aborted = true
			e.finish(r)
			return true
		})
	}
	e.waiting = end(e.waiting)
	e.running = end(e.running)
	if r := e.chunked; r != nil && match(r) {
		e.chunked = nil
		e.step.parts = slices.DeleteFunc(e.step.parts, func(pt part) bool { return pt.r == r })
		r.Aborted = true
		e.finish(r)
	}
	for _, pt := range e.step.parts {
		if match(pt.r) && !pt.r.Done {
			pt.r.Aborted = true
			e.finish(pt.r)
		}
	}
}
