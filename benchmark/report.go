package benchmark

import (
	"fmt"
	"math"
	"time"
)

// Report is what one load level measured. Counts cover the measured part; sent = ok + sum(failed).
//
// The measured part begins where throughput is steady (steady.go) and ends when sending ended. Requests
// that finished in it or while draining are counted; rates are of what came inside it.
type Report struct {
	Requests struct {
		Sent   int            `json:"sent"`
		OK     int            `json:"ok"`
		Failed map[string]int `json:"failed"`
	} `json:"requests"`
	Warmup int `json:"warmup"`        // requests finished before the measured part
	Cut    int `json:"cut,omitempty"` // requests still in flight when draining ended: neither ok nor failed, not in sent
	Tokens struct {
		Wanted int64 `json:"wanted"`
		Got    int64 `json:"got"` // of complete requests
		Prompt int64 `json:"prompt"`
		Cached int64 `json:"cached"`
	} `json:"tokens"`
	Concurrency struct {
		Mean float64 `json:"mean"`
		Peak int     `json:"peak"`
	} `json:"concurrency"`
	OutputTokS       float64       `json:"output_tok_s"`
	OutputLow        float64       `json:"output_tok_s_low"` // 95% interval over windows (batch means), 0 and 0 without one
	OutputHigh       float64       `json:"output_tok_s_high"`
	RequestsS        float64       `json:"requests_s"`
	GoodputS         float64       `json:"goodput_requests_s"` // requests/s that met Options.SLO; RequestsS without one
	TTFTms           *Distribution `json:"ttft_ms,omitempty"`
	ITLms            *Distribution `json:"itl_ms,omitempty"` // absent in scaled time
	TPOTms           *Distribution `json:"tpot_ms,omitempty"`
	E2Ems            *Distribution `json:"e2e_ms,omitempty"`
	TTFTResolutionMs float64       `json:"ttft_resolution_ms,omitempty"` // scaled time only
	CacheHitRatio    float64       `json:"cache_hit_ratio"`
	CacheFull        bool          `json:"cache_full"` // set by the caller that filled it
	Client           struct {
		CPUShare  float64 `json:"cpu_share"` // of its cores
		SendLagMs struct {
			P99 float64 `json:"p99"` // host milliseconds, of requests due in the measured part
		} `json:"send_lag_ms"`
	} `json:"client"`
	Seconds    float64  `json:"seconds"` // measured part, host time
	Steady     bool     `json:"steady"`
	Pruned     bool     `json:"pruned,omitempty"`
	Windows    []Window `json:"windows"`
	Passes     int      `json:"passes"`
	Valid      bool     `json:"valid"`
	Invalid    string   `json:"invalid,omitempty"` // "client_limited", "failed_requests", "wrong_token_count", "client_hung"
	Advice     string   `json:"advice,omitempty"`
	ServerTokS float64  `json:"server_tok_s,omitempty"` // server's own figure for the same window, 0 unknown
	Flags      []string `json:"flags,omitempty"`        // remarks: "not steady", "server disagrees by 7%"
	Errors     []string `json:"errors,omitempty"`       // first few error texts
}

// eventMerge is the real time within which the simulated server merges what it streams, as
// --stream-interval does; in scaled time no latency is known better than that.
const eventMerge = 5 * time.Millisecond

// mostErrors is how many error texts a report keeps.
const mostErrors = 5

// report sums up a level whose clients are gone.
func (lv *level) report() *Report {
	r := &Report{Pruned: lv.pruned, Cut: lv.cut, Passes: lv.feed.Passes()}
	r.Requests.Failed = map[string]int{}
	first := lv.settleWindows(r)
	r.rates(first)
	from := lv.ledger.start.Add(time.Duration(first) * lv.opts.Window)
	lv.requests(r, from)
	r.Concurrency.Peak = lv.ledger.most()
	if scale := lv.opts.Clock.Scale(); scale > 1 {
		r.TTFTResolutionMs = ms(eventMerge) * scale
	}
	r.Client.CPUShare = lv.clientCPU(first)
	lv.flag(r)
	r.judge(lv.opts.Clock.Scale(), lv.stood)
	return r
}

// settleWindows decides the measured part; it returns its first window.
func (lv *level) settleWindows(r *Report) (first int) {
	end := lv.ledger.close(lv.opts.Clock.Now())
	r.Windows = lv.windows
	whole := len(lv.windows)
	if rest := end - time.Duration(whole)*lv.opts.Window; rest > 0 {
		for k := whole; time.Duration(k)*lv.opts.Window < end; k++ {
			r.Windows = append(r.Windows, lv.ledger.window(k))
		}
	}
	behind := lv.measured()
	from, steady := steadyFrom(behind)
	r.Steady = steady
	first = min(lv.warmupWindows(), whole) + from
	if first >= len(r.Windows) {
		first = len(r.Windows) - 1 // ended within the warm-up: its last window is all there is
	}
	for k := first; k < len(r.Windows); k++ {
		r.Windows[k].Steady = true
	}
	if mean, half, ok := interval(behind[from:]); ok {
		r.OutputLow, r.OutputHigh = max(0, mean-half), mean+half
	}
	return first
}

