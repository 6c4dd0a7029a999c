package trial

import (
	"fmt"

	"sgtune/sglang"
)

// Verdicts about the machine: the configuration was not tested.

func env(cause string, advice []string, text string) Verdict {
	return Verdict{Outcome: EnvFault, Cause: cause, Blames: BlameNo, Advice: advice, Text: text}
}

func noGPU(f *Facts, e sglang.Event) Verdict {
	return env("no_gpu", []string{adviceRerun},
		fmt.Sprintf("no usable GPU or driver was found in %s, where this configuration needs one (%s); look at nvidia-smi on the host and in the container", e.Phase, e.Text))
}

func lostGPU(_ *Facts, e sglang.Event) Verdict {
	return env("gpu_lost", []string{adviceRerun}, "a GPU stopped answering ("+e.Text+"); reset it or restart the host, then run the same again")
}

func brokenGPU(_ *Facts, e sglang.Event) Verdict {
	return env("ecc", []string{adviceRerun}, "a GPU has memory errors that it cannot correct ("+e.Text+"); take it out of use or reset it, then run the same again")
}

// leftover: something else holds memory of a GPU.
func leftover(text string) Verdict {
	return env("gpu_memory_leftover", []string{adviceFreeGPU, adviceRerun}, text+"; end what holds it, wait until its memory is back, then run the same again")
}

func unbalanced(_ *Facts, e sglang.Event) Verdict {
	v := leftover("the GPUs have unequal free memory before loading: something else holds memory of one of them")
	if free, ok := e.Values["min_gpu_free_gb"]; ok {
		v = leftover(fmt.Sprintf("a GPU had only %.1f of %.1f GB free before loading: something else holds its memory", free, e.Values["local_gpu_free_gb"]))
	}
	v.FailingRanks = []int{} // the ranks that complain are those whose GPUs are free
	return v
}

func portTaken(f *Facts, e sglang.Event) Verdict {
	port := e.Values["port"]
	if port == 0 && e.Phase == sglang.PhaseHTTPStart {
		port, _ = f.Flags.Float("port")
		if own := f.First[kindServerArgs].Values["port"]; port == 0 {
			port = own
		}
	}
	v := env("port_in_use", []string{adviceFreePort, adviceRerun}, "a port was taken by another process when the server wanted it; end that process or choose another port")
	if port > 0 {
		v.Numbers = map[string]float64{"port": port}
		v.Text = fmt.Sprintf("port %.0f was taken by another process when the server wanted it; end that process or choose another port", port)
	}
	for _, p := range f.Probes {
		if p.Status == 200 {
			v.Findings = append(v.Findings, Finding{"probe_answered_by_other_server", "the answers to " + p.Path + " came from whoever holds the port"})
			break
		}
	}
	return v
}

func smallShm(*Facts, sglang.Event) Verdict {
	return env("shm_too_small", []string{adviceRaiseShm, adviceRerun}, "/dev/shm is too small for the ranks to talk to each other; give the container more (docker: --shm-size 32g or --ipc host)")
}

func modelMissing(_ *Facts, e sglang.Event) Verdict {
	return env("model_missing", []string{adviceFixFlag, adviceRerun}, "the model could not be read: "+e.Text+"; correct its path, download or token, then run the same again")
}

// heldMiB is memory of one GPU in use before the launch, or held by others, that a server cannot do without.
const heldGiB = 4.0

// heldBefore is the largest memory in use on a GPU before the launch, when it was too much.
func (f *Facts) heldBefore() (gb float64, held bool) {
	if f.Context == nil {
		return 0, false
	}
	for _, used := range f.Context.NVMLUsedBefore {
		gb = max(gb, used)
	}
	return gb, gb > heldGiB
}

// occupied tells memory that ran out because others hold it from memory that the configuration used up:
// by what was in use before the launch, or by what was missing when loading began.
func occupied(f *Facts, e sglang.Event) (Verdict, bool) {
	if gb, held := f.heldBefore(); held {
		return leftover(fmt.Sprintf("%.1f GB of a GPU were in use before the launch: something else holds its memory", gb)), true
	}
	total, before := e.Values["oom_gpu_total_gib"], f.Log.Memory.BeforeLoadGiB
	const share = 0.15 // of a GPU: more than contexts and communicators take
	if lost := total - before; total > 0 && before > 0 && lost > heldGiB && lost > share*total {
		return leftover(fmt.Sprintf("a GPU of %.1f GB had only %.1f GB free before loading: something else holds its memory", total, before)), true
	}
	return Verdict{}, false
}
