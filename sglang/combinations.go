package sglang

import (
	"fmt"
	"slices"
)

// combinations are SGLang's checks between flags, each found in the wheels of flags/README.md:
// arg_groups/*_hook.py from 0.5.20 on, server_args.py before. since is the first of those releases
// that has the check.
var combinations = slices.Concat(cacheCombinations, scheduleCombinations, parallelCombinations, kernelCombinations, serviceCombinations)

var cacheCombinations = []combination{
	{
		flags: []string{"hicache-size", "enable-hierarchical-cache", "disable-radix-cache"}, fatal: true, since: v0502,
		rule: "the hierarchical cache needs the radix cache",
		check: refused("the hierarchical cache and disable-radix-cache exclude each other: the server refuses to start",
			func(s settings) bool { return s.hicache() && s.on("disable-radix-cache") }),
	},
	{
		flags: []string{"hicache-size", "enable-hierarchical-cache", "disable-radix-cache"}, until: v0502,
		rule: "the hierarchical cache does nothing without the radix cache",
		check: func(s settings) (string, Config) {
			if !s.hicache() || !s.on("disable-radix-cache") {
				return "", nil
			}
			return "with disable-radix-cache the hierarchical cache does nothing", Config{"hicache-size": 0.0}
		},
	},
	{
		flags: []string{"hicache-size", "enable-hierarchical-cache", "enable-lmcache"}, fatal: true, since: v0523,
		rule: "the hierarchical cache or LMCache, not both",
		check: refused("the hierarchical cache and enable-lmcache exclude each other: the server refuses to start",
			func(s settings) bool { return s.hicache() && s.on("enable-lmcache") }),
	},
	{
		flags: []string{"enable-lmcache", "disable-radix-cache"}, fatal: true, since: v0523,
		rule: "LMCache needs the radix cache, and takes neither speculation nor DP attention",
		check: func(s settings) (string, Config) {
			switch {
			case !s.on("enable-lmcache"):
				return "", nil
			case s.on("disable-radix-cache"):
				return "enable-lmcache needs the radix cache: the server refuses to start with disable-radix-cache", nil
			case s.given("speculative-algorithm") != "":
				return "enable-lmcache does not work with speculative decoding: the server refuses to start", nil
			case s.attentionDP() > 1:
				return "enable-lmcache does not work with DP attention: the server refuses to start", nil
			}
			return "", nil
		},
	},
	{
		flags: []string{"hicache-size", "enable-hierarchical-cache", "enable-unified-cache-external-linker"}, fatal: true, since: v0523,
		rule: "the hierarchical cache or an external linker, not both",
		check: refused("the hierarchical cache and enable-unified-cache-external-linker exclude each other: the server refuses to start",
			func(s settings) bool { return s.hicache() && s.on("enable-unified-cache-external-linker") }),
	},
	{
		flags: []string{"hicache-size", "enable-hierarchical-cache", "dcp-size"}, fatal: true, since: v0523,
		rule: "with decode context parallelism the hierarchical cache takes no speculation but DSPARK, and no buffer_only mode",
		check: func(s settings) (string, Config) {
			spec := s.given("speculative-algorithm")
			switch {
			case !s.hicache() || s.number("dcp-size", 1) <= 1:
				return "", nil
			case spec != "" && spec != "DSPARK":
				return "with dcp-size above 1 the hierarchical cache does not work with speculative-algorithm " + spec + ": the server refuses to start", nil
			case s.given("hicache-storage-backend") != "" && s.given("hicache-host-memory-mode") == "buffer_only":
				return "with dcp-size above 1 the hierarchical cache does not work in buffer_only mode: the server refuses to start", nil
			}
			return "", nil
		},
	},
	{
		flags: []string{"hicache-host-memory-mode", "hicache-storage-backend"}, fatal: true, since: v0520,
		rule: "hicache-host-memory-mode buffer_only needs a storage backend",
		check: refused("hicache-host-memory-mode buffer_only needs a hicache-storage-backend: the server refuses to start",
			func(s settings) bool {
				return s.hicache() && s.given("hicache-host-memory-mode") == "buffer_only" && s.given("hicache-storage-backend") == ""
			}),
	},
	{
		flags: []string{"hicache-mem-layout", "hicache-io-backend"}, since: v0503,
		rule: "layout page_first_direct is copied by io backend direct only",
		check: func(s settings) (string, Config) {
			if !s.hicache() || s.orDefault("hicache-mem-layout") != "page_first_direct" || s.orDefault("hicache-io-backend") != "kernel" {
				return "", nil
			}
			return "with hicache-mem-layout page_first_direct the server switches hicache-io-backend from kernel to direct",
				Config{"hicache-io-backend": "direct"}
		},
	},
	{
		flags: []string{"hicache-mem-layout", "hicache-io-backend"}, since: v0510,
		rule: "io backend direct copies layout page_first_direct, not page_first",
		check: func(s settings) (string, Config) {
			if !s.hicache() || s.orDefault("hicache-mem-layout") != "page_first" || s.orDefault("hicache-io-backend") != "direct" {
				return "", nil
			}
			return "with hicache-io-backend direct the server switches hicache-mem-layout from page_first to page_first_direct",
				Config{"hicache-mem-layout": "page_first_direct"}
		},
	},
	{
		flags: []string{"hicache-storage-backend", "hicache-mem-layout"}, since: v0503,
		rule: "storage backend mooncake does not take layout layer_first",
		check: func(s settings) (string, Config) {
			if !s.hicache() || s.given("hicache-storage-backend") != "mooncake" || s.orDefault("hicache-mem-layout") != "layer_first" {
				return "", nil
			}
			layout := "page_first"
			if s.orDefault("hicache-io-backend") == "direct" {
				layout = "page_first_direct"
			}
			return "hicache-storage-backend mooncake does not take hicache-mem-layout layer_first: the server switches it to " + layout,
				Config{"hicache-mem-layout": layout}
		},
	},
}

