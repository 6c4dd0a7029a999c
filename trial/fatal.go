package trial

import (
	"fmt"
	"slices"
	"strings"

	"sgtune/sglang"
)

// weight says how much a fatal line proves.
type weight int

const (
	consequence weight = iota // only tells that something failed earlier
	symptom                   // a rank lost its peers: a cause only when nothing better is in the log
	cause                     // a cause where it stands
	proof                     // never follows from anything else: a cause wherever it stands
)

// weightOf tells causes from consequences: SGLang kills its own tree after any failure, and siblings
// of a dead rank complain for pages.
func weightOf(e sglang.Event) weight {
	switch e.Kind {
	case kindSigquit, kindChild, kindChildExit, kindDiedInit, kindChildDied:
		return consequence
	case kindNCCL, kindPeerLost, kindWarmup:
		return symptom
	case kindPythonFatal:
		if strings.HasPrefix(e.Words["msg"], "Aborted") {
			return symptom
		}
		return cause
	case kindTraceback:
		if isSymptom(e) {
			return symptom
		}
		return cause
	case kindCUDA, kindWatchdog, kindPeerWait, kindNativeCrash, kindKVAlloc, kindPoolLeak, kindWarmupBad:
		return cause
	}
	return proof
}

// symptoms are exceptions of processes whose peer or child has gone.
var symptoms = []string{
	"BrokenPipeError", "EOFError", "ConnectionResetError", "ConnectionRefusedError", "ConnectionError", "ConnectionAbortedError", "CancelledError",
	"KeyboardInterrupt", "SystemExit", "ZMQError", "BrokenProcessPool", "died during initialization", "Connection closed by peer", "Connection reset by peer",
	"Broken pipe", "Initialization failed. Please see the error messages above",
}

func isSymptom(e sglang.Event) bool {
	for _, sign := range symptoms {
		if strings.Contains(e.Text, sign) {
			return true
		}
	}
	return false
}

// firstFatal: the earliest fatal line that is a cause.
func firstFatal(f *Facts) (Verdict, bool) {
	if f.finished() || f.Log.Fatal == nil {
		return Verdict{}, false
	}
	e, found := firstCause(f)
	if !found {
		return Verdict{}, false
	}
	e = endOfChain(f, e)
	judge, known := fatal[e.Kind]
	if !known {
		judge = exception
	}
	v := judge(f, e)
	if v.Phase == "" {
		v.Phase = f.phaseOf(e)
	}
	if v.Numbers == nil {
		v.Numbers = copyNumbers(e.Values)
	}
	if v.Line == 0 {
		quote(&v, e)
	}
	if v.FailingRanks == nil {
		v.FailingRanks = failingRanks(f, e)
	}
	if n := followed(f, e); n > 0 {
		v.Findings = append(v.Findings, Finding{"secondary_errors", fmt.Sprintf("%d more fatal lines follow from it", n)})
	}
	return v, true
}

// phaseOf is the phase of a fatal line. The log of a node other than the first has no ready line and no
// batch lines; what its traceback was doing tells that it served.
func (f *Facts) phaseOf(e sglang.Event) sglang.Phase {
	served := sglang.Phase(e.Words["where"])
	follower := f.Log.First[kindServerArgs].Values["node_rank"] > 0 || f.Context != nil && f.Context.NodeRank != nil && *f.Context.NodeRank > 0
	if follower && (served == sglang.PhasePrefill || served == sglang.PhaseDecode) && served.After(e.Phase) {
		return served
	}
	return e.Phase
}

// firstCause picks the line that all others follow from.
func firstCause(f *Facts) (sglang.Event, bool) {
	var first, proven, lost *sglang.Event
	for i := range f.Log.Fatal {
		e := &f.Log.Fatal[i]
		if survived(f, *e) || afterStop(f, *e) || f.lives() && !mortal(f, *e) {
			continue
		}
		switch weightOf(*e) {
		case symptom:
			lost = firstOf(lost, e)
		case cause:
			first = firstOf(first, e)
		case proof:
			proven = firstOf(proven, e)
		case consequence:
		}
	}
	switch {
	case proven != nil && (first == nil || proven.Line < first.Line || lost != nil && lost.Line < first.Line):
		return *proven, true
	case first != nil && (lost == nil || first.Line < lost.Line || lost.Kind != kindNCCL || first.Kind == kindCUDA && !timedOut(*lost)):
		return *first, true
	case lost != nil && !leaveToKiller(f, *lost):
		return *preciseSymptom(f, lost), true
	}
	return sglang.Event{}, false
}

