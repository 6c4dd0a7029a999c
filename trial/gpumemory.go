package trial

import (
	"fmt"
	"strings"

	"sgtune/sglang"
)

// Verdicts about GPU memory. There are two opposite errors: "CUDA out of memory" asks for less static
// memory, "Not enough memory. Please try to increase --mem-fraction-static" for more.

// oomPlace is what running out of GPU memory means at one place of the server.
type oomPlace struct {
	phase  sglang.Phase // "" = the line's own
	cause  string
	during string
	advice []string
	remedy string
}

// oomPlaces: by the word the traceback gave.
var oomPlaces = map[string]oomPlace{
	"load": {
		sglang.PhaseWeightLoad, "weights_too_big", "while loading weights",
		[]string{adviceSmallerOrMore},
		"the weights do not fit: more GPUs (tp-size), a smaller or more quantized model",
	},
	"graph": {
		sglang.PhaseGraphCapture, "graph_capture_oom", "while capturing CUDA graphs",
		[]string{adviceLowerFraction, adviceLowerGraphs},
		"lower mem-fraction-static first, then cuda-graph-max-bs",
	},
	"kv_pool": {"", "graph_capture_oom", "while allocating the KV pool", []string{adviceLowerFraction}, "lower mem-fraction-static"},
	"host_pool": {
		sglang.PhaseHostPool, "hicache_device_buffers", "while building the hierarchical cache",
		[]string{adviceLowerFraction, adviceLowerHicache, adviceNoHicache},
		"its buffers on the GPU need room: lower mem-fraction-static",
	},
	"prefill": {
		sglang.PhasePrefill, "prefill_activation", "in prefill",
		[]string{adviceLowerFraction, adviceLowerChunk},
		"lower mem-fraction-static by a step or halve chunked-prefill-size",
	},
	"decode": {
		sglang.PhaseDecode, "decode_activation", "in decode",
		[]string{adviceLowerFraction, adviceLowerRunning},
		"lower mem-fraction-static by a step or allow fewer running requests",
	},
	"sampling": {
		"", "sampling_logits", "while sampling",
		[]string{adviceLowerFraction, adviceLowerRunning},
		"lower mem-fraction-static by a step or allow fewer running requests",
	},
}

// phasePlace is the place when the traceback does not say it.
var phasePlace = map[sglang.Phase]string{
	sglang.PhaseLaunch: "load", sglang.PhaseDistInit: "load", sglang.PhaseWeightLoad: "load", sglang.PhaseKVPool: "kv_pool",
	sglang.PhaseGraphCapture: "graph", sglang.PhaseHostPool: "host_pool", sglang.PhasePrefill: "prefill", sglang.PhaseHTTPStart: "prefill",
	sglang.PhaseWarmup: "prefill", sglang.PhaseReady: "prefill", sglang.PhaseDecode: "decode", sglang.PhaseShutdown: "decode",
}

func gpuOOM(f *Facts, e sglang.Event) Verdict {
	if v, others := occupied(f, e); others {
		return v
	}
	_, sized := e.Values["oom_tried_mib"]
	if e.Words["where"] == "host_pool" && !sized { // cudaHostAlloc: host memory, in the words of the GPU
		return hostPinning(f, e)
	}
	if !e.Phase.After(sglang.PhaseDistInit) {
		return leftover("GPU memory ran out before any weight was loaded, so something else holds it")
	}
	where := placeOf(f, e)
	p := oomPlaces[where]
	v := Verdict{Outcome: GPUOOM, Phase: p.phase, Cause: p.cause, Blames: BlameYes, Advice: p.advice, Numbers: copyNumbers(e.Values)}
	delete(v.Numbers, "gpu")
	serving := where == "prefill" || where == "decode" || where == "sampling"
	switch {
	case serving && !f.ready():
		v.Phase = sglang.PhaseWarmup
	case where == "sampling":
		v.Phase = lastBatchPhase(f)
	}
	when := ""
	if f.UnderLoad > 0 {
		when = " " + span(f.UnderLoad) + " into the load"
	}
	v.Text = fmt.Sprintf("GPU memory ran out %s%s%s; %s", p.during, when, wanted(f, e), p.remedy)
	return v
}

// placeOf is the place where memory ran out: what the traceback says, else what the phase or the last
// batch line suggest.
func placeOf(f *Facts, e sglang.Event) string {
	where := e.Words["where"]
	if _, known := oomPlaces[where]; !known {
		where = phasePlace[e.Phase]
		if f.ready() && f.Log.LastBatch.Kind != "" && (e.Phase == sglang.PhasePrefill || e.Phase == sglang.PhaseDecode) {
			where = string(lastBatchPhase(f))
		}
	}
	if where == "load" && f.Log.Memory.Tokens > 0 && e.Words["where"] == "" {
		where = "graph"
	}
	if where == "kv_pool" && f.Log.Memory.Tokens > 0 && e.Words["where"] == "" {
		where = "graph" // the pool was there already
	}
	if _, known := oomPlaces[where]; !known {
		return "decode"
	}
	return where
}

