package simulator

import "math"

// pacer keeps admission at the rate that the pool can bear in the long run. It is the one place where
// the model leaves SGLang's scheduler: equal requests that arrive together would otherwise stay in
// lockstep for ever (all short, then all long, then retracted), because nothing in a simulation has
// the irregular lengths and arrivals of a real day. With it the running count settles within one
// request lifetime at tokens / mean resident length, which is what the founding machine showed.
//
// A conservativeness below 1 commits less for each request and admits faster: more than fits, so
// the pool overflows and requests are retracted. Above 1 memory stays unused.
type pacer struct {
	committed float64 // mean memory of the admitted requests over their lives, tokens
	demand    int     // what all requests, waiting ones too, hold at their ends
	next      float64 // decode step from which the next admission is in order
	nextFast  float64 // the same for one that fits the pool in every phase
}

// Found by trying: slower keeps the pool from overshooting, faster and refill close a gap that a
// retraction left without starting a new cohort, phaseMargin leaves room for unequal lengths.
const (
	slower      = 1.02
	faster      = 0.5
	refill      = 0.82
	phaseMargin = 1.0
)

// lifetime is what a request whose own prompt tokens are own holds on average while it runs.
func lifetime(r *Request, own int, conservativeness float64) float64 {
	return float64(own) + 0.5*conservativeness*float64(r.MaxNew)
}

// allows tells whether one more request, shared of whose prompt tokens others hold anyway, is in order. While
// everything that is asked for fits to its end there is nothing to pace.
func (p *pacer) allows(r *Request, shared int, e *Engine) bool {
	if p.demand <= e.b.Tokens {
		return true
	}
	own, now := r.Prompt.Len-shared, float64(e.counters.DecodeSteps)
	if p.committed+lifetime(r, own, e.s.Conservativeness) > float64(e.b.Tokens) {
		return false
	}
	return now >= p.next || now >= p.nextFast && p.committed > refill*float64(e.b.Tokens) && e.fitsAllPhases(r, own)
}

// admit books a request. The next one is in order after the steps in which the pool turns over that much memory:
// with n requests of l steps, one ends every l/n.
func (p *pacer) admit(r *Request, shared int, e *Engine) {
	own := max(r.Prompt.Len-shared, 0)
	c := e.s.Conservativeness
	r.sharedTokens = shared
	r.committed = lifetime(r, own, c)
	p.committed += r.committed
	steps := float64(r.MaxNew-r.Out) * lifetime(r, own, 1) / float64(e.b.Tokens) * c
	from := float64(e.counters.DecodeSteps) - 1
	p.next = math.Max(p.next, from+0.5) + steps*slower
	p.nextFast = math.Max(p.nextFast, from) + steps*faster
}

func (p *pacer) release(r *Request) {
	p.committed -= r.committed
	r.committed = 0
}

// phases is how many moments of a new request's life fitsAllPhases looks at.
const phases = 8

// fitsAllPhases supposes that every running request is replaced by one like it when it ends, and tells
// whether the pool then bears one more at any moment of its life.
func (e *Engine) fitsAllPhases(r *Request, own int) bool {
	limit := float64(e.b.Tokens)*phaseMargin - float64(own)
	for k := 1; k <= phases; k++ {
		ahead := r.MaxNew*k/phases - 1
		used := float64(ahead)
		for _, x := range e.running {
			used += float64(x.Prompt.Len-x.sharedTokens) + float64((x.Out+ahead)%max(x.MaxNew, 1))
		}
		if used > limit {
			return false
		}
	}
	return true
}
