package trial

import (
	"maps"

	"sgtune/sglang"
)

// numbers is every figure of the failure vocabulary that the log and the launch give. Units are in
// the names; figures are as printed.
func numbers(f *Facts) map[string]float64 {
	m, out := f.Log.Memory, map[string]float64{}
	put := func(name string, v float64) {
		if v != 0 {
			out[name] = v
		}
	}
	put("max_total_num_tokens", float64(m.Tokens))
	put("max_running_requests", float64(m.MaxRunning))
	put("context_len", float64(m.ContextLen))
	put("chunked_prefill_size", float64(m.ChunkedPrefill))
	put("available_gpu_mem_gb", m.AvailableGiB)
	put("mem_fraction_static", m.Fraction)
	put("tp_size", float64(m.TP))
	put("avail_before_load_gb", m.BeforeLoadGiB)
	put("weights_gb", m.WeightsGiB)
	put("avail_after_load_gb", m.AfterLoadGiB)
	put("kv_cache_gb", m.KVGiB)
	put("avail_after_pool_gb", m.AfterPoolGiB)
	put("graph_mem_gb", m.GraphGiB)
	put("host_request_gb_per_rank", m.HostPoolGB)
	put("host_request_gb_total", hostPoolTotal(f))
	put("peak_gen_tok_s", f.Log.PeakGenTokS)
	put("last_gen_tok_s", f.Log.LastGenTokS)
	put("max_running_seen", f.Log.MaxRunning)
	put("retract_events", float64(f.Log.Retracts))
	put("retracted_reqs_total", float64(f.Log.Retracted))
	put("requested_max_running_requests", f.First[kindServerArgs].Values["requested_max_running_requests"])
	asked(f, out)
	for _, kind := range []string{kindShards, kindHealthFailed} {
		maps.Copy(out, f.Last[kind].Values)
	}
	healthCounts(f, out)
	if child, found := firstChild(f); found {
		put("child_exit_code", child.Values["child_exit_code"])
	}
	return out
}

// asked fills what was asked for from the flags where the log has no server_args line.
func asked(f *Facts, out map[string]float64) {
	if n, ok := f.Flags.Float("max-running-requests"); ok {
		out["requested_max_running_requests"] = n
	}
	for flag, name := range map[string]string{"mem-fraction-static": "mem_fraction_static", "tp-size": "tp_size", "chunked-prefill-size": "chunked_prefill_size"} {
		if n, ok := f.Flags.Float(flag); ok && out[name] == 0 {
			out[name] = n
		}
	}
}

// healthCounts are the answers that the probes saw, else those that the access lines tell of.
func healthCounts(f *Facts, out map[string]float64) {
	for _, p := range f.Probes {
		switch p.Status {
		case 200:
			out["health_200_count"] += float64(p.Count)
		case 503:
			out["health_503_count"] += float64(p.Count)
		}
	}
	if len(f.Probes) > 0 {
		return
	}
	if n := f.Log.Health200; n > 0 {
		out["health_200_count"] = float64(n)
	}
	if n := f.Log.Health503; n > 0 {
		out["health_503_count"] = float64(n)
	}
}

// firstChild is the first event that tells how a child ended.
func firstChild(f *Facts) (sglang.Event, bool) {
	for _, events := range [][]sglang.Event{f.Log.Fatal, f.Log.Notes} {
		for _, e := range events {
			if _, told := e.Values["child_exit_code"]; told {
				return e, true
			}
		}
	}
	return sglang.Event{}, false
}

// hostPoolTotal is decimal GB of the host pools of all ranks on this host, 0 without pools.
func hostPoolTotal(f *Facts) float64 { return f.Log.Memory.HostPoolGB * float64(ranks(f)) }

// ranks is how many ranks of the server this host carries.
func ranks(f *Facts) int {
	if f.Ranks > 0 {
		return f.Ranks
	}
	all := f.Log.Memory.TP
	if n, ok := f.Flags.Float("tp-size"); ok && all == 0 {
		all = clampInt(n)
	}
	args := f.First[kindServerArgs].Values
	if pp := int(args["pp_size"]); pp > 1 {
		all *= pp
	}
	if dp := int(args["dp_size"]); dp > 1 && f.First[kindServerArgs].Words["enable_dp_attention"] != "True" {
		all *= dp
	}
	if nodes := f.nodes(); nodes > 1 {
		all = (all + nodes - 1) / nodes
	}
	return max(1, all)
}

func copyNumbers(m map[string]float64) map[string]float64 {
	out := make(map[string]float64, len(m))
	maps.Copy(out, m)
	return out
}