// endOfChain follows an exception to the last one that was raised in handling it: Python prints the innermost
// first, and the outermost says it in the program's own words. Memory is best told where it ran out.
func endOfChain(f *Facts, e sglang.Event) sglang.Event {
	if e.Kind != kindTraceback && e.Kind != "model_missing" {
		return e
	}
	report := f.First[kindWarmup].Line // the launcher quotes a whole traceback there
	for _, next := range f.Log.Fatal {
		chained := next.Words["chained"] != "" || report > 0 && e.Line > report && next.Kind == kindTraceback
		if next.Line > e.Line && next.Rank == e.Rank && chained && weightOf(next) > symptom {
			e = next
		}
	}
	return e
}

func firstOf(have, e *sglang.Event) *sglang.Event {
	if have != nil {
		return have
	}
	return e
}

// preciseSymptom prefers, among symptoms, the one that names what was lost: an NCCL line before a broken
// pipe. The failed warm-up stands behind the exception that it quotes.
func preciseSymptom(f *Facts, lost *sglang.Event) *sglang.Event {
	if lost.Kind == kindNCCL {
		return lost
	}
	for i := range f.Log.Fatal {
		if e := &f.Log.Fatal[i]; e.Kind == kindNCCL && !survived(f, *e) {
			return e
		}
	}
	return lost
}

// leaveToKiller: one rank was killed from outside, and its siblings' complaints follow from it.
func leaveToKiller(f *Facts, lost sglang.Event) bool {
	_, killed := deadChild(f.Log.Fatal)
	return f.memoryKill() || killed && !timedOut(lost)
}

// timedOut reports whether a symptom is a collective that waited for minutes: then the ranks were alive.
func timedOut(e sglang.Event) bool {
	return e.Values["nccl_timeout_ms"] > 0 || strings.Contains(e.Text, "collective operation timeout")
}

// afterStop reports whether a complaint came from a server that had been told to stop: its processes lose
// each other then.
func afterStop(f *Facts, e sglang.Event) bool {
	if w := weightOf(e); w == proof || w == cause && e.Kind != kindTraceback {
		return false
	}
	for _, kind := range append([]string{kindJobLimit}, stops...) {
		if stop, seen := f.First[kind]; seen && stop.Line < e.Line {
			return true
		}
	}
	return weightOf(e) == symptom && (f.Ending == EndOutside || f.Ending == EndDeadline || f.Exit.Signal == sigterm)
}

// survivedBatches is more batch lines than a server can still print around the death of a rank.
const survivedBatches = 3

// survived reports whether the server went on after a line: it became ready later, or went on to work.
func survived(f *Facts, e sglang.Event) bool {
	if f.Last[kindFiredUp].Line > e.Line {
		return true
	}
	if e.Kind == kindTraceback && e.Rank < 0 && e.Phase == sglang.PhaseLaunch && f.Log.Phase.After(sglang.PhaseWeightLoad) {
		return true // something optional that could not be imported
	}
	if f.Last[kindUvicorn].Line > e.Line && !slices.ContainsFunc(f.Log.Fatal, func(other sglang.Event) bool {
		return other.Line > e.Line && weightOf(other) == consequence
	}) {
		return true // the launcher opens its socket when all ranks are ready
	}
	return e.Line > 0 && f.Log.Decodes+f.Log.Prefills-e.Before >= survivedBatches
}

// mortal reports whether a living server dies of a line: SGLang said that it kills its tree, or the start
// cannot go on without what failed.
func mortal(f *Facts, e sglang.Event) bool {
	if !f.ready() || e.Kind == kindWatchdog || f.Ending != EndUnknown {
		return true
	}
	for _, other := range f.Log.Fatal {
		if weightOf(other) == consequence || other.Kind == kindWatchdog {
			return true
		}
	}
	return (e.Kind == kindGPUOOM || e.Kind == kindCUDA) && e.Before == f.Log.Decodes+f.Log.Prefills // nothing was computed since
}

// failingRanks are the ranks that died of the first cause: those that print the same kind of line.
func failingRanks(f *Facts, e sglang.Event) []int {
	if rank, child := e.Values["child_rank"]; child {
		return []int{int(rank)}
	}
	var out []int
	for _, other := range f.Log.Fatal {
		if other.Kind == e.Kind && other.Rank >= 0 && alike(other, e) && !survived(f, other) {
			out = appendRank(out, other.Rank)
		}
	}
	if out == nil && ranks(f) == 1 && e.Kind == kindGPUOOM {
		out = []int{0}
	}
	return out
}

