package simulator

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseArgsErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, args, want string }{
		{"float", "--mem-fraction-static x", "argument --mem-fraction-static: invalid float value: 'x'"},
		{"int", "--hicache-size 48.5", "argument --hicache-size: invalid int value: '48.5'"},
		{"choice", "--kv-cache-dtype fp4", "argument --kv-cache-dtype: invalid choice: 'fp4' (choose from auto, fp8_e5m2, fp8_e4m3, mxfp8, bf16, bfloat16, nvfp4, fp4_mx_block16)"},
		{"unknown", "--bogus 1 --port 1", "unrecognized arguments: --bogus 1"},
		{"ambiguous", "--cuda-graph-max-bs 16", "ambiguous option: --cuda-graph-max-bs could match --cuda-graph-max-bs-decode, --cuda-graph-max-bs-prefill"},
		{"missing value", "--tp-size", "argument --tp-size/--tensor-parallel-size: expected one argument"},
		{"value for a switch", "--enable-metrics=1", "ignored explicit argument '1'"},
		{"simulator's own", "--sim-time-scale fast", "argument --sim-time-scale: invalid float value: 'fast'"},
		{"unknown fault", "--sim-fault nope", "unknown fault \"nope\""},
		{"unknown profile", "--sim-profile nope", "no simulated profile \"nope\"; known: [kimi-8x96 llama70b-4x80 llama8b-1x24]"},
	} {
		_, err := ParseArgs(append([]string{"--model-path", "m"}, strings.Fields(c.args)...))
		var u *UsageError
		if !errors.As(err, &u) || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "sglang serve: error: ") {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := ParseArgs(nil); err == nil || !strings.Contains(err.Error(), "the following arguments are required: --model-path/--model") {
		t.Errorf("no model: %v", err)
	}
}

func TestParseArgs(t *testing.T) {
	t.Parallel()
	a, err := ParseArgs(strings.Fields("--model m --mem-frac 0.9 --max-total-tokens 150k --cuda-graph-bs-decode 1 2 4 --tp 8 --no-dllm-fdfo --chunked-prefill-size=-1 --enable-hicache --port 1 --port 2 --sim-fault slow_load:5,hang:7s --sim-seed 9"))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"model_path": "'m'", "mem_fraction_static": "0.9", "max_total_tokens": "150000", "cuda_graph_bs_decode": "[1, 2, 4]", "tp_size": "8", "dllm_fdfo": "False",
		"chunked_prefill_size": "-1", "enable_hierarchical_cache": "True", "port": "2", "schedule_policy": "'fcfs'", "page_size": "1", "max_running_requests": "None",
	} {
		if got := a.Python(key); got != want {
			t.Errorf("%s = %s, want %s", key, got, want)
		}
	}
	if a.sim.Faults.SlowLoadS != 5 || a.sim.Faults.HangAt != 7 || a.sim.Seed != 9 {
		t.Errorf("simulator's settings: %+v", a.sim)
	}
}

func TestConfigFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(path, []byte("model-path: /m\ntp-size: 8\nmem-fraction-static: 0.88\nenable-hierarchical-cache: true\nenable-metrics: false\nhicache-size: 48\ncuda-graph-bs-decode: [1, 2]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := ParseArgs([]string{"--config", path, "--mem-fraction-static", "0.9"})
	if err != nil {
		t.Fatal(err)
	}
	if a.Python("mem_fraction_static") != "0.9" || a.Python("hicache_size") != "48" || !a.Bool("enable_hierarchical_cache") || a.Bool("enable_metrics") || a.Python("cuda_graph_bs_decode") != "[1, 2]" {
		t.Errorf("read %v", a.given)
	}
	if _, err := ParseArgs([]string{"--config", path, "--underscore_key", "1"}); err == nil {
		t.Error("underscore keys must be refused")
	}
	var r *RefusedError
	if _, err := ParseArgs([]string{"--config", path + ".yaml"}); !errors.As(err, &r) {
		t.Errorf("missing file: %v", err)
	}
}

func TestHelpListsEveryFlag(t *testing.T) {
	t.Parallel()
	h := newestDialect().helpText()
	for _, want := range []string{"--mem-fraction-static MEM_FRACTION_STATIC", "--schedule-policy {lpm,random,fcfs", "--cuda-graph-max-bs-decode", "--sim-time-scale", "--tp-size TP_SIZE, --tensor-parallel-size TP_SIZE"} {
		if !strings.Contains(h, want) {
			t.Errorf("help lacks %q", want)
		}
	}
	n := 0
	for _, f := range newestDialect().flags().rows {
		if len(f.options) > 0 {
			n++
		}
	}
	if n != 531 {
		t.Errorf("%d options in the table, SGLang 0.5.23 has 531 and --help", n)
	}
}

func FuzzParseGenerate(f *testing.F) {
	for _, s := range []string{
		`{"input_ids":[1,2,3],"stream":true,"sampling_params":{"max_new_tokens":5,"x":[{"a":"}"}]},"rid":"r"}`,
		`{"text":" a \"b\" \u00e9","sampling_params":null}`, `{"input_ids":[[1]]}`, `{}`, `[`, `{"text":1}`, ` { "input_ids" : [ 1 , 2 ] } `,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := parseGenerate(b, 163840)
		if err == nil && g.prompt.Len != len(g.prompt.Blocks)*blockTokens+g.prompt.Rest {
			t.Errorf("lengths do not add up: %+v", g.prompt)
		}
	})
}

func TestParseGenerate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body   string
		tokens int
		maxNew int
		err    string
	}{
		{`{"input_ids":[1,2,3],"stream":true,"sampling_params":{"temperature":0,"max_new_tokens":5,"ignore_eos":true}}`, 3, 5, ""},
		{` { "input_ids" : [ 1 , 2 ] , "rid":"a" , "return_logprob":false } `, 2, 128, ""},
		{`{"text":" a b \"c\"","sampling_params":{}}`, 4, 128, ""},
		{`{"text":"a","input_ids":[1]}`, 0, 0, "either text or input_ids"},
		{`{"input_ids":[]}`, 0, 0, "empty"},
		{`{"input_ids":[[1,2]]}`, 0, 0, "batches"},
		{`{"input_ids":[1,-2]}`, 0, 0, "invalid JSON"},
		{`{"input_ids":[1]} x`, 0, 0, "invalid JSON"},
		{`{"input_ids":[1],"sampling_params":{"max_new_tokens":-1}}`, 0, 0, "at least 0"},
	} {
		g, err := parseGenerate([]byte(c.body), 163840)
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v, want %q", c.body, err, c.err)
			}
		case err != nil || g.prompt.Len != c.tokens || g.maxNew != c.maxNew:
			t.Errorf("%s: %d tokens, %d new, %v", c.body, g.prompt.Len, g.maxNew, err)
		}
	}
	g, _ := parseGenerate([]byte(`{"input_ids":[5,6,7]}`), 1000)
	if want := NewPrompt([]uint32{5, 6, 7}); g.prompt.Tail != want.Tail || g.prompt.Rest != 3 {
		t.Error("the scanner hashes ids differently from NewPrompt")
	}
}
