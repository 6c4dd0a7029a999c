package trial

import (
	"fmt"
	"slices"
	"strings"

	"sgtune/sglang"
)

// sign is a row of the table of exceptions: what one says, and what that proves. The first that fits
// decides. Words that many errors share need one of the types; early rows hold only until the server
// serves.
type sign struct {
	words []string // all of them must be in the exception's line
	types []string // exception classes without their module, nil = any
	judge func(*Facts, sglang.Event) Verdict
}

var refusal = []string{"ValueError", "AssertionError", "NotImplementedError"}

// early are signs of a start that was refused, by SGLang or by the machine.
var early = []sign{
	{words: []string{"could finish the model loading, but there are other ranks"}, judge: loadBarrier},
	{words: []string{"ProxyError"}, judge: proxy},
	{words: []string{"Tunnel connection failed"}, judge: proxy},
	{words: []string{"Cannot connect to proxy"}, judge: proxy},
	{words: []string{"res=<Response [", "<html"}, judge: proxy},
	{words: []string{"res=<Response [", "<HTML"}, judge: proxy},
	{words: []string{"res=<Response [", "<!DOCTYPE"}, judge: proxy},
	{words: []string{"res=<Response [", "<!doctype"}, judge: proxy},
	{words: []string{"res=<Response [407]"}, judge: proxy},
	{words: []string{"res=<Response [502]"}, judge: proxy},
	{words: []string{"res=<Response [503]"}, judge: proxy},
	{words: []string{"res=<Response [504]"}, judge: proxy},
	{words: []string{"squid"}, judge: proxy},
	{words: []string{"res=<Response [403]"}, judge: proxy},
	{words: []string{"Read timed out. (read timeout=600"}, judge: warmupHung},
	{words: []string{"Read timed out"}, types: []string{"ReadTimeout"}, judge: warmupHung},

	{words: []string{"SafetensorError"}, judge: modelMissing},
	{words: []string{"Unrecognized model in"}, judge: modelMissing},
	{words: []string{"Can't load the configuration of"}, judge: modelMissing},
	{words: []string{"Can't load tokenizer for"}, judge: modelMissing},
	{words: []string{"Can't load the model for"}, judge: modelMissing},
	{words: []string{"We couldn't connect to"}, judge: modelMissing},
	{words: []string{"couldn't find them in the cached files"}, judge: modelMissing},
	{words: []string{"Incorrect path_or_model_id"}, judge: modelMissing},
	{words: []string{"is not a valid model identifier"}, judge: modelMissing},
	{words: []string{"Unable to load weights from"}, judge: modelMissing},
	{words: []string{"No model weights found in"}, judge: modelMissing},
	{words: []string{"Could not find checkpoint files"}, judge: modelMissing},
	{words: []string{"gated repo"}, judge: modelMissing},
	{words: []string{"OfflineModeIsEnabled"}, judge: modelMissing},
	{words: []string{"HfHubHTTPError"}, judge: modelMissing},
	{words: []string{"Client Error", "huggingface.co"}, judge: modelMissing},
	{words: []string{"Max retries exceeded", "huggingface.co"}, judge: modelMissing},
	{words: []string{"NotExistError"}, judge: modelMissing},
	{words: []string{"No such file or directory", ".safetensors"}, judge: modelMissing},
	{words: []string{"No such file or directory", "config.json"}, judge: modelMissing},
	{words: []string{"No such file or directory", "tokenizer"}, judge: modelMissing},
	{words: []string{"No such file or directory", ".bin"}, judge: modelMissing},
	{words: []string{"No such file or directory", ".gguf"}, judge: modelMissing},

	{words: []string{"No space left on device: '/psm_"}, judge: smallShm},
	{words: []string{"[Errno 28] No space left on device: '/"}, judge: diskFull},
	{words: []string{"No space left on device"}, judge: smallShm},

	{words: []string{"is greater than the derived context_length"}, judge: badValue},
	{words: []string{"is larger than the derived context_length"}, judge: badValue},
	{words: []string{"Unknown quantization method"}, judge: badValue},
	{words: []string{"Unknown dtype"}, judge: badValue},
	{words: []string{"Unknown load_format"}, judge: badValue},
	{words: []string{"Unknown load format"}, judge: badValue},
	{words: []string{"Invalid attention backend"}, judge: badValue},
	{words: []string{"Unsupported kv_cache_dtype"}, judge: badValue},
	{words: []string{"has invalid port number"}, judge: badValue},
	{words: []string{"should be in range"}, judge: badValue},
	{words: []string{"must be in (0"}, types: refusal, judge: badValue},
	{words: []string{"must be between"}, types: refusal, judge: badValue},
	{words: []string{"must be positive"}, types: refusal, judge: badValue},
	{words: []string{"must be a positive"}, types: refusal, judge: badValue},
	{words: []string{"must be greater than"}, types: refusal, judge: badValue},
	{words: []string{"must be >"}, types: refusal, judge: badValue},
	{words: []string{"must be at least"}, types: refusal, judge: badValue},
	{words: []string{"must be one of"}, types: refusal, judge: badValue},
	{words: []string{"Unsupported model type:"}, types: refusal, judge: badValue},
	{words: []string{"Unsupported tool_call_parser"}, types: refusal, judge: badValue},
	{words: []string{"Unsupported layout"}, types: refusal, judge: badValue},
	{words: []string{"Unsupported IO backend"}, types: refusal, judge: badValue},
	{words: []string{"is not a valid"}, types: refusal, judge: badValue},

	{words: []string{"mutually exclusive"}, judge: combination},
	{words: []string{"SGLang only supports sm75"}, judge: combination},
	{words: []string{"are not supported for now"}, judge: unknownModel},
	{words: []string{"has no SGlang implementation"}, judge: unknownModel},
	{words: []string{"does not match the quantization"}, judge: combination},
	{words: []string{"divisible by"}, types: refusal, judge: combination},
	{words: []string{"not compatible"}, types: refusal, judge: combination},
	{words: []string{"incompatible"}, types: refusal, judge: combination},
	{words: []string{"cannot be used"}, types: refusal, judge: combination},
	{words: []string{"can not be used"}, types: refusal, judge: combination},
	{words: []string{"Cannot set"}, types: refusal, judge: combination},
	{words: []string{"Cannot enable"}, types: refusal, judge: combination},
	{words: []string{"not supported"}, types: refusal, judge: combination},
	{words: []string{"not support"}, types: refusal, judge: combination},
	{words: []string{"only supports"}, types: refusal, judge: combination},
	{words: []string{"only supported"}, types: refusal, judge: combination},
	{words: []string{"not yet supported"}, types: refusal, judge: combination},
	{words: []string{" requires "}, types: refusal, judge: combination},
	{words: []string{"Backend requires SM"}, judge: combination},
	{words: []string{"multiple of"}, types: refusal, judge: combination},
}

