package simulator

import (
	"os"
	"slices"
	"strconv"
)

// writeMetrics lists what this version reports and the model knows. Callers hold s.mu.
func (s *server) writeMetrics(x *exposition) {
	s.schedulerMetrics(x)
	if x.d.release >= r0510 {
		s.newerMetrics(x)
	}
	if x.d.release >= r0523 {
		s.newestMetrics(x)
	}
	sides := x.sides(s.book)
	s.book.histograms(x, sides)
	s.book.counters(x, sides)
}

func (s *server) schedulerMetrics(x *exposition) {
	e, b := s.eng, &s.l.b
	x.gauge("num_running_reqs", "The number of running requests.", float64(len(e.running)))
	x.gauge("num_queue_reqs", "The number of requests in the waiting queue.", float64(len(e.waiting)))
	x.gauge("num_used_tokens", "The number of used tokens.", float64(e.cache.used()))
	x.gauge("token_usage", "The token usage.", e.usage())
	rate := e.genTokS
	if e.Idle() {
		rate = 0
	}
	x.gauge("gen_throughput", "The generation throughput (token/s).", rate)
	x.gauge("cache_hit_rate", "The prefix cache hit rate.", e.hitRate)
	switch {
	case x.d.release == r049:
		x.gauge("total_retracted_reqs", "The total number of retracted requests due to kvcache full.", float64(e.counters.RetractedRequests))
	case x.d.release >= r055:
		x.family("num_retracted_reqs", "gauge", "The number of retracted requests.")
		x.sample("num_retracted_reqs", append(x.scheduler(), label{"pid", strconv.Itoa(os.Getpid())}), float64(countRetracted(e.waiting)))
		x.gauge("new_token_ratio", "The new token ratio.", e.ratio.value)
		graph := 0.0
		if n := len(e.running); n > 0 && n <= b.GraphMax {
			graph = 1
		}
		x.gauge("is_cuda_graph", "Whether the batch is using CUDA graph.", graph)
		x.counter("evicted_tokens_total", "The number of tokens evicted from GPU to CPU.", []label{{"cache_type", "RadixCache"}}, e.cache.evicted)
		if s.l.s.hicache() {
			l := []label{{"cache_type", "HiRadixCache"}}
			if x.d.release >= r0523 {
				l = append(l, label{"pool", "kv"})
			}
			x.counter("load_back_tokens_total", "The number of tokens loaded from CPU to GPU.", l, e.counters.HostTokens)
		}
	}
}

// newerMetrics are those that came between 0.5.5 and 0.5.10.
func (s *server) newerMetrics(x *exposition) {
	e := s.eng
	x.gauge("full_token_usage", "The token usage for full attention layers.", e.usage())
	x.gauge("max_total_num_tokens", "Maximum total number of tokens in the KV cache pool.", float64(s.l.b.Tokens))
	x.counter("num_retracted_requests_total", "Total number of retracted requests.", x.scheduler(), e.counters.RetractedRequests)
	x.family("realtime_tokens_total", "counter", "Total number of tokens processed (updated on each log interval). mode: prefill_compute, prefill_cache, decode.")
	for _, m := range []struct {
		mode string
		n    int
	}{
		{"prefill_compute", e.counters.ComputedTokens},
		{"decode", e.counters.OutputTokens - e.counters.FirstTokens},
		{"prefill_cache", e.counters.CachedTokens},
	} {
		x.sample("realtime_tokens_total", append(x.scheduler(), label{"mode", m.mode}), float64(m.n))
	}
	if s.l.s.hicache() {
		x.gauge("hicache_host_used_tokens", "Number of tokens currently used in the host KV cache.", float64(e.cache.host))
		x.gauge("hicache_host_total_tokens", "Total capacity of the host KV cache in tokens.", float64(e.cache.hostCapacity))
	}
}

// newestMetrics are those that came after 0.5.10.
func (s *server) newestMetrics(x *exposition) {
	e, b := s.eng, &s.l.b
	x.gauge("kv_available_tokens", "Number of free token slots in the KV cache pool.", float64(e.cache.freeTokens()))
	x.gauge("kv_evictable_tokens", "Number of evictable (radix-cached) token slots in the KV cache pool.", float64(e.cache.evictable()))
	x.gauge("kv_used_tokens", "Number of actively used token slots in the KV cache pool.", float64(e.cache.used()))
	x.gauge("weight_memory_usage_gb", "Memory used by model weights in GB.", b.BeforeLoadGiB-b.AfterLoadGiB)
	x.gauge("kv_cache_memory_usage_gb", "Memory used by the KV cache pools in GB.", b.KVGiB)
	x.family("graph_memory_usage_gb", "gauge", "Memory used by captured device graphs in GB.")
	x.sample("graph_memory_usage_gb", append(x.scheduler(), label{"phase", "decode"}), b.GraphGiB)
	x.gauge("page_size", "KV cache page size in tokens.", float64(s.l.s.PageSize))
	x.gauge("num_pages", "Number of KV cache pages.", float64(b.Tokens/s.l.s.PageSize))
	x.gauge("context_len", "Maximum context length.", float64(b.contextLen))
	x.gauge("startup_available_gpu_memory_gb", "Available GPU memory in GB at startup.", b.AfterGraphGiB)
}

