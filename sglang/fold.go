package sglang

import (
	"maps"
	"net/http"
	"slices"
)

// maxKept is how many fatal events and how many notes LogFacts keeps.
const maxKept = 64

// order is the place of a phase in a server's life. It is asked for every batch line.
func (p Phase) order() int {
	switch p {
	case PhaseLaunch:
		return 0
	case PhaseDistInit:
		return 1
	case PhaseWeightLoad:
		return 2
	case PhaseKVPool:
		return 3
	case PhaseGraphCapture:
		return 4
	case PhaseHostPool:
		return 5
	case PhaseHTTPStart:
		return 6
	case PhaseWarmup:
		return 7
	case PhaseReady:
		return 8
	case PhasePrefill:
		return 9
	case PhaseDecode:
		return 10
	case PhaseBench:
		return 11
	case PhaseShutdown:
		return 12
	}
	return -1
}

// After reports whether p comes later in a server's life than q.
func (p Phase) After(q Phase) bool { return p.order() > q.order() }

// rankState is what is remembered of one rank's lines.
type rankState struct {
	phase    Phase
	graphGiB float64
	batches  bool // it prints batch lines: the first rank of each DP rank does
}

// Facts returns what the log has said so far. The result is a copy: later calls to Feed change
// nothing in it.
func (r *Reader) Facts() LogFacts {
	f := r.facts
	f.Fatal = cloneEvents(f.Fatal)
	f.Notes = cloneEvents(f.Notes)
	f.First = cloneKinds(f.First)
	f.Last = cloneKinds(f.Last)
	for i := range r.last {
		if r.last[i].line == 0 {
			continue
		}
		ev := r.last[i].event()
		f.Last[ev.Kind] = ev
		if f.LastBatch.Kind == "" || ev.Offset > f.LastBatch.Offset || ev.Offset == f.LastBatch.Offset && r.last[i].later {
			f.LastBatch = ev
		}
	}
	return f
}

func cloneEvents(events []Event) []Event {
	out := slices.Clone(events)
	for i := range out {
		out[i] = cloneEvent(out[i])
	}
	return out
}

func cloneKinds(events map[string]Event) map[string]Event {
	out := make(map[string]Event, len(events)+2)
	for kind, ev := range events {
		out[kind] = cloneEvent(ev)
	}
	return out
}

func cloneEvent(ev Event) Event {
	ev.Values = maps.Clone(ev.Values)
	ev.Words = maps.Clone(ev.Words)
	return ev
}

// rank returns the state of one rank, shared by all once maxRanks are known.
func (r *Reader) rank(dp, pp, tp int) *rankState {
	key := [3]int{dp, pp, tp}
	if r.latest != nil && r.latestKey == key {
		return r.latest
	}
	s, ok := r.ranks[key]
	if !ok {
		if len(r.ranks) >= maxRanks {
			key = [3]int{-1, -1, -1}
		}
		if s, ok = r.ranks[key]; ok {
			return s
		}
		s = &rankState{phase: PhaseLaunch}
		r.ranks[key] = s
	}
	r.latest, r.latestKey = s, key
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
	case "retract":
		if ev.PP <= 0 && (ev.Rank <= 0 || ev.DP >= 0 && rank.batches) {
			f.Retracts++
			f.Retracted += int(ev.Values["retracted"])
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

// add takes one memory step. Of figures that every rank prints the smallest rank's is kept.
func (o *Observation) add(ev Event, rank *rankState) {
	v := ev.Values
	switch ev.Kind {
	case "server_args":
		if d := ev.Words["kv_cache_dtype"]; d != "auto" {
			o.KVDtype = d // versions before 0.5.15 do not print it with the pool
		}
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
	if d := ev.Words["dtype"]; d != "" {
		o.KVDtype = d
	}
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