// fatal maps a kind of fatal line to the verdict it proves.
var fatal = map[string]func(*Facts, sglang.Event) Verdict{
	kindGPUOOM:                gpuOOM,
	"graph_failed":            graphFailed,
	"not_enough_memory":       nonPositive,
	"weights_leave_no_kv":     nonPositive,
	"state_cache_too_small":   stateCache,
	"host_mem_insufficient":   hostRefused,
	"host_register_failed":    hostPinning,
	"host_alloc_failed":       hostAlloc,
	"hicache_smaller_refused": smallerHicache,
	kindKernelOOM:             kernelOOM,
	"argparse_error":          badFlag,
	"config_unsupported":      badConfigFile,
	"flags_conflict":          combination,
	"no_accelerator":          noGPU,
	"mem_unbalanced":          unbalanced,
	"port_in_use":             portTaken,
	"shm_too_small":           smallShm,
	"model_missing":           modelMissing,
	"gpu_lost":                lostGPU,
	"ecc":                     brokenGPU,
	kindNCCL:                  lostPeers,
	kindPeerLost:              lostPeers,
	kindPeerWait:              waitedForPeer,
	kindCUDA:                  cudaError,
	kindWatchdog:              watchdog,
	kindKVAlloc:               kvAlloc,
	kindNativeCrash:           nativeCrash,
	kindPythonFatal:           nativeCrash,
}

func lostPeers(f *Facts, e sglang.Event) Verdict {
	v := Verdict{Outcome: Crashed, Cause: "nccl_error", Blames: BlameNo, Advice: []string{adviceRerun}}
	if f.nodes() > 1 {
		v.Advice = []string{advicePeers, adviceRerun}
	}
	v.Text = "the ranks lost each other (NCCL), and nothing failed before that in this log"
	if ms := e.Values["nccl_timeout_ms"]; ms > 0 {
		v.Text = fmt.Sprintf("a collective waited %.0f s for another rank and gave up; nothing failed before that in this log", ms/1000)
	}
	if f.nodes() > 1 {
		v.Text += "; look at the other node's log first, then at the network between them"
	} else {
		v.Text += "; run it once more, and look at the GPU links if it repeats"
		v.Advice = []string{advicePeers, adviceRerun}
	}
	return v
}

func cudaError(_ *Facts, e sglang.Event) Verdict {
	return Verdict{
		Outcome: Crashed, Cause: "cuda_error", Blames: BlamePartly, Advice: []string{adviceRerun, adviceReport},
		Text: fmt.Sprintf("a GPU kernel failed in %s: %s; run it once more, and report it to SGLang with the traceback if it repeats", e.Phase, e.Text),
	}
}

func nativeCrash(f *Facts, e sglang.Event) Verdict {
	if strings.Contains(e.Text, "Bus error") { // a page of shared memory that could not be given
		return smallShm(f, e)
	}
	v := Verdict{Outcome: Crashed, Cause: "silent_exit", Blames: BlamePartly, Advice: []string{adviceRerun, adviceReport}}
	v.Text = fmt.Sprintf("a process of the server crashed in %s outside Python (%s) and left no traceback of its own; run it once more", e.Phase, e.Text)
	return v
}

func kvAlloc(_ *Facts, e sglang.Event) Verdict {
	return Verdict{
		Outcome: Crashed, Cause: "python_exception", Blames: BlamePartly, Advice: []string{adviceLowerRunning, adviceReport},
		Text: fmt.Sprintf("SGLang's own accounting of KV slots failed in %s (%s); this is no CUDA out of memory: allow fewer running requests", e.Phase, e.Text),
	}
}

// hicacheDump is a stack of the hierarchical cache in the dumps that SGLang prints before its watchdog fires.
func watchdog(f *Facts, e sglang.Event) Verdict {
	v := Verdict{Outcome: Stuck, Cause: "watchdog_timeout", Blames: BlamePartly, Advice: []string{adviceRerun, adviceUpgrade, adviceReport}}
	v.Numbers = copyNumbers(e.Values)
	for name, n := range f.First[kindPoolState].Values {
		v.Numbers[name] = n
	}
	v.Text = fmt.Sprintf("SGLang's watchdog saw no forward pass end for %.0f s in %s; run it once more", e.Values["watchdog_timeout_s"], e.Phase)
	stack, waits := f.First[kindHicacheStack]
	if !waits {
		return v
	}
	v.Cause, v.Advice = "hicache_deadlock", []string{adviceRerun, adviceNoHicache, adviceUpgrade}
	v.Text = fmt.Sprintf("the ranks wait for each other in the hierarchical cache (%s) and none goes on: a bug of SGLang's, not a lack of memory; run it once more, "+
		"then without the hierarchical cache or with a newer SGLang", stack.Words["function"])
	return v
}