// exception is any other Python error: told apart by its words, and by whether it came before the server
// served.
func exception(f *Facts, e sglang.Event) Verdict {
	if !f.ready() {
		for _, s := range early {
			if s.fits(e) {
				return s.judge(f, e)
			}
		}
		if refusedAtLaunch(f, e) {
			return combination(f, e)
		}
	}
	v := Verdict{Outcome: Crashed, Cause: "python_exception", Blames: BlamePartly, Advice: []string{adviceRerun, adviceReport}}
	v.Text = fmt.Sprintf("the server failed in %s: %s; run it once more, and report it to SGLang with the traceback if it repeats", e.Phase, e.Text)
	return v
}

func (s sign) fits(e sglang.Event) bool {
	for _, word := range s.words {
		if !strings.Contains(e.Text, word) {
			return false
		}
	}
	return s.types == nil || slices.Contains(s.types, exceptionClass(e))
}

// exceptionClass is the class of an exception without its module.
func exceptionClass(e sglang.Event) string {
	name := e.Words["type"]
	return name[strings.LastIndexByte(name, '.')+1:]
}

// refusedAtLaunch: before SGLang printed its arguments a ValueError or an AssertionError is a refused
// combination of flags.
func refusedAtLaunch(f *Facts, e sglang.Event) bool {
	_, parsed := f.First[kindServerArgs]
	_, begun := f.First[kindDistBegin]
	return e.Kind == kindTraceback && e.Phase == sglang.PhaseLaunch && !parsed && !begun && slices.Contains(refusal, exceptionClass(e))
}

func unknownModel(f *Facts, e sglang.Event) Verdict {
	v := combination(f, e)
	v.Advice = []string{adviceUpgrade, adviceFixFlag}
	v.Text = "this version of SGLang cannot serve this model: " + e.Text + "; use a newer one"
	return v
}

func loadBarrier(f *Facts, e sglang.Event) Verdict {
	v := Verdict{Outcome: StartupTimeout, Phase: sglang.PhaseWeightLoad, Cause: "load_barrier_timeout", Blames: BlameNo, Advice: []string{advicePrewarm, adviceRerun}}
	if f.nodes() > 1 {
		v.Advice = append(v.Advice, advicePeers)
	}
	v.FailingRanks = []int{} // those that complain have finished
	quote(&v, e)
	v.Text = "some ranks had loaded their weights and gave up waiting for the others, which were still reading: slow or unequal storage; read the files once beforehand, then run the same again"
	return v
}

func proxy(_ *Facts, e sglang.Event) Verdict {
	v := env("http_proxy", []string{adviceBypassProxy, adviceRerun},
		"the server's own first request to itself went through an HTTP proxy and was refused ("+e.Text+"); set no_proxy=127.0.0.1,localhost or unset http_proxy")
	v.Phase = sglang.PhaseWarmup
	return v
}

func diskFull(_ *Facts, e sglang.Event) Verdict {
	return env(causeUnknown, []string{adviceRerun}, "a disk of the host is full ("+e.Text+"); make room, then run the same again")
}

// warmupHung: the server's own first request got no answer in time.
func warmupHung(f *Facts, e sglang.Event) Verdict {
	if _, compiling := f.First[kindJIT]; compiling {
		v := Verdict{Outcome: StartupTimeout, Phase: sglang.PhaseWarmup, Cause: "jit_compile", Blames: BlameNo, Advice: []string{adviceReadyTimeout, advicePrewarm}}
		v.Text = "the server's own first request timed out while kernels were being compiled; let it compile once, then run the same again"
		return v
	}
	v := Verdict{Outcome: Stuck, Phase: sglang.PhaseWarmup, Cause: "no_progress", Blames: BlamePartly, Advice: []string{adviceRerun, adviceReport}}
	v.Text = "the server's own first request got no answer (" + e.Text + "); run it once more"
	return v
}
