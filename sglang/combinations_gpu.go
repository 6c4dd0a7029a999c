package sglang

import (
	"fmt"
	"slices"
	"strings"
)

var parallelCombinations = []combination{
	{
		flags: []string{"tp-size", "pp-size", "nnodes"}, fatal: true,
		rule: "tp-size x pp-size is divisible by nnodes",
		check: func(s settings) (string, Config) {
			return divides("tp-size x pp-size", s.number("tp-size", 1)*s.number("pp-size", 1), "nnodes", s.number("nnodes", 1)), nil
		},
	},
	{
		flags: []string{"tp-size", "dp-size", "enable-dp-attention", "attn-dp-size"}, fatal: true,
		rule: "tp-size is divisible by the groups of DP attention",
		check: func(s settings) (string, Config) {
			return divides("tp-size", s.number("tp-size", 1), "the attention groups (dp-size or attn-dp-size)", s.attentionDP()), nil
		},
	},
	{
		flags: []string{"attn-dp-size", "dp-size"}, fatal: true, since: v0523,
		rule: "attention groups and replicas do not go together",
		check: refused("attn-dp-size and dp-size above 1 together are refused: the server runs either attention groups or replicas",
			func(s settings) bool {
				return s.number("attn-dp-size", 1) > 1 && s.number("dp-size", 1) > 1 && !s.on("enable-dp-attention")
			}),
	},
	{
		flags: []string{"enable-dp-attention", "dp-size"}, until: v0523,
		rule: "DP attention needs dp-size above 1",
		check: func(s settings) (string, Config) {
			if !s.on("enable-dp-attention") || s.number("dp-size", 1) > 1 {
				return "", nil
			}
			return "enable-dp-attention does nothing with dp-size 1: the server turns it off", Config{"enable-dp-attention": false}
		},
	},
	{
		flags: []string{"dp-size", "nnodes"}, fatal: true,
		rule: "replicas over several nodes need DP attention",
		check: refused("dp-size above 1 on several nodes works with DP attention only: the server refuses to start",
			func(s settings) bool {
				return s.number("dp-size", 1) > 1 && s.number("nnodes", 1) > 1 && s.attentionDP() <= 1
			}),
	},
	{
		flags: []string{"ep-size", "moe-dp-size", "tp-size"}, fatal: true,
		rule: "ep-size x moe-dp-size is at most tp-size and divides it",
		check: func(s settings) (string, Config) {
			tp, ep, dp := s.number("tp-size", 1), s.number("ep-size", 1), s.number("moe-dp-size", 1)
			switch {
			case ep <= 1 && dp <= 1:
				return "", nil
			case ep*dp > tp:
				return fmt.Sprintf("ep-size %d x moe-dp-size %d is more than tp-size %d: the server refuses to start", ep, dp, tp), nil
			case dp > 1 && ep > 1 && ep*dp != tp:
				return fmt.Sprintf("ep-size %d x moe-dp-size %d must be tp-size %d: the server refuses to start", ep, dp, tp), nil
			}
			return divides("tp-size", tp, "ep-size x moe-dp-size", ep*dp), nil
		},
	},
	{
		flags: []string{"moe-dp-size", "pp-size"}, fatal: true, since: v0509,
		rule: "data parallelism of experts does not go with pipeline parallelism",
		check: refused("moe-dp-size above 1 does not work with pp-size above 1: the server refuses to start",
			func(s settings) bool { return s.number("moe-dp-size", 1) > 1 && s.number("pp-size", 1) > 1 }),
	},
	{
		flags: []string{"attn-cp-size", "tp-size"}, fatal: true, since: v0509,
		rule: "tp-size is divisible by attn-cp-size times the attention groups",
		check: func(s settings) (string, Config) {
			cp := s.number("attn-cp-size", 1)
			if cp <= 1 {
				return "", nil
			}
			return divides("tp-size", s.number("tp-size", 1), "attn-cp-size x attention groups", cp*s.attentionDP()), nil
		},
	},
	{
		flags: []string{"moe-dense-tp-size", "tp-size"}, fatal: true,
		rule: "moe-dense-tp-size is 1 (from 0.5.15 on also tp-size)",
		check: func(s settings) (string, Config) {
			n := s.number("moe-dense-tp-size", 1)
			if n == 1 || s.v.Compare(v0515) >= 0 && n == s.number("tp-size", 1) {
				return "", nil
			}
			return fmt.Sprintf("moe-dense-tp-size %d is refused: it must be 1 (from 0.5.15 on also tp-size)", n), nil
		},
	},
	{
		flags: []string{"enable-dp-lm-head", "enable-dp-attention"}, fatal: true, since: v0409, until: v0523,
		rule: "enable-dp-lm-head needs DP attention",
		check: refused("enable-dp-lm-head needs enable-dp-attention: the server refuses to start",
			func(s settings) bool {
				return s.on("enable-dp-lm-head") && s.number("dp-size", 1) > 1 && !s.on("enable-dp-attention")
			}),
	},
}

