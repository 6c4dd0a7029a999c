package trial

import (
	"fmt"

	"sgtune/sglang"
)

// consequences are fatal lines that only tell that something failed earlier: SGLang kills its own
// tree after any failure, and siblings of a dead rank complain for pages.
var consequences = map[string]bool{kindSigquit: true, kindChild: true, kindChildExit: true, kindDiedInit: true}

// firstFatal: the earliest fatal line that is a cause.
func firstFatal(f *Facts) (Verdict, bool) {
	if f.Ending == EndDone || f.Ending == EndPruned || f.Ending == EndUnknown && f.Exit.Alive {
		return Verdict{}, false // it lived on
	}
	for _, e := range f.Log.Fatal {
		if consequences[e.Kind] {
			continue
		}
		judge, known := fatal[e.Kind]
		if !known {
			judge = exception
		}
		v := judge(f, e)
		if v.Phase == "" {
			v.Phase = e.Phase
		}
		if v.Numbers == nil {
			v.Numbers = e.Values
		}
		quote(&v, e)
		return v, true
	}
	return Verdict{}, false
}

// fatal maps a kind of fatal line to the verdict it proves.
var fatal = map[string]func(*Facts, sglang.Event) Verdict{
	kindGPUOOM:                gpuOOM,
	"graph_failed":            graphFailed,
	"not_enough_memory":       nonPositive,
	"weights_leave_no_kv":     nonPositive,
	"host_mem_insufficient":   hostRefused,
	"host_register_failed":    hostRefused,
	"hicache_smaller_refused": func(*Facts, sglang.Event) Verdict { return smallerHicache },
	kindKernelOOM:             kernelOOM,
	"argparse_error":          badFlag,
	"config_unsupported":      combination,
	"flags_conflict":          combination,
	"no_accelerator": func(f *Facts, _ sglang.Event) Verdict {
		return env("no_gpu", []string{adviceRerun}, fmt.Sprintf("no GPU or driver was found in %s, where this configuration needs one", furthest(f)))
	},
	"mem_unbalanced": func(_ *Facts, e sglang.Event) Verdict {
		return env("gpu_memory_leftover", []string{adviceFreeGPU, adviceRerun},
			fmt.Sprintf("a GPU had only %.1f GB free before loading: something else holds its memory", e.Values["min_gpu_free_gb"]))
	},
	"port_in_use": func(f *Facts, e sglang.Event) Verdict {
		v := env("port_in_use", []string{adviceFreePort, adviceRerun}, fmt.Sprintf("port %.0f was taken by another process when the server wanted it", e.Values["port"]))
		for _, p := range f.Probes {
			if p.Status == 200 {
				v.Findings = append(v.Findings, Finding{"probe_answered_by_other_server", "the answers to " + p.Path + " came from whoever holds the port"})
				break
			}
		}
		return v
	},
	"shm_too_small": func(*Facts, sglang.Event) Verdict {
		return env("shm_too_small", []string{adviceRaiseShm, adviceRerun}, "/dev/shm is too small for the ranks to talk to each other")
	},
	"model_missing": func(_ *Facts, e sglang.Event) Verdict {
		return env("model_missing", []string{adviceRerun}, "the model could not be read: "+e.Text)
	},
	"nccl_error": func(*Facts, sglang.Event) Verdict {
		return Verdict{
			Outcome: Crashed, Cause: "nccl_error", Blames: BlameNo, Advice: []string{advicePeers, adviceRerun},
			Text: "the ranks lost each other (NCCL), and nothing failed before that",
		}
	},
	"cuda_illegal": cudaError,
	"watchdog":     watchdog,
}

func env(cause string, advice []string, text string) Verdict {
	return Verdict{Outcome: EnvFault, Cause: cause, Blames: BlameNo, Advice: advice, Text: text}
}

