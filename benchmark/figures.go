package benchmark

import (
	"maps"
	"math"
	"slices"
	"strings"
)

// figure is something a server tells of itself on its /metrics page.
type figure int

const (
	figRunning figure = iota // requests running now
	figQueued                // requests waiting now
	figUsage                 // fill of the KV cache now, 0 to 1

	// Those from here on count since the server's start.
	figRequests  // requests that ended
	figPrompt    // prompt tokens of requests that ended
	figGenerated // output tokens of requests that ended (vLLM: as they come)
	figCached    // prompt tokens found in the cache
	figLookedUp  // prompt tokens looked up there
	figFirst     // requests that had their first token
	figFirstSum  // seconds they waited for it
	figDecoded   // output tokens as they come, without each request's first
	figPrefilled // prompt tokens computed, as they are
	figReused    // prompt tokens found in the cache, as they are
	figRetracted // requests put back into the queue for want of memory

	figures      // how many there are
	firstCounter = figRequests
)

// rule says what a metric tells and how its series add up.
type rule struct {
	figure figure
	label  string // only the series with this label...
	value  string // ...at this value count; "" = all
	fold   fold
}

// fold is how the series of one metric become one figure.
type fold int

const (
	sumAll   fold = iota
	maxAll        // a fraction: the fullest one counts
	sumRanks      // the ranks of one tensor and pipeline group tell the same: one of them counts, groups add up
)

// A product is a server whose metrics are known here.
type product struct {
	name    string
	rules   map[string][]rule
	renamed map[string]string // old names of counters that some versions show beside the new ones
}

// SGLang (srt/observability/metrics_collector.py; up to 0.5.9 srt/metrics/collector.py). Counters of requests
// carry is_streaming from 0.5.18 and cache_source from 0.5.9, both disjoint. Ranks: only the first of each
// attention group reports, all with --enable-metrics-for-all-schedulers; pipeline stages report the same
// requests. realtime_tokens_total exists from 0.5.9; without it tokens are known when a request has ended.
var productSGLang = product{name: "sglang", rules: map[string][]rule{
	"sglang:num_running_reqs":                  {{figRunning, "", "", sumRanks}},
	"sglang:num_queue_reqs":                    {{figQueued, "", "", sumRanks}},
	"sglang:token_usage":                       {{figUsage, "", "", maxAll}},
	"sglang:num_requests_total":                {{figRequests, "", "", sumAll}},
	"sglang:prompt_tokens_total":               {{figPrompt, "", "", sumAll}, {figLookedUp, "", "", sumAll}},
	"sglang:generation_tokens_total":           {{figGenerated, "", "", sumAll}},
	"sglang:cached_tokens_total":               {{figCached, "", "", sumAll}},
	"sglang:time_to_first_token_seconds_sum":   {{figFirstSum, "", "", sumAll}},
	"sglang:time_to_first_token_seconds_count": {{figFirst, "", "", sumAll}},
	"sglang:realtime_tokens_total": {
		{figDecoded, "mode", "decode", sumRanks},
		{figPrefilled, "mode", "prefill_compute", sumRanks},
		{figReused, "mode", "prefill_cache", sumRanks},
	},
	"sglang:num_retracted_requests_total": {{figRetracted, "", "", sumRanks}},
}}

