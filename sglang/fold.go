package sglang

import (
	"maps"
	"net/http"
	"slices"
)

// maxKept is how many fatal events and how many notes LogFacts keeps.
const maxKept = 64

var phaseOrder = map[Phase]int{
	"": -1, PhaseLaunch: 0, PhaseDistInit: 1, PhaseWeightLoad: 2, PhaseKVPool: 3, PhaseGraphCapture: 4, PhaseHostPool: 5,
	PhaseHTTPStart: 6, PhaseWarmup: 7, PhaseReady: 8, PhasePrefill: 9, PhaseDecode: 10, PhaseBench: 11, PhaseShutdown: 12,
}

// After reports whether p comes later in a server's life than q.
func (p Phase) After(q Phase) bool { return phaseOrder[p] > phaseOrder[q] }

// Facts returns what the log has said so far. The result is a copy: later calls to Feed change
// nothing in it.
func (r *Reader) Facts() LogFacts {
	f := r.facts
	f.Fatal = cloneEvents(f.Fatal)
	f.Notes = cloneEvents(f.Notes)
	f.LastBatch = cloneEvent(f.LastBatch)
	return f
}

func cloneEvents(events []Event) []Event {
	out := slices.Clone(events)
	for i := range out {
		out[i] = cloneEvent(out[i])
	}
	return out
}

func cloneEvent(ev Event) Event {
	ev.Values = maps.Clone(ev.Values)
	ev.Words = maps.Clone(ev.Words)
	return ev
}

// rank returns the state of one rank, shared by all once maxRanks are known.
func (r *Reader) rank(n int) *rankState {
	s, ok := r.ranks[n]
	if !ok {
		if len(r.ranks) >= maxRanks {
			n = -1
		}
		if s, ok = r.ranks[n]; ok {
			return s
		}
		s = &rankState{phase: PhaseLaunch}
		r.ranks[n] = s
	}
	return s
}

// enter moves a rank, and with it the log, forward to a phase.
func (r *Reader) enter(rank *rankState, phase Phase) {
	if phase.After(rank.phase) {
		rank.phase = phase
	}
	if phase.After(r.facts.Phase) {
		r.facts.Phase = phase
	}
}

// phaseOf is the phase an event proves. A batch line means warm-up before the ready line and
// serving after it; the one-token batch of a health probe means neither.
func (r *Reader) phaseOf(p *pattern, ev Event) Phase {
	switch {
	case p.kind == "prefill_batch" && ev.Values["new_token"]+ev.Values["cached_token"] <= 1:
		return ""
	case (p.kind == "prefill_batch" || p.kind == "decode_batch") && !r.facts.Ready:
		return PhaseWarmup
	case p.kind == "prefill_batch":
		return PhasePrefill
	case p.kind == "decode_batch":
		return PhaseDecode
	}
	return p.phase
}

// fold adds one event to the facts.
func (r *Reader) fold(ev Event, lvl level, rank *rankState) {
	f := &r.facts
	switch {
	case lvl == fatal && len(f.Fatal) < maxKept:
		f.Fatal = append(f.Fatal, ev)
	case lvl == note && len(f.Notes) < maxKept && !f.noted(ev):
		f.Notes = append(f.Notes, ev)
	}
	switch ev.Kind {
	case "fired_up":
		f.Ready = true
	case "uvicorn_running":
		f.Port = int(ev.Values["port"])
	case "health_access":
		if ev.Values["status"] == http.StatusOK {
			f.Health200++
		} else {
			f.Health503++
		}
	case "prefill_batch", "decode_batch", "retract":
		if ev.Rank <= 0 {
			f.addBatch(ev)
		}
	default:
		f.Memory.add(ev, rank)
	}
}

// noted reports whether another rank has just said the same.
func (f *LogFacts) noted(ev Event) bool {
	if len(f.Notes) == 0 {
		return false
	}
	last := f.Notes[len(f.Notes)-1]
	return last.Kind == ev.Kind && last.Rank != ev.Rank && last.Text == ev.Text
}

func (f *LogFacts) addBatch(ev Event) {
	switch ev.Kind {
	case "prefill_batch":
		f.Prefills++
		f.LastBatch = ev
	case "decode_batch":
		f.Decodes++
		f.LastBatch = ev
		f.MaxRunning = max(f.MaxRunning, ev.Values["running"])
		f.LastGenTokS = ev.Values["gen_tok_s"]
		f.PeakGenTokS = max(f.PeakGenTokS, f.LastGenTokS)
	case "retract":
		f.Retracts++
		f.Retracted += int(ev.Values["retracted"])
	}
}

// add takes one memory step. Of figures that every rank prints the smallest rank's is kept.
func (o *Observation) add(ev Event, rank *rankState) {
	v := ev.Values
	switch ev.Kind {
	case "server_args":
		o.Fraction, o.TP, o.PageSize = v["mem_fraction_static"], int(v["tp_size"]), int(v["page_size"])
		o.ChunkedPrefill, o.MaxTotalTokens = int(v["chunked_prefill_size"]), int(v["requested_tokens"])
	case "weight_begin":
		keepLeast(&o.BeforeLoadGiB, v["avail_before_load_gb"])
	case "weight_end":
		if keepLeast(&o.AfterLoadGiB, v["avail_after_load_gb"]) {
			o.WeightsGiB = v["weights_gb"]
		}
	case "kv_allocated":
		if o.KVGiB == 0 && o.Tokens == 0 {
			o.setPool(ev)
		}
	case "kv_resized":
		o.setPool(ev)
	case "memory_pool_end":
		keepLeast(&o.AfterPoolGiB, v["avail_after_pool_gb"])
	case "graph_end":
		rank.graphGiB += v["graph_mem_gb"]
		if keepLeast(&o.AfterGraphGiB, v["avail_after_graph_gb"]) {
			o.GraphGiB = rank.graphGiB
		}
	case "capacity":
		o.setCapacity(v)
	case "host_pool":
		if o.HostPoolGB == 0 {
			o.HostPoolTokens, o.HostPoolGB = int(v["host_tokens"]), v["host_request_gb_per_rank"]
		}
	}
}

func (o *Observation) setPool(ev Event) {
	o.KVDtype = ev.Words["dtype"]
	o.Tokens = int(ev.Values["tokens"])
	o.KVGiB = ev.Values["kv_cache_gb"]
	o.KVParts = 1
	if _, split := ev.Values["v_gb"]; split {
		o.KVParts = 2
	}
}

func (o *Observation) setCapacity(v map[string]float64) {
	o.Tokens, o.MaxRunning, o.ContextLen = int(v["max_total_num_tokens"]), int(v["max_running_requests"]), int(v["context_len"])
	if chunk, ok := v["chunked_prefill_size"]; ok {
		o.ChunkedPrefill = int(chunk)
	}
	o.AvailableGiB = v["available_gpu_mem_gb"]
}

// keepLeast stores v when it is the first or the smallest figure and reports whether it did.
func keepLeast(kept *float64, v float64) bool {
	if *kept != 0 && v >= *kept {
		return false
	}
	*kept = v
	return true
}
