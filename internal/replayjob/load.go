package replayjob

import (
	"time"

	"sgtune/benchmark"
)

// Load is benchmark.Options as far as it can be sent: the same names mean the same.
type Load struct {
	Concurrency    int                 `json:"concurrency,omitempty"`
	Endpoint       string              `json:"endpoint,omitempty"`
	Model          string              `json:"model,omitempty"`
	Continuous     bool                `json:"continuous_usage,omitempty"`
	Arrivals       *benchmark.Arrivals `json:"arrivals,omitempty"`
	Ramp           Duration            `json:"ramp,omitempty"`
	Warmup         Duration            `json:"warmup,omitempty"`
	WarmupRequests int                 `json:"warmup_requests,omitempty"`
	Window         Duration            `json:"window,omitempty"`
	Cap            Duration            `json:"cap,omitempty"`
	Target         float64             `json:"target,omitempty"`
	Requests       int                 `json:"requests,omitempty"`
	Starts         int                 `json:"starts,omitempty"`
	PromptTokens   int64               `json:"prompt_tokens,omitempty"`
	Drain          Duration            `json:"drain,omitempty"`
	Timeout        Duration            `json:"timeout,omitempty"`
	Retries        int                 `json:"retries,omitempty"`
	SLO            SLO                 `json:"slo"`
}

// SLO is benchmark.SLO.
type SLO struct {
	TTFT Duration `json:"ttft,omitempty"`
	TPOT Duration `json:"tpot,omitempty"`
	E2E  Duration `json:"e2e,omitempty"`
}

// LoadOf takes from o what can be sent. Clock, Prune, OnWindow, CPUShare and WarmupFeed stay behind: the agent's
// clock is its machine's, and the others are said elsewhere in a Job.
func LoadOf(o benchmark.Options) Load {
	return Load{
		Concurrency:    o.Concurrency,
		Endpoint:       o.Endpoint,
		Model:          o.Model,
		Continuous:     o.ContinuousUsage,
		Arrivals:       o.Arrivals,
		Ramp:           Duration(o.Ramp),
		Warmup:         Duration(o.Warmup),
		WarmupRequests: o.WarmupRequests,
		Window:         Duration(o.Window),
		Cap:            Duration(o.Cap),
		Target:         o.Target,
		Requests:       o.Requests,
		Starts:         o.Starts,
		PromptTokens:   o.PromptTokens,
		Drain:          Duration(o.Drain),
		Timeout:        Duration(o.Timeout),
		Retries:        o.Retries,
		SLO:            SLO{TTFT: Duration(o.SLO.TTFT), TPOT: Duration(o.SLO.TPOT), E2E: Duration(o.SLO.E2E)},
	}
}

// Options is the other way of LoadOf.
func (l Load) Options() benchmark.Options {
	return benchmark.Options{
		Concurrency:     l.Concurrency,
		Endpoint:        l.Endpoint,
		Model:           l.Model,
		ContinuousUsage: l.Continuous,
		Arrivals:        l.Arrivals,
		Ramp:            time.Duration(l.Ramp),
		Warmup:          time.Duration(l.Warmup),
		WarmupRequests:  l.WarmupRequests,
		Window:          time.Duration(l.Window),
		Cap:             time.Duration(l.Cap),
		Target:          l.Target,
		Requests:        l.Requests,
		Starts:          l.Starts,
		PromptTokens:    l.PromptTokens,
		Drain:           time.Duration(l.Drain),
		Timeout:         time.Duration(l.Timeout),
		Retries:         l.Retries,
		SLO:             benchmark.SLO{TTFT: time.Duration(l.SLO.TTFT), TPOT: time.Duration(l.SLO.TPOT), E2E: time.Duration(l.SLO.E2E)},
	}
}
