package trial

import (
	"cmp"
	"slices"
)

// Entry is what there is to know about one outcome with one cause: what it means, what to do, and what it
// looks like. docs/failures.md is written from the entries, and their examples are tests.
type Entry struct {
	Outcome Outcome
	Cause   string
	Blames  Blame
	Meaning string // one or two sentences: what happened
	Remedy  string // which flag, in which direction, and why
	Example Example
}

// Example is a log as the server prints it, cut to the lines that matter, with made-up figures and
// loopback addresses only.
type Example struct {
	Version string // of SGLang, whose wording the log uses
	Log     string
	Context string // JSON: what is known beside the log; "" nothing
	Live    string // why no log shows it: who finds it instead; then Log is ""
}

// Catalog returns an entry for every outcome and cause of the closed lists, in the order of Outcomes and
// Causes.
func Catalog() []Entry {
	all := slices.Concat(goodEntries, gpuEntries, hostEntries, diedEntries, testEntries)
	slices.SortStableFunc(all, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(slices.Index(Outcomes, a.Outcome), slices.Index(Outcomes, b.Outcome)),
			cmp.Compare(slices.Index(Causes[a.Outcome], a.Cause), slices.Index(Causes[b.Outcome], b.Cause)))
	})
	return all
}

// Explain is the entry of a verdict. Where the cause is not known it says what the outcome alone means.
func Explain(outcome Outcome, cause string) Entry {
	for _, e := range Catalog() {
		if e.Outcome == outcome && e.Cause == cause {
			return e
		}
	}
	return Entry{Outcome: outcome, Cause: cause, Blames: BlameNo, Meaning: outcomeMeanings[outcome]}
}

// Anchor is where docs/failures.md has an entry.
func Anchor(o Outcome, cause string) string { return string(o) + "-" + cause }

// OutcomeMeaning is one sentence that says what an outcome stands for, "" for a word that is none.
func OutcomeMeaning(o Outcome) string { return outcomeMeanings[o] }

// AdviceText is one plain sentence for a code of AdviceCodes; another code is returned as it is.
func AdviceText(code string) string {
	if text, known := adviceTexts[code]; known {
		return text
	}
	return code
}

var outcomeMeanings = map[Outcome]string{
	OK:                "The server became ready and served what its log shows; nothing speaks against the number.",
	Degraded:          "The server served and the number is real, but something that can be repaired dominates it.",
	GPUOOM:            "GPU memory was not enough.",
	HostOOM:           "Host memory was not enough: SGLang's own check refused, or the kernel or a container limit killed.",
	ConfigRejected:    "SGLang refused the flags or their combination; nothing was measured.",
	EnvFault:          "The machine was not in the state that a start needs; the configuration is innocent.",
	Crashed:           "The server died of something other than memory.",
	StartupTimeout:    "The time limit came while the start was still advancing; nothing is broken.",
	Stuck:             "The server lives and nothing moves.",
	MonitorWrong:      "The server was ready or busy, and a probe took it for dead.",
	Unreachable:       "The server is ready, and whoever asks has no way to it.",
	BenchInvalid:      "The server was fine; the load generator's result cannot be used.",
	QualityRejected:   "It is fast, and its answers fell below the quality gate.",
	QualityUnmeasured: "The configuration can change answers, and nothing measured whether it does.",
	DirtyHost:         "The trial is over, and something of it is still held on the host.",
	Aborted:           "It was stopped from outside before it had finished; nothing failed.",
	Unknown:           "What was given does not decide it, and a guess would be worse than none.",
}

var adviceTexts = map[string]string{
	adviceAccept:           "Keep the result.",
	adviceRaiseFraction:    "Raise --mem-fraction-static, in steps of 0.01: weights and KV pool get a larger share of the GPU.",
	adviceLowerFraction:    "Lower --mem-fraction-static, in steps of 0.02: a smaller KV pool leaves more GPU memory for the work itself.",
	adviceLowerChunk:       "Halve --chunked-prefill-size: each prefill step needs less memory at once.",
	adviceLowerRunning:     "Lower --max-running-requests: fewer requests decode at once and share the pool.",
	adviceLowerGraphs:      "Lower --cuda-graph-max-bs (--cuda-graph-max-bs-decode from 0.5.15): fewer and smaller CUDA graphs are captured. Keep graphs on: without them decoding is slow.",
	adviceLowerHicache:     "Lower --hicache-size: it is GB per rank, and all ranks of the host add up.",
	adviceRaiseHicache:     "Raise --hicache-size (or --hicache-ratio above 1): the host pool must hold more tokens than the GPU's pool.",
	adviceNoHicache:        "Leave out --enable-hierarchical-cache and compare.",
	adviceReusing:          "Measure with a workload whose prompts share prefixes: without reuse a larger cache cannot help.",
	advicePageSize:         "Raise --page-size: copies between host and GPU move in larger pieces.",
	adviceMambaSlots:       "Raise --max-mamba-cache-size: state slots, not KV tokens, limit how many requests run at once.",
	adviceConservative:     "Raise --schedule-conservativeness (1.0, then 1.3): fewer requests are admitted before there is room for their answers.",
	adviceLessConservative: "Lower --schedule-conservativeness: the pool has room and requests wait.",
	adviceBF16:             "Go back to --kv-cache-dtype bf16 (auto up to 0.5.3): fp8 without scales costs quality.",
	adviceScales:           "Give the checkpoint's scales with --quantization-param-path, and measure the quality again.",
	adviceSmallerOrMore:    "Use more GPUs (--tp-size), or a smaller or stronger quantized model: the weights do not fit.",
	adviceFixFlag:          "Correct the flag; python3 -m sglang.launch_server --help lists those of the installed version.",
	adviceFreePort:         "End the process that holds the port (ss -ltnp shows it), or choose another --port.",
	adviceFreeGPU:          "End the process that holds the GPU's memory (nvidia-smi shows it) and wait until the memory is back.",
	adviceRaiseShm:         "Give the container more shared memory: --shm-size 32g, or --ipc=host.",
	adviceContainerRAM:     "Raise the memory limit of the container or job.",
	adviceBypassProxy:      "Take loopback out of the proxy: export no_proxy=127.0.0.1,localhost,0.0.0.0 before the launch.",
	advicePeers:            "Look at the other nodes and ranks first: their logs end earlier, and the network between them may be at fault.",
	adviceReadyTimeout:     "Raise the time limit of a start (server.ready_timeout in a study file); it was still advancing.",
	adviceJobTime:          "Ask for a longer time limit of the job.",
	advicePrewarm:          "Read the checkpoint once before the start (cat MODEL/*.safetensors > /dev/null): then the page cache serves it.",
	adviceFixProbe:         "Correct the probe: go by the status code alone (the body is empty), and let a busy server take its time.",
	adviceFixRoute:         "Start the server with --host 0.0.0.0, or repair the tunnel or port mapping to it.",
	adviceRerun:            "Run the same configuration again.",
	adviceRerunBench:       "Run the load again; the server need not be restarted.",
	adviceUpgrade:          "Try a newer SGLang.",
	adviceReport:           "If it happens again, report it to SGLang with the log and the command line.",
}
