package benchmark

import (
	"fmt"
	"math"
	"time"
)

// ServerView is what the server itself says of the measured part, beside what the client measured. What it
// does not say is absent, which is not the same as 0.
type ServerView struct {
	Source  string  `json:"source"`  // whose metrics: "sglang", "vllm"
	Seconds float64 `json:"seconds"` // host time the rates are over: the measured part, as far as it was watched
	Scrapes int     `json:"scrapes"`
	Missed  int     `json:"missed,omitempty"` // looks that failed

	OutputTokS    *float64 `json:"output_tok_s,omitempty"`
	PromptTokS    *float64 `json:"prompt_tok_s,omitempty"` // those found in the cache too
	RequestsS     *float64 `json:"requests_s,omitempty"`   // that ended
	RunningMean   *float64 `json:"running_mean,omitempty"` // of the looks; SGLang refreshes it every 40 decode steps
	RunningMax    *float64 `json:"running_max,omitempty"`
	QueuedMax     *float64 `json:"queued_max,omitempty"`
	TokenUsageMax *float64 `json:"token_usage_max,omitempty"` // fill of the KV cache, 0 to 1
	CacheHitRatio *float64 `json:"cache_hit_ratio,omitempty"` // prompt tokens found in the cache / looked up
	TTFTMeanMs    *float64 `json:"ttft_mean_ms,omitempty"`    // by the server's clock: without the way to the client
	Retractions   *float64 `json:"retractions,omitempty"`     // requests put back for want of memory

	GenerationTokens *float64 `json:"generation_tokens,omitempty"` // in the measured part, as the rates
	PromptTokens     *float64 `json:"prompt_tokens,omitempty"`
	CachedTokens     *float64 `json:"cached_tokens,omitempty"`

	// Total is everything from the first look to the last one, warm-up and drain too: where nobody else used
	// the server these equal the tokens that were sent and got, exactly.
	Total ServerTotals `json:"total"`

	// AtEnd says that tokens are counted when their request ends (SGLang up to 0.5.6): over a part much
	// shorter than many requests the rates swing.
	AtEnd bool `json:"counted_at_request_end,omitempty"`
	// Coarse says that the part began or ended too far from a look for its length, or was not watched to its
	// end: the rates are rough.
	Coarse    bool `json:"coarse,omitempty"`
	Restarted bool `json:"restarted,omitempty"` // a counter began again: the server did
}

// ServerTotals are counters of requests that ended.
type ServerTotals struct {
	Seconds          float64  `json:"seconds"`
	Requests         *float64 `json:"requests,omitempty"`
	PromptTokens     *float64 `json:"prompt_tokens,omitempty"`
	GenerationTokens *float64 `json:"generation_tokens,omitempty"`
	CachedTokens     *float64 `json:"cached_tokens,omitempty"`
}

// View is what was seen between two times of the host's clock, usually the measured part (Report.Windows).
// Between two looks a counter is taken to grow evenly. It is nil, with the reason, when there is nothing.
func (r *ServerRecord) View(from, to time.Time) (*ServerView, string) {
	switch {
	case len(r.points) < 2:
		return nil, fmt.Sprintf("the server's metrics could be read only %d times (%d failed)", len(r.points), r.missed)
	case r.product == "":
		return nil, "the server's /metrics has no figure known here (SGLang's and vLLM's are)"
	}
	asked := to.Sub(from)
	first, last := r.points[0].at, r.points[len(r.points)-1].at
	if from.Before(first) {
		from = first
	}
	if to.After(last) {
		to = last
	}
	if !from.Before(to) {
		return nil, "the server's metrics were not watched in the measured part"
	}
	v := &ServerView{
		Source: r.product, Seconds: to.Sub(from).Seconds(), Scrapes: len(r.points), Missed: r.missed, Restarted: r.restarted,
		Total: r.totals(),
	}
	unsure := r.apart(from) + r.apart(to) + asked - to.Sub(from)
	v.Coarse = float64(unsure) > mostDisagreement*float64(asked)
	r.rates(v, from, to)
	mean, most := r.gauge(figRunning, from, to)
	v.RunningMean, v.RunningMax = told(mean), told(most)
	_, most = r.gauge(figQueued, from, to)
	v.QueuedMax = told(most)
	_, most = r.gauge(figUsage, from, to)
	v.TokenUsageMax = told(most)
	return v, ""
}

// rates fills in what counters say. SGLang's realtime counter is preferred: it counts tokens as they come.
// It leaves out each request's first token, which the prefill makes; the requests that had one are counted
// with their times to it.
func (r *ServerRecord) rates(v *ServerView, from, to time.Time) {
	grown := func(f figure) float64 {
		if !r.known[f] {
			return math.NaN()
		}
		return r.at(f, to) - r.at(f, from)
	}
	output, prompt, cached, lookedUp := grown(figGenerated), grown(figPrompt), r.cached(grown), grown(figLookedUp)
	if live := grown(figDecoded) + grown(figFirst); !math.IsNaN(live) {
		output = live
	} else {
		v.AtEnd = r.product == productSGLang.name
	}
	if computed := grown(figPrefilled); !math.IsNaN(computed) {
		cached = 0
		if r.known[figReused] {
			cached = grown(figReused)
		}
		prompt = computed + cached
		lookedUp = prompt
	}
	v.OutputTokS, v.PromptTokS, v.RequestsS = told(output/v.Seconds), told(prompt/v.Seconds), told(grown(figRequests)/v.Seconds)
	v.GenerationTokens, v.PromptTokens, v.CachedTokens = count(output), count(prompt), count(cached)
	v.CacheHitRatio = told(cached / lookedUp)
	v.TTFTMeanMs = told(1000 * grown(figFirstSum) / grown(figFirst))
	v.Retractions = count(grown(figRetracted))
}

// cached is what a counter of cached tokens says; SGLang's first appears with the first hit.
func (r *ServerRecord) cached(grown func(figure) float64) float64 {
	if !r.known[figCached] && r.known[figPrompt] && r.product == productSGLang.name {
		return 0
	}
	return grown(figCached)
}

func (r *ServerRecord) totals() ServerTotals {
	all := func(f figure) float64 {
		if !r.known[f] {
			return math.NaN()
		}
		return r.total[f]
	}
	return ServerTotals{
		Seconds: r.points[len(r.points)-1].at.Sub(r.points[0].at).Seconds(), Requests: count(all(figRequests)),
		PromptTokens: count(all(figPrompt)), GenerationTokens: count(all(figGenerated)), CachedTokens: count(r.cached(all)),
	}
}

// told is a figure, nil when there is none.
func told(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// count is told of a whole number: between two looks one is off by a fraction.
func count(v float64) *float64 { return told(math.Round(v)) }

// mostDisagreement is how far server and client may be apart (design: measurement).
const mostDisagreement = 0.05

// Disagrees says by how much the server's own output tok/s differ from the client's, "" when that is at most
// 5%, or when the server counts too coarsely to tell.
func (v *ServerView) Disagrees(outputTokS float64) string {
	if v == nil || v.OutputTokS == nil || v.AtEnd || v.Coarse || outputTokS <= 0 {
		return ""
	}
	off := *v.OutputTokS/outputTokS - 1
	if math.Abs(off) <= mostDisagreement {
		return ""
	}
	side := "more"
	if off < 0 {
		side = "fewer"
	}
	return fmt.Sprintf("server disagrees by %.0f%%: it counted %.1f output tok/s, %s than the %.1f that came here; did others use it?", 100*math.Abs(off), *v.OutputTokS, side, outputTokS)
}
