package sglang_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/sglang"
)

func TestRejected(t *testing.T) {
	t.Parallel()
	type c = sglang.Config
	for _, tt := range []struct {
		name, version string
		cfg           c
		text          string // must be in one conflict's text; "" = no conflict at all
		fatal         bool
		becomes       c
	}{
		{name: "nothing set", cfg: c{}},
		{name: "the founding case", cfg: c{"tp-size": 8.0, "hicache-size": 48.0, "mem-fraction-static": 0.85, "chunked-prefill-size": 8192.0}},

		{name: "hicache without radix cache", cfg: c{"hicache-size": 16.0, "disable-radix-cache": true}, text: "exclude each other", fatal: true},
		{name: "hicache flag without radix cache", version: "0.5.2", cfg: c{"enable-hierarchical-cache": true, "disable-radix-cache": true}, text: "exclude each other", fatal: true},
		{name: "hicache off by size", cfg: c{"hicache-size": 0.0, "enable-hierarchical-cache": true, "disable-radix-cache": true}},
		{name: "hicache without radix cache, old", version: "0.4.9.post6", cfg: c{"hicache-size": 16.0, "disable-radix-cache": true}, text: "does nothing", becomes: c{"hicache-size": 0.0}},
		{name: "a ratio alone turns nothing on", cfg: c{"hicache-ratio": 2.0, "disable-radix-cache": true}},
		{name: "lmcache and hicache", cfg: c{"hicache-size": 16.0, "enable-lmcache": true}, text: "enable-lmcache exclude", fatal: true},
		{name: "lmcache and hicache, before the check", version: "0.5.20", cfg: c{"hicache-size": 16.0, "enable-lmcache": true}},
		{name: "lmcache without radix cache", cfg: c{"enable-lmcache": true, "disable-radix-cache": true}, text: "needs the radix cache", fatal: true},
		{name: "external linker", cfg: c{"hicache-size": 16.0, "enable-unified-cache-external-linker": true}, text: "exclude each other", fatal: true},
		{name: "buffer only without storage", cfg: c{"hicache-size": 16.0, "hicache-host-memory-mode": "buffer_only"}, text: "needs a hicache-storage-backend", fatal: true},
		{name: "dcp and hicache with eagle", cfg: c{"hicache-size": 16.0, "dcp-size": 2.0, "speculative-algorithm": "EAGLE"}, text: "dcp-size", fatal: true},
		{
			name: "kernel copies of page_first_direct", cfg: c{"hicache-size": 16.0, "hicache-mem-layout": "page_first_direct", "hicache-io-backend": "kernel"},
			text: "switches hicache-io-backend", becomes: c{"hicache-io-backend": "direct"},
		},
		{
			name: "direct copies of the default layout", cfg: c{"hicache-size": 16.0, "hicache-io-backend": "direct"},
			text: "switches hicache-mem-layout", becomes: c{"hicache-mem-layout": "page_first_direct"},
		},
		{name: "direct copies of the older default layout", version: "0.5.12", cfg: c{"hicache-size": 16.0, "hicache-io-backend": "direct"}},
		{name: "layouts without hicache", cfg: c{"hicache-mem-layout": "page_first_direct", "hicache-io-backend": "kernel"}},
		{
			name: "mooncake", version: "0.5.9", cfg: c{"hicache-size": 16.0, "hicache-storage-backend": "mooncake"},
			text: "does not take hicache-mem-layout layer_first", becomes: c{"hicache-mem-layout": "page_first"},
		},

		{name: "chunk of whole pages", cfg: c{"chunked-prefill-size": 8192.0, "page-size": 64.0}},
		{name: "chunk that pages do not divide", cfg: c{"chunked-prefill-size": 2000.0, "page-size": 64.0}, text: "2000 is not divisible by page-size 64", fatal: true},
		{name: "chunk against a forced page", cfg: c{"chunked-prefill-size": 2000.0, "attention-backend": "flashmla"}, text: "not divisible by page-size 64", fatal: true},
		{
			name: "chunk divided by DP attention", version: "0.5.9", cfg: c{"chunked-prefill-size": 4096.0, "page-size": 128.0, "enable-dp-attention": true, "dp-size": 64.0, "tp-size": 64.0},
			text: "over 64 attention groups", fatal: true,
		},
		{name: "no chunks", cfg: c{"chunked-prefill-size": -1.0, "page-size": 64.0}},
		{name: "no chunks, old", version: "0.4.9.post6", cfg: c{"chunked-prefill-size": -1.0, "page-size": 64.0}, text: "before SGLang 0.5.2", fatal: true},
		{
			name: "mixed chunks with speculation", version: "0.5.18", cfg: c{"enable-mixed-chunk": true, "speculative-algorithm": "EAGLE"},
			text: "turns it off", becomes: c{"enable-mixed-chunk": false},
		},
		{name: "mixed chunks with EAGLE, new", cfg: c{"enable-mixed-chunk": true, "speculative-algorithm": "EAGLE"}},
		{name: "mixed chunks with NGRAM, new", cfg: c{"enable-mixed-chunk": true, "speculative-algorithm": "NGRAM"}, text: "turns it off", becomes: c{"enable-mixed-chunk": false}},
		{name: "mixed chunks in a pipeline", version: "0.5.9", cfg: c{"enable-mixed-chunk": true, "pp-size": 2.0}, text: "pp-size", fatal: true},
		{name: "mixed chunks in a pipeline, new", cfg: c{"enable-mixed-chunk": true, "pp-size": 2.0}},
		{name: "speculation in a pipeline", cfg: c{"speculative-algorithm": "EAGLE", "pp-size": 2.0}, text: "pp-size", fatal: true},
		{name: "speculation in a prefill pipeline", cfg: c{"speculative-algorithm": "EAGLE", "pp-size": 2.0, "disaggregation-mode": "prefill"}},
		{name: "lpm without radix cache", cfg: c{"schedule-policy": "lpm", "disable-radix-cache": true}, text: "becomes fcfs", becomes: c{"schedule-policy": "fcfs"}},
		{name: "shortest prefill without radix cache", cfg: c{"schedule-policy": "shortest-prefill-first", "disable-radix-cache": true}, text: "needs the radix cache", fatal: true},
		{name: "priorities by lpm", cfg: c{"schedule-policy": "lpm", "enable-priority-scheduling": true}, text: "fcfs and lof", fatal: true},
		{name: "priorities by default", cfg: c{"enable-priority-scheduling": true}},
		{name: "compile without padding", cfg: c{"enable-torch-compile": true, "disable-cuda-graph-padding": true}, text: "exclude each other", fatal: true},
		{name: "compile without padding, old", version: "0.5.9", cfg: c{"enable-torch-compile": true, "disable-cuda-graph-padding": true}},

		{name: "odd nodes", cfg: c{"tp-size": 8.0, "nnodes": 3.0}, text: "tp-size x pp-size 8 is not divisible by nnodes 3", fatal: true},
		{name: "tp over DP attention", version: "0.5.9", cfg: c{"tp-size": 8.0, "dp-size": 3.0, "enable-dp-attention": true}, text: "tp-size 8 is not divisible", fatal: true},
		{name: "tp over attention groups", cfg: c{"tp-size": 8.0, "attn-dp-size": 3.0}, text: "tp-size 8 is not divisible", fatal: true},
		{name: "groups and replicas", cfg: c{"tp-size": 8.0, "attn-dp-size": 2.0, "dp-size": 2.0}, text: "either attention groups or replicas", fatal: true},
		{name: "DP attention of one", version: "0.5.9", cfg: c{"enable-dp-attention": true, "tp-size": 8.0}, text: "does nothing", becomes: c{"enable-dp-attention": false}},
		{name: "replicas over nodes", cfg: c{"dp-size": 2.0, "nnodes": 2.0, "tp-size": 8.0}, text: "several nodes", fatal: true},
		{name: "attention groups over nodes", cfg: c{"dp-size": 2.0, "nnodes": 2.0, "tp-size": 8.0, "enable-dp-attention": true}},
		{name: "more experts' ranks than ranks", cfg: c{"ep-size": 8.0, "tp-size": 4.0}, text: "more than tp-size 4", fatal: true},
		{name: "ep times moe-dp", cfg: c{"ep-size": 4.0, "moe-dp-size": 4.0, "tp-size": 8.0}, text: "more than tp-size 8", fatal: true},
		{name: "ep as tp", cfg: c{"ep-size": 8.0, "tp-size": 8.0}},
		{name: "dense tp", version: "0.5.9", cfg: c{"moe-dense-tp-size": 8.0, "tp-size": 8.0}, text: "must be 1", fatal: true},
		{name: "dense tp, new", cfg: c{"moe-dense-tp-size": 8.0, "tp-size": 8.0}},
		{name: "lm head without DP attention", version: "0.5.9", cfg: c{"enable-dp-lm-head": true, "dp-size": 2.0}, text: "needs enable-dp-attention", fatal: true},

		{name: "a colon in the model's name", cfg: c{"served-model-name": "kimi:latest"}, text: "colon", fatal: true},
		{name: "a colon in the model's name, old", version: "0.5.4.post3", cfg: c{"served-model-name": "kimi:latest"}},
		{name: "an address as the model's name", cfg: c{"served-model-name": "s3://models/kimi"}},
		{name: "page of flashmla", cfg: c{"page-size": 16.0, "attention-backend": "flashmla"}, text: "sets it to 64", becomes: c{"page-size": 64.0}},
		{name: "page of flashmla for decode", cfg: c{"page-size": 16.0, "decode-attention-backend": "flashmla"}, text: "sets it to 64", becomes: c{"page-size": 64.0}},
		{name: "page of cutlass_mla", version: "0.5.9", cfg: c{"page-size": 64.0, "attention-backend": "cutlass_mla"}, text: "sets it to 128", becomes: c{"page-size": 128.0}},
		{name: "page of trtllm_mla", cfg: c{"page-size": 32.0, "attention-backend": "trtllm_mla"}},
		{name: "page of trtllm_mha", version: "0.5.12", cfg: c{"page-size": 128.0, "attention-backend": "trtllm_mha"}, text: "sets it to 64", becomes: c{"page-size": 64.0}},
		{name: "page of trtllm_mha, new", cfg: c{"page-size": 128.0, "attention-backend": "trtllm_mha"}},
		{name: "page not given", cfg: c{"attention-backend": "flashmla"}},
		{name: "tree with pages", version: "0.5.4.post3", cfg: c{"speculative-algorithm": "EAGLE", "speculative-eagle-topk": 4.0, "page-size": 16.0, "attention-backend": "fa3"}, text: "speculative-eagle-topk above 1", fatal: true},
		{name: "tree with pages on fa3", version: "0.5.6.post2", cfg: c{"speculative-algorithm": "EAGLE", "speculative-eagle-topk": 4.0, "page-size": 16.0, "attention-backend": "fa3"}},
		{name: "tree on trtllm_mha", cfg: c{"speculative-algorithm": "EAGLE", "speculative-eagle-topk": 4.0, "attention-backend": "trtllm_mha"}, text: "trtllm_mha", fatal: true},
		{name: "KV type of trtllm_mla", cfg: c{"attention-backend": "trtllm_mla", "kv-cache-dtype": "fp8_e5m2"}, text: "kv-cache-dtype fp8_e5m2", fatal: true},
		{name: "fa3 with e5m2", cfg: c{"attention-backend": "fa3", "kv-cache-dtype": "fp8_e5m2"}, text: "switches to triton", becomes: c{"attention-backend": "triton"}},
		{name: "triton_kernel with ep", version: "0.5.9", cfg: c{"moe-runner-backend": "triton_kernel", "ep-size": 2.0, "tp-size": 2.0}, text: "ep-size 1 only", fatal: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := sglang.Rejected(tt.cfg, version(t, tt.version))
			if tt.text == "" {
				if len(got) > 0 {
					t.Errorf("%+v, want no conflict", got)
				}
				return
			}
			i := slices.IndexFunc(got, func(x sglang.Conflict) bool { return strings.Contains(x.Text, tt.text) })
			if i < 0 {
				t.Fatalf("%+v, want one with %q", got, tt.text)
			}
			x := got[i]
			if x.Fatal != tt.fatal || !cmp.Equal(x.Becomes, tt.becomes) || x.Rule == "" || len(x.Flags) == 0 {
				t.Errorf("%+v, want fatal %v, becoming %v", x, tt.fatal, tt.becomes)
			}
			if x.Fatal && i > 0 && !got[0].Fatal {
				t.Error("a fatal conflict is not first")
			}
		})
	}
}

// Every flag that a rule names exists in the releases the rule is for, under some name.
func TestCombinationFlagsExist(t *testing.T) {
	t.Parallel()
	for _, c := range sglang.CombinationRules() {
		if c.Rule == "" || strings.HasSuffix(c.Rule, ".") {
			t.Errorf("rule %q, want a sentence fragment", c.Rule)
		}
		for _, name := range c.Flags {
			if !sglang.Known(name) {
				t.Errorf("rule %q names %s, which no release has", c.Rule, name)
			}
		}
		if c.Since != (sglang.Version{}) && c.Until != (sglang.Version{}) && c.Since.Compare(c.Until) >= 0 {
			t.Errorf("rule %q is never in force", c.Rule)
		}
	}
}

// The rules of each release are asked about by that release's own names.
func TestRejectedByOldNames(t *testing.T) {
	t.Parallel()
	got := sglang.Rejected(sglang.Config{"tensor-parallel-size": 8.0, "nnodes": 3.0}, sglang.Version{})
	if len(got) != 1 || !got[0].Fatal {
		t.Errorf("%+v, want the rule about nodes", got)
	}
}
