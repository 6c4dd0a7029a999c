package sglang_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/sglang"
)

func TestParseArgs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, version, args string // args are joined by |
		want                sglang.Config
		wrong               []string // a word of each refusal, in order
	}{
		{"plain", "", "--tp-size|8|--mem-fraction-static|0.85", sglang.Config{"tp-size": 8.0, "mem-fraction-static": 0.85}, nil},
		{"with =", "", "--tp-size=8|--served-model-name=a=b c", sglang.Config{"tp-size": 8.0, "served-model-name": "a=b c"}, nil},
		{"json after =", "", `--json-model-override-args={"a": 1}`, sglang.Config{"json-model-override-args": `{"a": 1}`}, nil},
		{"aliases", "", "--tp|8|--tensor-parallel-size|4|--dp|2|--model|/m", sglang.Config{"tp-size": 4.0, "dp-size": 2.0, "model-path": "/m"}, nil},
		{"alias in an old version", "0.5.5", "--tp|8", sglang.Config{"tp-size": 8.0}, nil},
		{"shortened", "", "--mem-frac|0.9|--chunked-prefill|-1|--trust-rem", sglang.Config{"mem-fraction-static": 0.9, "chunked-prefill-size": -1.0, "trust-remote-code": true}, nil},
		{"ambiguous", "", "--enable|--tp|2", sglang.Config{"tp-size": 2.0}, []string{"ambiguous"}},
		{"last wins", "", "--tp|2|--tp-size|4", sglang.Config{"tp-size": 4.0}, nil},
		{"list", "", "--cuda-graph-bs-decode|1|2|4|--tp|2", sglang.Config{"cuda-graph-bs-decode": []any{1.0, 2.0, 4.0}, "tp-size": 2.0}, nil},
		{"texts", "", "--lora-paths|a=/x|b=/y", sglang.Config{"lora-paths": []any{"a=/x", "b=/y"}}, nil},
		{"counts", "", "--max-total-tokens|150k|--context-length|128Ki|--max-prefill-tokens|1.5k", sglang.Config{"max-total-tokens": 150000.0, "context-length": 131072.0, "max-prefill-tokens": 1500.0}, nil},
		{"negative numbers are values", "", "--chunked-prefill-size|-1|--hicache-size|-0", sglang.Config{"chunked-prefill-size": -1.0, "hicache-size": 0.0}, nil},
		{"text that is a number", "", "--served-model-name|7|--revision|1.10", sglang.Config{"served-model-name": "7", "revision": "1.10"}, nil},
		{"switch", "", "--no-lora-strict-loading", sglang.Config{"no-lora-strict-loading": true}, nil},
		{"renamed", "", "--cuda-graph-max-bs|160", sglang.Config{"cuda-graph-max-bs-decode": 160.0}, nil},
		{"renamed backwards", "0.5.5", "--cuda-graph-max-bs-decode|160", sglang.Config{"cuda-graph-max-bs": 160.0}, nil},
		{"unknown takes its values", "", "--no-such-flag|a|b|--tp|2", sglang.Config{"tp-size": 2.0}, []string{"no-such-flag"}},
		{"word of no flag", "", "--enable-metrics|true|--tp|2", sglang.Config{"enable-metrics": true, "tp-size": 2.0}, []string{"belongs to no flag"}},
		{"no number", "", "--tp|eight|--mem-fraction-static|0.8.5", sglang.Config{}, []string{"takes a number", "takes a number"}},
		{"no such choice", "", "--schedule-policy|fifo", sglang.Config{}, []string{"has no value"}},
		{"a choice that came later", "0.4.9.post6", "--kv-cache-dtype|bf16", sglang.Config{}, []string{"in this version"}},
		{"no value", "", "--tp|--dp|2", sglang.Config{"dp-size": 2.0}, []string{"has no value"}},
		{"a flag with a value it does not take", "", "--enable-metrics=1", sglang.Config{}, []string{"takes no value"}},
		{"nothing", "", "", sglang.Config{}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var words []string
			if c.args != "" {
				words = strings.Split(c.args, "|")
			}
			got := sglang.Config{}
			var wrong []string
			for _, a := range sglang.ParseArgs(words, version(t, c.version)) {
				switch {
				case a.Err != nil:
					wrong = append(wrong, a.Err.Error())
				case !a.Repeat:
					got[a.Name] = a.Value
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(wrong) != len(c.wrong) || !slices.EqualFunc(wrong, c.wrong, strings.Contains) {
				t.Errorf("refused %q, want %q", wrong, c.wrong)
			}
		})
	}
}

// TestParseArgsTurnsFlagWordsBack: what Argv writes is read as it was.
func TestParseArgsTurnsFlagWordsBack(t *testing.T) {
	t.Parallel()
	c := sglang.Config{
		"mem-fraction-static": 0.855, "chunked-prefill-size": -1.0, "trust-remote-code": true, "served-model-name": "a b",
		"cuda-graph-bs-decode": []any{1.0, 8.0}, "json-model-override-args": `{"a": "--b"}`, "watchdog-timeout": 1200.0,
	}
	got := sglang.Config{}
	for _, a := range sglang.ParseArgs(sglang.FlagWords(c), sglang.Version{}) {
		if a.Err != nil {
			t.Errorf("%s: %v", a.Typed, a.Err)
		}
		got[a.Name] = a.Value
	}
	if diff := cmp.Diff(c, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzParseArgs(f *testing.F) {
	f.Add("--tp\x008\x00--mem-frac=0.9", "0.5.5")
	f.Add("--cuda-graph-bs\x001\x002\x00-1\x00--x\x00", "")
	f.Fuzz(func(t *testing.T, args, text string) {
		v, err := sglang.ParseVersion(text)
		if err != nil {
			v = sglang.Version{}
		}
		for _, a := range sglang.ParseArgs(strings.Split(args, "\x00"), v) {
			if (a.Value == nil) == (a.Err == nil) {
				t.Errorf("%+v: a value or an error, one of the two", a)
			}
		}
	})
}
