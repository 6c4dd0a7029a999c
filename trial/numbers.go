package trial

import "maps"

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
	if asked, ok := f.Flags.Float("max-running-requests"); ok {
		out["requested_max_running_requests"] = asked
	}
	for _, p := range f.Probes {
		switch p.Status {
		case 200:
			out["health_200_count"] += float64(p.Count)
		case 503:
			out["health_503_count"] += float64(p.Count)
		}
	}
	return out
}

// hostPoolTotal is decimal GB of the host pools of all ranks on this host, 0 without pools.
func hostPoolTotal(f *Facts) float64 { return f.Log.Memory.HostPoolGB * float64(ranks(f)) }

// ranks is how many ranks of the server this host carries.
func ranks(f *Facts) int {
	if f.Ranks > 0 {
		return f.Ranks
	}
	return max(1, f.Log.Memory.TP)
}

func copyNumbers(m map[string]float64) map[string]float64 {
	out := map[string]float64{}
	maps.Copy(out, m)
	return out
}