var scheduleCombinations = []combination{
	{
		flags: []string{"chunked-prefill-size", "page-size"}, fatal: true,
		rule: "chunked-prefill-size is a multiple of page-size, after DP attention has divided it",
		check: func(s settings) (string, Config) {
			chunk := s.number("chunked-prefill-size", 0)
			page, dp := s.page(), s.attentionDP()
			if chunk == 0 || chunk < 0 && s.v.Compare(v0502) >= 0 || s.given("disaggregation-mode") == "decode" {
				return "", nil
			}
			if chunk < 0 && page > 1 {
				return fmt.Sprintf("chunked-prefill-size -1 works with page-size 1 only before SGLang 0.5.2, and the page size is %d: the server refuses to start", page), nil
			}
			if dp > 1 {
				return divides(fmt.Sprintf("chunked-prefill-size %d over %d attention groups,", chunk, dp), chunk/dp, "page-size", page), nil
			}
			return divides("chunked-prefill-size", chunk, "page-size", page), nil
		},
	},
	{
		flags: []string{"enable-mixed-chunk", "speculative-algorithm"}, since: v0409,
		rule: "mixed chunks do not go with speculative decoding (from 0.5.20 on with EAGLE, EAGLE3, DFLASH and DSPARK they do)",
		check: func(s settings) (string, Config) {
			spec := s.given("speculative-algorithm")
			mixes := s.v.Compare(v0520) >= 0 && slices.Contains([]string{"EAGLE", "EAGLE3", "NEXTN", "DFLASH", "DSPARK"}, spec)
			if spec == "" || mixes || !s.on("enable-mixed-chunk") {
				return "", nil
			}
			return "enable-mixed-chunk does not work with speculative-algorithm " + spec + ": the server turns it off", Config{"enable-mixed-chunk": false}
		},
	},
	{
		flags: []string{"enable-mixed-chunk", "pp-size"}, fatal: true, until: v0512,
		rule: "mixed chunks do not go with pipeline parallelism",
		check: refused("enable-mixed-chunk does not work with pp-size above 1: the server refuses to start",
			func(s settings) bool { return s.on("enable-mixed-chunk") && s.number("pp-size", 1) > 1 }),
	},
	{
		flags: []string{"speculative-algorithm", "pp-size"}, fatal: true,
		rule: "speculative decoding does not go with pipeline parallelism, but for EAGLE on a prefill server from 0.5.20 on",
		check: refused("speculative decoding does not work with pp-size above 1: the server refuses to start",
			func(s settings) bool {
				prefill := s.v.Compare(v0520) >= 0 && s.given("disaggregation-mode") == "prefill"
				return s.given("speculative-algorithm") != "" && s.number("pp-size", 1) > 1 && !prefill
			}),
	},
	{
		flags: []string{"schedule-policy", "disable-radix-cache"},
		rule:  "schedule-policy lpm and dfs-weight look at the radix cache",
		check: func(s settings) (string, Config) {
			policy := s.given("schedule-policy")
			if policy != "lpm" && policy != "dfs-weight" || !s.on("disable-radix-cache") {
				return "", nil
			}
			return "schedule-policy " + policy + " becomes fcfs with disable-radix-cache", Config{"schedule-policy": "fcfs"}
		},
	},
	{
		flags: []string{"schedule-policy", "disable-radix-cache"}, fatal: true, since: v0523,
		rule: "schedule-policy shortest-prefill-first needs the radix cache",
		check: refused("schedule-policy shortest-prefill-first needs the radix cache: the server refuses to start with disable-radix-cache",
			func(s settings) bool {
				return s.given("schedule-policy") == "shortest-prefill-first" && s.on("disable-radix-cache")
			}),
	},
	{
		flags: []string{"enable-priority-scheduling", "schedule-policy"}, fatal: true, since: v0503,
		rule: "priority scheduling goes with schedule-policy fcfs and lof",
		check: refused("enable-priority-scheduling works with schedule-policy fcfs and lof only: the server refuses to start",
			func(s settings) bool {
				return s.on("enable-priority-scheduling") && !slices.Contains([]string{"fcfs", "lof"}, s.orDefault("schedule-policy"))
			}),
	},
	{
		flags: []string{"enable-torch-compile", "disable-cuda-graph-padding"}, fatal: true, since: v0512,
		rule: "torch.compile needs padded graphs",
		check: refused("enable-torch-compile and disable-cuda-graph-padding exclude each other: the server refuses to start",
			func(s settings) bool { return s.on("enable-torch-compile") && s.on("disable-cuda-graph-padding") }),
	},
}