// lastBatchPhase is what the server computed last.
func lastBatchPhase(f *Facts) sglang.Phase {
	if f.Log.LastBatch.Kind == kindPrefill {
		return sglang.PhasePrefill
	}
	return sglang.PhaseDecode
}

// followed counts the other fatal lines: whatever came first, they are no causes of their own.
func followed(f *Facts, e sglang.Event) int {
	n := 0
	for _, other := range f.Log.Fatal {
		if other.Line != e.Line && other.Kind != kindSigquit && !survived(f, other) {
			n++
		}
	}
	return n
}

// wanted says what an allocation asked for and found, and on which ranks.
func wanted(f *Facts, e sglang.Event) string {
	text := ""
	if tried, ok := e.Values["oom_tried_mib"]; ok {
		text = ": it wanted " + mib(tried)
		if free, ok := e.Values["oom_gpu_free_mib"]; ok {
			text += fmt.Sprintf(", %s was free", mib(free))
		}
	}
	if ids := failingRanks(f, e); ranks(f) > 1 && len(ids) > 0 {
		text += ", on rank " + strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", ", "), "[]")
	}
	return text
}

func mib(n float64) string {
	if n >= 100 {
		return fmt.Sprintf("%.2f GiB", n/1024)
	}
	return fmt.Sprintf("%.0f MiB", n)
}

// graphFailed: SGLang wraps whatever failed while it captured graphs. Only memory is memory.
func graphFailed(f *Facts, e sglang.Event) Verdict {
	msg := strings.ToLower(e.Words["msg"])
	switch {
	case strings.Contains(msg, "out of memory"), strings.Contains(msg, "alloc_failed"), strings.Contains(msg, "not_initialized"):
	case strings.Contains(msg, "cuda error"), strings.Contains(msg, "cublas_status"), strings.Contains(msg, "illegal"):
		v := cudaError(f, e)
		v.Phase = sglang.PhaseGraphCapture
		return v
	default:
		v := exception(f, e)
		v.Phase = sglang.PhaseGraphCapture
		return v
	}
	return Verdict{
		Outcome: GPUOOM, Phase: sglang.PhaseGraphCapture, Cause: "graph_capture_oom", Blames: BlameYes, Advice: []string{adviceLowerFraction, adviceLowerGraphs},
		Text: "GPU memory ran out while capturing CUDA graphs: " + e.Words["msg"] + "; lower mem-fraction-static first, then cuda-graph-max-bs",
	}
}

func nonPositive(f *Facts, e sglang.Event) Verdict {
	if v, others := occupied(f, e); others {
		return v
	}
	v := Verdict{Outcome: GPUOOM, Phase: sglang.PhaseKVPool, Cause: "kv_pool_nonpositive", Blames: BlameYes, Advice: []string{adviceRaiseFraction}}
	v.Text = "the weights leave no memory for the KV pool at this mem-fraction-static; raise it (lowering it makes this worse)"
	lowest := e.Values["lowest_fraction"]
	if m := f.Log.Memory; m.BeforeLoadGiB > 0 && m.AfterLoadGiB > 0 {
		if lowest == 0 {
			lowest = 1 - m.AfterLoadGiB/m.BeforeLoadGiB
		}
		v.Text = fmt.Sprintf("the weights leave %.2f of %.2f GB, less than this mem-fraction-static keeps back; raise it above %.3f (lowering it makes this worse)",
			m.AfterLoadGiB, m.BeforeLoadGiB, lowest)
	} else if lowest > 0 {
		v.Text = fmt.Sprintf("the weights leave no memory for the KV pool at this mem-fraction-static; raise it above %.3f (lowering it makes this worse)", lowest)
	}
	const hopeless = 0.95 // graphs and activations need the rest
	if lowest > hopeless {
		v.Advice = []string{adviceSmallerOrMore, adviceRaiseFraction}
		v.Text += "; so high a fraction leaves no room for graphs: more GPUs or a smaller model"
	}
	return v
}

// stateCache: no room for the states of a linear-attention model.
func stateCache(*Facts, sglang.Event) Verdict {
	return Verdict{
		Outcome: GPUOOM, Phase: sglang.PhaseKVPool, Cause: "kv_pool_nonpositive", Blames: BlameYes, Advice: []string{adviceRaiseFraction, adviceLowerRunning},
		Text: "no GPU memory is left for the state slots of this model's linear attention; raise mem-fraction-static or ask for fewer running requests",
	}
}