var smallerHicache = Verdict{
	Outcome: ConfigRejected, Cause: "hicache_smaller_than_device", Blames: BlameYes, Advice: []string{adviceRaiseHicache, adviceNoHicache},
	Text: "this version wants the host pool larger than the KV pool; raise hicache-size or switch it off",
}

// oomPlace is what running out of GPU memory means at one place of the server.
type oomPlace struct {
	phase  sglang.Phase // "" = the line's own
	cause  string
	during string
	advice []string
}

// oomPlaces: by the word the traceback gave.
var oomPlaces = map[string]oomPlace{
	"load":      {sglang.PhaseWeightLoad, "weights_too_big", "while loading weights", []string{adviceSmallerOrMore}},
	"graph":     {sglang.PhaseGraphCapture, "graph_capture_oom", "while capturing CUDA graphs", []string{adviceLowerFraction, adviceLowerGraphs}},
	"kv_pool":   {sglang.PhaseKVPool, "graph_capture_oom", "while allocating the KV pool", []string{adviceLowerFraction}},
	"host_pool": {sglang.PhaseHostPool, "hicache_device_buffers", "while building the hierarchical cache", []string{adviceLowerFraction, adviceLowerHicache}},
	"prefill":   {sglang.PhasePrefill, "prefill_activation", "in prefill", []string{adviceLowerFraction, adviceLowerChunk}},
	"decode":    {sglang.PhaseDecode, "decode_activation", "in decode", []string{adviceLowerFraction, adviceLowerRunning}},
	"sampling":  {sglang.PhaseDecode, "sampling_logits", "while sampling", []string{adviceLowerFraction, adviceLowerRunning}},
}

// phasePlace is the place when the traceback does not say it.
var phasePlace = map[sglang.Phase]string{
	sglang.PhaseLaunch: "load", sglang.PhaseDistInit: "load", sglang.PhaseWeightLoad: "load", sglang.PhaseKVPool: "kv_pool",
	sglang.PhaseGraphCapture: "graph", sglang.PhaseHostPool: "host_pool", sglang.PhasePrefill: "prefill", sglang.PhaseHTTPStart: "prefill",
	sglang.PhaseWarmup: "prefill", sglang.PhaseReady: "prefill", sglang.PhaseDecode: "decode",
}

func gpuOOM(f *Facts, e sglang.Event) Verdict {
	where := e.Words["where"]
	if _, known := oomPlaces[where]; !known {
		where = phasePlace[e.Phase]
	}
	p, known := oomPlaces[where]
	if !known {
		p = oomPlaces["decode"]
	}
	v := Verdict{Outcome: GPUOOM, Phase: p.phase, Cause: p.cause, Blames: BlameYes, Advice: p.advice, Numbers: copyNumbers(e.Values)}
	if where == "kv_pool" && f.Log.Memory.Tokens == 0 { // the pool itself did not fit
		v.Phase = sglang.PhaseKVPool
	}
	when := ""
	if f.UnderLoad > 0 {
		when = " " + span(f.UnderLoad) + " into the load"
	}
	v.Text = fmt.Sprintf("GPU memory ran out %s%s%s", p.during, when, wanted(e))
	if len(f.Log.Fatal) > 1 {
		v.Findings = []Finding{{"secondary_errors", fmt.Sprintf("%d more fatal lines follow from it", len(f.Log.Fatal)-1)}}
	}
	return v
}

// wanted says what an allocation asked for and found.
func wanted(e sglang.Event) string {
	tried, ok := e.Values["oom_tried_mib"]
	if !ok {
		return ""
	}
	free, ok := e.Values["oom_gpu_free_mib"]
	if !ok {
		return fmt.Sprintf(": it wanted %s", mib(tried))
	}
	return fmt.Sprintf(": it wanted %s, %s was free", mib(tried), mib(free))
}

func mib(n float64) string {
	if n >= 100 {
		return fmt.Sprintf("%.2f GiB", n/1024)
	}
	return fmt.Sprintf("%.0f MiB", n)
}