var kernelCombinations = []combination{
	{
		flags: []string{"page-size", "attention-backend", "decode-attention-backend", "prefill-attention-backend"},
		rule:  "some attention backends set the page size themselves",
		check: func(s settings) (string, Config) {
			asked, given := s.cfg.Float("page-size")
			page, backend := s.forcedPage(int(asked))
			if !given || backend == "" {
				return "", nil
			}
			return fmt.Sprintf("attention backend %s does not take page-size %d: the server sets it to %d", backend, int(asked), page),
				Config{"page-size": float64(page)}
		},
	},
	{
		flags: []string{"speculative-eagle-topk", "page-size", "attention-backend"}, fatal: true, since: v0502,
		rule: "drafting a tree (speculative-eagle-topk above 1) with pages above 1 goes with flashinfer, from 0.5.6 on fa3, from 0.5.15 on triton",
		check: func(s settings) (string, Config) {
			backend := s.given("attention-backend")
			able := []string{"flashinfer"}
			if s.v.Compare(v0506) >= 0 {
				able = append(able, "fa3")
			}
			if s.v.Compare(v0515) >= 0 {
				able = append(able, "triton")
			}
			if s.number("speculative-eagle-topk", 1) <= 1 || s.page() <= 1 || backend == "" || slices.Contains(able, backend) {
				return "", nil
			}
			return fmt.Sprintf("speculative-eagle-topk above 1 with a page size of %d does not work with attention backend %s: the server refuses to start", s.page(), backend), nil
		},
	},
	{
		flags: []string{"speculative-eagle-topk", "attention-backend"}, fatal: true, since: v0502,
		rule: "trtllm_mha drafts no tree",
		check: refused("attention backend trtllm_mha works with speculative-eagle-topk 1 only: the server refuses to start",
			func(s settings) bool {
				return s.given("speculative-algorithm") != "" && s.number("speculative-eagle-topk", 1) > 1 && slices.Contains(s.backends(false), "trtllm_mha")
			}),
	},
	{
		flags: []string{"kv-cache-dtype", "attention-backend", "decode-attention-backend"}, fatal: true, since: v0502,
		rule: "trtllm_mla takes KV cache types auto, fp8_e4m3 and (from 0.5.4 on) bf16",
		check: func(s settings) (string, Config) {
			dtype := s.orDefault("kv-cache-dtype")
			if !slices.Contains(s.backends(true), "trtllm_mla") || slices.Contains([]string{"auto", "fp8_e4m3", "bf16", ""}, dtype) {
				return "", nil
			}
			return "attention backend trtllm_mla does not take kv-cache-dtype " + dtype + ": the server refuses to start", nil
		},
	},
	{
		flags: []string{"attention-backend", "kv-cache-dtype"}, since: v0504,
		rule: "fa3 does not take KV cache type fp8_e5m2",
		check: func(s settings) (string, Config) {
			if s.given("attention-backend") != "fa3" || s.given("kv-cache-dtype") != "fp8_e5m2" {
				return "", nil
			}
			return "attention backend fa3 does not take kv-cache-dtype fp8_e5m2: the server switches to triton", Config{"attention-backend": "triton"}
		},
	},
	{
		flags: []string{"moe-runner-backend", "ep-size"}, fatal: true, since: v0502, until: v0520,
		rule: "moe-runner-backend triton_kernel works without expert parallelism",
		check: refused("moe-runner-backend triton_kernel works with ep-size 1 only: the server refuses to start",
			func(s settings) bool {
				return s.given("moe-runner-backend") == "triton_kernel" && s.number("ep-size", 1) > 1
			}),
	},
}

var serviceCombinations = []combination{
	{
		flags: []string{"served-model-name"}, fatal: true, since: v0505,
		rule: "a served model's name has no colon",
		check: refused("served-model-name cannot hold a colon, which separates a model from a LoRA adapter: the server refuses to start",
			func(s settings) bool {
				name := s.given("served-model-name")
				return strings.Contains(name, ":") && !strings.Contains(name, "://")
			}),
	},
}
