package sglang_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/sglang"
)

func TestVersionOrder(t *testing.T) {
	t.Parallel()
	ordered := []string{
		"0.4.6", "0.4.6.post5+cu124", "v0.4.9.post6", "sglang 0.5.2", "lmsysorg/sglang:v0.5.5.post3-cu129-amd64", "0.5.10.dev12+g1a2b3c4",
		"0.5.10", "0.5.15rc1", "0.5.15", "0.5.23", "0.5.24.dev0", "0.5.24", "1.0",
	}
	var last sglang.Version
	for i, text := range ordered {
		v, err := sglang.ParseVersion(text)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 && (last.Compare(v) >= 0 || v.Compare(last) <= 0) {
			t.Errorf("%v is not older than %v", last, v)
		}
		if v.Compare(v) != 0 {
			t.Errorf("%v differs from itself", v)
		}
		last = v
	}
	if _, err := sglang.ParseVersion("no numbers"); err == nil || !strings.Contains(err.Error(), "0.5.23") {
		t.Errorf("error %v, want one that says what a version looks like", err)
	}
	if v, _ := sglang.ParseVersion("0.4.6.post5"); v.String() != "0.4.6.post5" {
		t.Errorf("String gives %s", v)
	}
}

const help = `usage: sglang serve [-h] --model-path MODEL_PATH
                    [--schedule-policy {lpm,random,fcfs}]

options:
  -h, --help            show this help message and exit
  --model-path MODEL_PATH, --model MODEL_PATH
                        The path of the model weights.
  --tp-size TP_SIZE, --tensor-parallel-size TP_SIZE
                        The tensor parallelism size.
  --schedule-policy {lpm,random,fcfs}
                        The scheduling policy of the requests. Deprecated words
                        in the middle mean nothing.
  --cuda-graph-bs-decode N [N ...]
                        Sizes.
  --enable-metrics      Enable log prometheus metrics.
  --disable-cuda-graph  Deprecated. Use --cuda-graph-
                        backend-{decode,prefill}=disabled instead.
  --enable-dp-attention
                        Deprecated. Use --attn-dp-size <dp-size> instead.
`

func TestParseHelp(t *testing.T) {
	t.Parallel()
	flags := sglang.ParseHelp(help)
	want := sglang.Flags{
		"help":                 {Name: "help", Canonical: "help"},
		"model-path":           {Name: "model-path", Canonical: "model-path", TakesValue: true},
		"model":                {Name: "model", Canonical: "model-path", TakesValue: true},
		"tp-size":              {Name: "tp-size", Canonical: "tp-size", TakesValue: true},
		"tensor-parallel-size": {Name: "tensor-parallel-size", Canonical: "tp-size", TakesValue: true},
		"schedule-policy":      {Name: "schedule-policy", Canonical: "schedule-policy", TakesValue: true, Choices: []string{"lpm", "random", "fcfs"}},
		"cuda-graph-bs-decode": {Name: "cuda-graph-bs-decode", Canonical: "cuda-graph-bs-decode", TakesValue: true},
		"enable-metrics":       {Name: "enable-metrics", Canonical: "enable-metrics"},
		"disable-cuda-graph":   {Name: "disable-cuda-graph", Canonical: "disable-cuda-graph", Deprecated: true},
		"enable-dp-attention":  {Name: "enable-dp-attention", Canonical: "enable-dp-attention", Deprecated: true},
	}
	if d := cmp.Diff(want, flags); d != "" {
		t.Errorf("flags -want +got:\n%s", d)
	}
	if !flags.Has("tp-size") || flags.Has("bogus") || !flags.Accepts("schedule-policy", "lpm") || flags.Accepts("schedule-policy", "hrrn") {
		t.Error("Has or Accepts misjudges")
	}
	if got := sglang.ParseHelp("command not found"); len(got) != 0 {
		t.Errorf("no help text gave %v", got)
	}
}