func graphFailed(f *Facts, e sglang.Event) Verdict {
	return Verdict{
		Outcome: GPUOOM, Phase: sglang.PhaseGraphCapture, Cause: "graph_capture_oom", Blames: BlameYes,
		Advice: []string{adviceLowerFraction, adviceLowerGraphs}, Text: "CUDA graphs could not be captured: " + e.Words["msg"],
	}
}

func nonPositive(f *Facts, _ sglang.Event) Verdict {
	v := Verdict{Outcome: GPUOOM, Phase: sglang.PhaseKVPool, Cause: "kv_pool_nonpositive", Blames: BlameYes, Advice: []string{adviceRaiseFraction}}
	v.Text = "the weights leave no memory for the KV pool at this mem-fraction-static; raise it"
	if m := f.Log.Memory; m.BeforeLoadGiB > 0 && m.AfterLoadGiB > 0 {
		v.Text = fmt.Sprintf("the weights leave %.2f of %.2f GB, less than this mem-fraction-static keeps back; raise it above %.3f",
			m.AfterLoadGiB, m.BeforeLoadGiB, 1-m.AfterLoadGiB/m.BeforeLoadGiB)
	}
	return v
}

func hostRefused(_ *Facts, e sglang.Event) Verdict {
	v := Verdict{Outcome: HostOOM, Phase: sglang.PhaseHostPool, Cause: "hicache_check_refused", Blames: BlameYes, Advice: []string{adviceLowerHicache}}
	v.Text = "SGLang refused the host pool: there is not enough host memory; lower hicache-size"
	if want, ok := e.Values["host_request_gb_per_rank"]; ok {
		v.Text = fmt.Sprintf("SGLang refused a host pool of %.2f GB per rank with %.2f GB free (it keeps 10.7 GB back); lower hicache-size", want, e.Values["host_free_gb"])
	}
	return v
}

func kernelOOM(f *Facts, e sglang.Event) Verdict {
	v := Verdict{Outcome: HostOOM, Phase: e.Phase, Cause: "kernel_oom_kill", Blames: BlameYes, Advice: []string{adviceLowerHicache}}
	oomKill(f, &v)
	if e.Words["where"] == "Memory cgroup out of memory" {
		v.Cause, v.Advice = "cgroup_limit", []string{adviceContainerRAM, adviceLowerHicache}
	}
	return v
}

// exception is any other Python error. Before SGLang printed its arguments a ValueError or an
// AssertionError is a refused combination of flags.
func exception(f *Facts, e sglang.Event) Verdict {
	_, parsed := f.First[kindServerArgs]
	_, begun := f.First[kindDistBegin]
	if kind := e.Words["type"]; e.Kind == kindTraceback && !parsed && !begun && (kind == "ValueError" || kind == "AssertionError") {
		return combination(f, e)
	}
	v := Verdict{Outcome: Crashed, Cause: "python_exception", Blames: BlamePartly, Advice: []string{adviceRerun, adviceReport}}
	v.Text = fmt.Sprintf("the server failed in %s: %s", e.Phase, e.Text)
	return v
}

func cudaError(_ *Facts, e sglang.Event) Verdict {
	return Verdict{
		Outcome: Crashed, Cause: "cuda_error", Blames: BlamePartly, Advice: []string{adviceRerun, adviceReport},
		Text: fmt.Sprintf("a GPU kernel failed in %s: %s", e.Phase, e.Text),
	}
}

func watchdog(f *Facts, e sglang.Event) Verdict {
	v := Verdict{Outcome: Stuck, Cause: "watchdog_timeout", Blames: BlamePartly, Advice: []string{adviceRerun}}
	v.Text = fmt.Sprintf("SGLang's watchdog saw no forward pass end for %.0f s in %s", e.Values["watchdog_timeout_s"], e.Phase)
	return v
}
