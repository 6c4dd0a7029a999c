package simulator

import (
	"net/http"
	"slices"
	"strings"
)

// book counts requests for /metrics as the tokenizer manager does: a request when it has ended, its first token
// and the gaps between events as they are sent. All times are simulated seconds. server.mu guards it.
type book struct {
	sides   [2]side // is_streaming "false", "true"; older versions know one
	device  int     // cached tokens by tier
	host    int
	aborts  int // calls for an abort, however many requests one ended
	gaps    *histogram
	queue   *histogram
	prompts *histogram
	fresh   *histogram
	outputs *histogram
	retries *histogram
}

// side is the requests of one kind.
type side struct {
	requests, prompt, output int
	first, e2e, perToken     *histogram
}

// Bounds of the histograms, in seconds, tokens or times.
var (
	firstBounds = []float64{0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400}
	gapBounds   = []float64{
		0.002, 0.004, 0.006, 0.008, 0.010, 0.015, 0.020, 0.025, 0.030, 0.035, 0.040, 0.060, 0.080,
		0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8,
	}
	queueBounds = []float64{
		0, 0.001, 0.005, 0.01, 0.05, 0.1, 0.2, 0.5, 1, 2, 3, 4, 5, 10, 15, 20, 30, 40, 50, 60, 70, 80, 90,
		100, 200, 300, 400, 500, 600, 700, 800, 900, 1000, 1200, 1400, 1600, 1800, 2000, 2500, 3000,
	}
	tokenBounds = []float64{
		100, 300, 500, 700, 1000, 1500, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10000, 12500, 15000, 17500, 20000, 22500, 25000,
		27500, 30000, 35000, 40000, 60000, 80000, 100000, 200000, 300000, 400000, 600000, 800000, 1000000, 1100000,
	}
	retryBounds = []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 75, 100}
)

func newBook(d *dialect) *book {
	e2e := append(slices.Clone(firstBounds), 600, 1200, 1800, 2400)
	queue := queueBounds
	if d.release <= r049 {
		e2e = append(slices.Clone(firstBounds), 800)
	}
	if d.release < r0523 {
		queue = append([]float64{0}, queueBounds[5:]...)
	}
	b := &book{
		gaps: newHistogram(gapBounds), queue: newHistogram(queue), prompts: newHistogram(tokenBounds),
		fresh: newHistogram(tokenBounds), outputs: newHistogram(tokenBounds), retries: newHistogram(retryBounds),
	}
	for i := range b.sides {
		b.sides[i] = side{first: newHistogram(firstBounds), e2e: newHistogram(e2e), perToken: newHistogram(gapBounds)}
	}
	return b
}

func (b *book) side(r *Request) *side {
	if r.Stream {
		return &b.sides[1]
	}
	return &b.sides[0]
}

// event counts what a stream is told: its first token, or the gap since the last event for each new token.
func (b *book) event(st *stream, fresh int) {
	r := st.r
	switch {
	case fresh <= 0:
	case st.told == 0:
		b.side(r).first.observe(r.FirstAt-r.Arrival, 1)
		if fresh > 1 {
			b.gaps.observe((r.LastAt-r.FirstAt)/float64(fresh-1), fresh-1)
		}
	default:
		b.gaps.observe((r.LastAt-st.lastAt)/float64(fresh), fresh)
	}
	st.lastAt = r.LastAt
}

// ended counts a request that is over. One that was thrown out of the queue leaves no trace but the abort, and the
// probes of /health none at all.
func (b *book) ended(r *Request, now float64) {
	if strings.HasPrefix(r.ID, healthRID) || r.Aborted && r.Cached < 0 {
		return
	}
	s := b.side(r)
	if !r.Stream && r.Out > 0 {
		s.first.observe(r.FirstAt-r.Arrival, 1)
		if r.Out > 1 {
			b.gaps.observe((r.LastAt-r.FirstAt)/float64(r.Out-1), r.Out-1)
		}
	}
	s.requests++
	s.prompt += r.Prompt.Len
	s.output += r.Out
	b.device += r.Cached - r.FromHost
	b.host += r.FromHost
	end := r.LastAt
	if r.Aborted {
		end = now
	} else if r.Out > 1 {
		s.perToken.observe((r.LastAt-r.FirstAt)/float64(r.Out-1), 1)
	}
	s.e2e.observe(end-r.Arrival, 1)
	b.queue.observe(r.AdmittedAt-r.Arrival, 1)
	b.prompts.observe(float64(r.Prompt.Len), 1)
	b.fresh.observe(float64(r.Prompt.Len-r.Cached), 1)
	b.outputs.observe(float64(r.Out), 1)
	b.retries.observe(float64(r.Retracted), 1)
}

// histogram is one Prometheus histogram.
type histogram struct {
	bounds []float64
	counts []int // one more than bounds
	sum    float64
	n      int
}

func newHistogram(bounds []float64) *histogram {
	return &histogram{bounds: bounds, counts: make([]int, len(bounds)+1)}
}

// observe counts a value n times.
func (h *histogram) observe(x float64, n int) {
	i, _ := slices.BinarySearch(h.bounds, x)
	h.counts[i] += n
	h.sum += x * float64(n)
	h.n += n
}

// plus adds two histograms with the same bounds.
func (h *histogram) plus(o *histogram) *histogram {
	sum := newHistogram(h.bounds)
	for i := range sum.counts {
		sum.counts[i] = h.counts[i] + o.counts[i]
	}
	sum.sum, sum.n = h.sum+o.sum, h.n+o.n
	return sum
}

// metrics is GET /metrics. SGLang's gauges are as old as the last batch line; here they are those of the moment.
func (s *server) metrics(w http.ResponseWriter, _ *http.Request) {
	x := exposition{d: s.l.d, model: s.l.s.Served}
	s.mu.Lock()
	s.writeMetrics(&x)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(x.b) // a client that hung up needs no answer
}
