package sglang_test

import (
	"errors"
	"strings"
	"testing"

	"sgtune/sglang"
)

func TestResolve(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, version string
		want          string         // canonical name
		note          string         // must be in the note; "" = no note
		trouble       sglang.Trouble // "" = none
		text          string         // must be in the error
	}{
		{name: "--mem-fraction-static", version: "0.5.23", want: "mem-fraction-static"},
		{name: "--mem-frac", version: "0.5.23", want: "mem-fraction-static"},
		{name: "mem-frac", version: "0.4.6.post5", want: "mem-fraction-static"},
		{name: "--mem", version: "0.5.23", want: "mem-fraction-static"},
		{name: "--tp", version: "0.5.23", want: "tp-size"},
		{name: "--tp", version: "0.4.6.post5", want: "tp-size"},
		{name: "--tensor-parallel", version: "0.5.9", want: "tp-size"},
		{name: "--dp", version: "0.5.23", want: "dp-size"},
		{name: "--dp", version: "0.4.9.post6", want: "dp-size"},
		{name: "--ep", version: "0.5.23", want: "ep-size"},
		{name: "--ep", version: "0.4.6.post5", trouble: sglang.TroubleAmbiguous, text: "--ep-size"},
		{name: "--ep-size", version: "0.4.6.post5", want: "ep-size"},
		{name: "--model", version: "0.5.23", want: "model-path"},
		{name: "--enable-hicache", version: "0.5.23", want: "enable-hierarchical-cache"},
		{name: "--enable-hicache", version: "0.5.9", trouble: sglang.TroubleLater, text: "came with SGLang 0.5.23"},
		{name: "--nccl-init-addr", version: "0.5.9", want: "dist-init-addr"},
		{name: "--enable-hier", version: "0.5.9", want: "enable-hierarchical-cache"},
		{name: "--chunked", version: "0.5.23", want: "chunked-prefill-size"},
		{name: "--max-run", version: "0.5.23", want: "max-running-requests"},
		{name: "--cuda-graph-max", version: "0.5.12", want: "cuda-graph-max-bs"},
		{name: "--cuda-graph-max", version: "0.5.23", trouble: sglang.TroubleAmbiguous, text: "--cuda-graph-max-bs-decode, --cuda-graph-max-bs-prefill"},
		{name: "--sched", version: "0.5.23", trouble: sglang.TroubleAmbiguous, text: "--schedule-conservativeness"},
		{name: "--attention", version: "0.5.9", trouble: sglang.TroubleAmbiguous, text: "--attention-backend"},
		{name: "--attention", version: "0.4.6.post5", want: "attention-backend"},
		{name: "--speculative-draft", version: "0.4.6.post5", want: "speculative-draft-model-path"},
		{name: "--attention-context-parallel-size", version: "0.5.23", want: "attn-cp-size"},
		{name: "--lora-strict-loading", version: "0.5.23", want: "lora-strict-loading"},
		{name: "--no-lora-strict-loading", version: "0.5.23", want: "lora-strict-loading"},

		{name: "--cuda-graph-max-bs", version: "0.5.12", want: "cuda-graph-max-bs"},
		{name: "--cuda-graph-max-bs", version: "0.5.18", want: "cuda-graph-max-bs-decode", note: "deprecated in SGLang 0.5.18; --cuda-graph-max-bs-decode"},
		{name: "--cuda-graph-max-bs", version: "0.5.19", want: "cuda-graph-max-bs-decode", note: "deprecated"},
		{name: "--cuda-graph-max-bs-decode", version: "0.5.9", want: "cuda-graph-max-bs", note: "came with SGLang 0.5.15; in 0.5.9 it is --cuda-graph-max-bs"},
		{name: "--stream-output", version: "0.5.23", want: "incremental-streaming-output", note: "gone since SGLang 0.5.20"},
		{name: "--impl", version: "0.5.2", want: "model-impl", note: "gone"},
		{name: "--nsa-prefill", version: "0.5.20", want: "dsa-prefill-backend", note: "took its place"},
		{name: "--enable-dp-attention", version: "0.5.23", want: "enable-dp-attention", note: "use --attn-dp-size as large as --dp-size"},
		{name: "--enable-dp-attention", version: "0.5.20", want: "enable-dp-attention"},
		{name: "--disable-cuda-graph", version: "0.5.23", want: "disable-cuda-graph", note: "deprecated in SGLang 0.5.23; use --cuda-graph-backend-decode disabled"},
		{name: "--num-continuous-decode-steps", version: "0.4.6.post5", want: "num-continuous-decode-steps", note: "does nothing"},
		{name: "--num-cont", version: "0.5.23", want: "num-continuous-decode-steps", note: "does nothing"},
		{name: "--enable-ep-moe", version: "0.5.3.post3", want: "enable-ep-moe", note: "use --ep-size as large as --tp-size"},
		{name: "--enable-ep-moe", version: "0.5.23", trouble: sglang.TroubleGone, text: "gone since SGLang 0.5.4.post3; use --ep-size as large as --tp-size"},
		{name: "--enable-deepep-moe", version: "0.5.9", trouble: sglang.TroubleGone, text: "use --moe-a2a-backend deepep"},
		{name: "--torchao-config", version: "0.5.23", trouble: sglang.TroubleGone, text: "gone since SGLang 0.5.18; remove it"},
		{name: "--admin-api-key", version: "0.5.6.post2", trouble: sglang.TroubleLater, text: "came with SGLang 0.5.9"},
		{name: "--mem-fracton-static", version: "0.5.23", trouble: sglang.TroubleUnknown, text: "did you mean --mem-fraction-static?"},
		{name: "--", version: "0.5.23", trouble: sglang.TroubleUnknown, text: "no flag of SGLang"},
	} {
		got, note, err := sglang.Resolve(tt.name, version(t, tt.version))
		var flagErr *sglang.FlagError
		switch {
		case tt.trouble == "" && err != nil:
			t.Errorf("%s in %s: %v", tt.name, tt.version, err)
		case tt.trouble != "" && (!errors.As(err, &flagErr) || flagErr.Why != tt.trouble || !strings.Contains(flagErr.Text, tt.text)):
			t.Errorf("%s in %s = %q, %v; want %s with %q", tt.name, tt.version, got, err, tt.trouble, tt.text)
		case got != tt.want || !strings.Contains(note, tt.note) || tt.note == "" && note != "":
			t.Errorf("%s in %s = %q, note %q; want %q with %q", tt.name, tt.version, got, note, tt.want, tt.note)
		}
	}
}

// Every option of every release resolves in its own release, to a name that release has.
func TestResolveEveryOption(t *testing.T) {
	t.Parallel()
	for _, v := range sglang.Releases() {
		flags, _ := sglang.FlagsOf(v)
		for name := range flags {
			got, _, err := sglang.Resolve(name, v)
			if err != nil || !flags.Has(got) {
				t.Errorf("--%s of %s resolves to %q, %v", name, v, got, err)
			}
		}
	}
}

func TestFindNegation(t *testing.T) {
	t.Parallel()
	flags, _ := sglang.FlagsOf(sglang.Version{})
	f, err := flags.Find("no-dllm-fdfo")
	if err != nil || !f.Negates || f.Canonical != "dllm-fdfo" {
		t.Errorf("--no-dllm-fdfo: %+v, %v; want one that turns dllm-fdfo off", f, err)
	}
	if f, _ := flags.Find("dllm-fdfo"); f.Negates {
		t.Error("--dllm-fdfo turns itself off")
	}
}