// rates are means over the measured windows, weighted by their length.
func (r *Report) rates(first int) {
	var output, busy float64
	for _, w := range r.Windows[first:] {
		r.Seconds += w.Seconds
		output += w.Output * w.Seconds
		busy += w.InFlight * w.Seconds
	}
	r.OutputTokS = output / r.Seconds
	r.Concurrency.Mean = busy / r.Seconds
}

// requests counts what finished after from and collects its latencies.
func (lv *level) requests(r *Report, from time.Time) {
	scaled := lv.opts.Clock.Scale() > 1
	end := lv.ledger.ended()
	var ttft, tpot, e2e, lag []float64
	var itl []weightedSample
	inside, good := 0, 0
	for _, rec := range lv.records {
		if finished := rec.Intended.Add(rec.E2E); finished.Before(from) {
			r.Warmup++
			continue
		} else if rec.Failed == "" && finished.Before(end) {
			inside++
			if lv.opts.SLO.met(rec.Request) {
				good++
			}
		}
		r.count(rec.Request)
		// A lag belongs to the part its request was due in. The volley of all clients at the level's very
		// start is nobody's steady state: the last of it leaves late on any machine.
		if !rec.Intended.Before(from) && rec.Intended.After(lv.ledger.start) {
			lag = append(lag, ms(rec.Sent.Sub(rec.Intended)))
		}
		if rec.Failed != "" {
			continue
		}
		ttft = append(ttft, ms(rec.TTFT))
		e2e = append(e2e, ms(rec.E2E))
		if rec.Output > 1 {
			tpot = append(tpot, ms(rec.E2E-rec.TTFT)/float64(rec.Output-1))
		}
		if !scaled {
			for _, g := range lv.gaps[rec.gapsFrom:rec.gapsTo] {
				itl = append(itl, weightedSample{float64(g.Ms), int(g.Tokens)})
			}
		}
	}
	r.TTFTms, r.TPOTms, r.E2Ems = Distribute(ttft), Distribute(tpot), Distribute(e2e)
	r.ITLms = distribute(itl)
	if d := Distribute(lag); d != nil {
		r.Client.SendLagMs.P99 = d.P99
	}
	r.RequestsS, r.GoodputS = float64(inside)/r.Seconds, float64(good)/r.Seconds
	if r.Tokens.Prompt > 0 {
		r.CacheHitRatio = float64(r.Tokens.Cached) / float64(r.Tokens.Prompt)
	}
}

// count adds one finished request. A failed one has wanted its tokens and got none that count.
func (r *Report) count(q Request) {
	r.Requests.Sent++
	r.Tokens.Wanted += int64(q.Wanted)
	if q.Failed != "" {
		r.Requests.Failed[q.Failed]++
		if len(r.Errors) < mostErrors {
			r.Errors = append(r.Errors, fmt.Sprintf("%s: %s", q.Failed, q.Error))
		}
		return
	}
	r.Requests.OK++
	r.Tokens.Got += int64(q.Output)
	r.Tokens.Prompt += int64(q.Prompt)
	r.Tokens.Cached += int64(q.Cached)
}

// clientCPU is the client's share of its cores in the measured part.
func (lv *level) clientCPU(first int) float64 {
	if lv.opts.CPUShare != nil {
		return lv.opts.CPUShare()
	}
	last := len(lv.cpu) - 1
	if first >= last { // no whole window: up to now
		return cpuShare(lv.cpu[min(first, last)], readCPU())
	}
	return cpuShare(lv.cpu[first], lv.cpu[last])
}

// flag adds the remarks a reader needs beside the figures.
func (lv *level) flag(r *Report) {
	if !r.Steady {
		r.Flags = append(r.Flags, "not steady")
	}
	if r.Cut > 0 {
		r.Flags = append(r.Flags, fmt.Sprintf("%d requests were still running when the level was over: latencies leave them out", r.Cut))
	}
	if lv.dead {
		r.Flags = append(r.Flags, fmt.Sprintf("ended early: the last %d requests failed", lv.failing))
	}
}

// disagreement is the difference of client's and server's throughput that is flagged.
const disagreement = 0.05

// SetServer notes the server's own output tok/s for the measured part and flags a difference above 5%.
func (r *Report) SetServer(tokS float64) {
	r.ServerTokS = tokS
	if tokS <= 0 || r.OutputTokS <= 0 {
		return
	}
	if d := tokS/r.OutputTokS - 1; math.Abs(d) > disagreement {
		r.Flags = append(r.Flags, fmt.Sprintf("server disagrees by %.0f%%", 100*math.Abs(d)))
	}
}