func countRetracted(waiting []*Request) int {
	n := 0
	for _, r := range waiting {
		if r.Retracted > 0 {
			n++
		}
	}
	return n
}

// counter is a counter with one value; as in SGLang it is not there before the first event.
func (x *exposition) counter(name, help string, labels []label, n int) {
	if n > 0 {
		x.family(name, "counter", help)
		x.sample(name, labels, float64(n))
	}
}

// histograms are the main process's: a family appears with its first event.
func (b *book) histograms(x *exposition, sides []labelled) {
	x.perSide(sides, "time_to_first_token_seconds", "Histogram of time to first token in seconds.", func(s *side) *histogram { return s.first })
	x.perSide(sides, "e2e_request_latency_seconds", "Histogram of End-to-end request latency in seconds", func(s *side) *histogram { return s.e2e })
	x.one("inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", x.tokenizer(), b.gaps)
	if x.d.release >= r055 {
		x.one("queue_time_seconds", "Histogram of queueing time in seconds.", x.scheduler(), b.queue)
	}
	switch x.d.release {
	case r055, r0510:
		x.one("num_retractions", "Histogram of retraction counts per request.", x.tokenizer(), b.retries)
	case r0523:
		x.perSide(sides, "request_time_per_output_token_seconds", "Per-request TPOT in seconds: (finished_time - first_token_time) / (completion_tokens - 1).", func(s *side) *histogram { return s.perToken })
		x.one("prompt_tokens_histogram", "Histogram of prompt token length.", x.tokenizer(), b.prompts)
		x.one("uncached_prompt_tokens_histogram", "Histogram of uncached (compute) prompt token length.", x.tokenizer(), b.fresh)
		x.one("generation_tokens_histogram", "Histogram of generation token length.", x.tokenizer(), b.outputs)
	case r046, r049:
	}
}

// counters are the main process's too.
func (b *book) counters(x *exposition, sides []labelled) {
	x.count(sides, "prompt_tokens_total", "Number of prefill tokens processed.", func(s *side) int { return s.prompt })
	x.count(sides, "generation_tokens_total", "Number of generation tokens processed.", func(s *side) int { return s.output })
	x.count(sides, "num_requests_total", "Number of requests processed.", func(s *side) int { return s.requests })
	if x.d.release < r0510 {
		x.counter("cached_tokens_total", "Number of cached prompt tokens.", x.tokenizer(), b.device+b.host)
	} else if b.device+b.host > 0 {
		x.family("cached_tokens_total", "counter", "Number of cached prompt tokens by source (device/host/storage).")
		for i, n := range []int{b.device, b.host} {
			if n > 0 {
				x.sample("cached_tokens_total", append(x.tokenizer(), label{"cache_source", []string{"device", "host"}[i]}), float64(n))
			}
		}
	}
	if x.d.release >= r049 {
		x.counter("num_aborted_requests_total", "Number of requests aborted.", x.tokenizer(), b.aborts)
	}
}

// labelled is a side with its labels.
type labelled struct {
	*side
	labels []label
}

// sides splits requests by is_streaming, as 0.5.23 does, or adds them up.
func (x *exposition) sides(b *book) []labelled {
	if x.d.release >= r0523 {
		return []labelled{
			{&b.sides[0], append(x.tokenizer(), label{"is_streaming", "false"})},
			{&b.sides[1], append(x.tokenizer(), label{"is_streaming", "true"})},
		}
	}
	p, q := &b.sides[0], &b.sides[1]
	return []labelled{{&side{
		requests: p.requests + q.requests, prompt: p.prompt + q.prompt, output: p.output + q.output,
		first: p.first.plus(q.first), e2e: p.e2e.plus(q.e2e), perToken: p.perToken.plus(q.perToken),
	}, x.tokenizer()}}
}

// one is a histogram that is not split.
func (x *exposition) one(name, help string, labels []label, h *histogram) {
	if h.n > 0 {
		x.family(name, "histogram", help)
		x.histogram(name, labels, h)
	}
}

func (x *exposition) perSide(sides []labelled, name, help string, of func(s *side) *histogram) {
	if slices.ContainsFunc(sides, func(l labelled) bool { return of(l.side).n > 0 }) {
		x.family(name, "histogram", help)
	}
	for _, l := range sides {
		x.histogram(name, l.labels, of(l.side))
	}
}

func (x *exposition) count(sides []labelled, name, help string, of func(s *side) int) {
	if !slices.ContainsFunc(sides, func(l labelled) bool { return l.requests > 0 }) {
		return
	}
	x.family(name, "counter", help)
	for _, l := range sides {
		if l.requests > 0 {
			x.sample(name, l.labels, float64(of(l.side)))
		}
	}
}