// vLLM (vllm/v1/metrics/loggers.py): one series for each engine. Its token counters grow as tokens come. The
// names with gpu_ are of versions up to 0.9.
var productVLLM = product{name: "vllm", rules: map[string][]rule{
	"vllm:num_requests_running":              {{figRunning, "", "", sumAll}},
	"vllm:num_requests_waiting":              {{figQueued, "", "", sumAll}},
	"vllm:kv_cache_usage_perc":               {{figUsage, "", "", maxAll}},
	"vllm:gpu_cache_usage_perc":              {{figUsage, "", "", maxAll}},
	"vllm:request_success_total":             {{figRequests, "", "", sumAll}},
	"vllm:prompt_tokens_total":               {{figPrompt, "", "", sumAll}},
	"vllm:generation_tokens_total":           {{figGenerated, "", "", sumAll}},
	"vllm:prefix_cache_hits_total":           {{figCached, "", "", sumAll}},
	"vllm:prefix_cache_queries_total":        {{figLookedUp, "", "", sumAll}},
	"vllm:gpu_prefix_cache_hits_total":       {{figCached, "", "", sumAll}},
	"vllm:gpu_prefix_cache_queries_total":    {{figLookedUp, "", "", sumAll}},
	"vllm:time_to_first_token_seconds_sum":   {{figFirstSum, "", "", sumAll}},
	"vllm:time_to_first_token_seconds_count": {{figFirst, "", "", sumAll}},
	"vllm:num_preemptions_total":             {{figRetracted, "", "", sumAll}},
}, renamed: map[string]string{
	"vllm:gpu_prefix_cache_hits_total":    "vllm:prefix_cache_hits_total",
	"vllm:gpu_prefix_cache_queries_total": "vllm:prefix_cache_queries_total",
}}

// rankLabels tell the ranks of one group apart, which serve the same requests. dp_rank does not: each of
// those has requests of its own. A gauge that no process may speak for all (pid) is told by each.
var rankLabels = []string{"pid", "tp_rank", "pp_rank", "moe_ep_rank", "moe_dp_rank", "attn_cp_rank"}

// reading is what one page says: gauges as one figure each, counters by series, so that a restart of one of
// them can be told.
type reading struct {
	product string // "" when the page has no figure known here
	gauges  [firstCounter]float64
	series  map[seriesKey]float64
}

// seriesKey names one series of a counter; ranks that tell the same are one.
type seriesKey struct {
	figure       figure
	name, labels string
}

// readMetrics reads a page. Gauges that it does not have are NaN.
func readMetrics(page []byte) (reading, error) {
	r := reading{series: map[seriesKey]float64{}}
	groups := [firstCounter]map[string]float64{{}, {}, {}}
	wanted := func(name []byte) bool {
		_, sglang := productSGLang.rules[string(name)]
		_, vllm := productVLLM.rules[string(name)]
		return sglang || vllm
	}
	err := scanMetrics(page, wanted, func(s promSample) {
		p := productSGLang
		if _, found := p.rules[s.name]; !found {
			p = productVLLM
		}
		for _, rule := range p.rules[s.name] {
			if math.IsNaN(s.value) || rule.label != "" && s.label(rule.label) != rule.value {
				continue
			}
			r.product = p.name
			labels := s.key(rule.fold)
			// With priority scheduling a gauge has its total under priority="", and parts of it beside.
			if rule.figure < firstCounter && s.label("priority") == "" {
				groups[rule.figure][labels] = max(groups[rule.figure][labels], s.value)
			} else if rule.figure >= firstCounter {
				key := seriesKey{rule.figure, s.name, labels}
				r.series[key] = max(r.series[key], s.value)
			}
		}
	})
	maps.DeleteFunc(r.series, func(key seriesKey, _ float64) bool {
		_, both := r.series[seriesKey{key.figure, productVLLM.renamed[key.name], key.labels}]
		return both
	})
	for f := range groups {
		r.gauges[f] = folded(groups[f], figure(f) == figUsage)
	}
	return r, err
}

// key is what tells a series from others that count apart.
func (s promSample) key(f fold) string {
	if f == maxAll {
		return ""
	}
	parts := make([]string, 0, len(s.labels))
	for _, l := range s.labels {
		if f == sumRanks && slices.Contains(rankLabels, l.name) {
			continue
		}
		parts = append(parts, l.name+"\x00"+l.value)
	}
	slices.Sort(parts)
	return strings.Join(parts, "\x00")
}

// folded adds the groups of a gauge up; NaN without any.
func folded(groups map[string]float64, largest bool) float64 {
	if len(groups) == 0 {
		return math.NaN()
	}
	out := 0.0
	for _, v := range groups {
		if largest {
			out = max(out, v)
		} else {
			out += v
		}
	}
	return out
}
