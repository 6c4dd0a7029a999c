package sglang_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/sglang"
)

func TestServerInfoEqual(t *testing.T) {
	t.Parallel()
	a := map[string]any{
		"mem_fraction_static": 0.85, "port": 31001.0, "random_seed": 1.0, "startup_time": 12.0, "launch_command": "a",
		"enable_metrics": true, "decode_log_interval": 10.0, "max_total_num_tokens": 81171.0, "hicache_size": 0.0,
		"cuda_graph_bs": []any{1.0, 2.0}, "watchdog": nil, "version": "0.5.23",
	}
	b := map[string]any{
		"mem_fraction_static": 0.85, "port": 31002.0, "random_seed": 2.0, "startup_time": 15.0, "launch_command": "b",
		"enable_metrics": false, "decode_log_interval": 40.0, "max_total_num_tokens": 58754.0, "hicache_size": 0.0,
		"cuda_graph_bs": []any{1.0, 2.0}, "version": "0.5.23",
	}
	if d := sglang.ServerInfoEqual(a, b, nil); len(d) != 0 {
		t.Errorf("two launches of one configuration differ in %v", d)
	}
	b["mem_fraction_static"], b["cuda_graph_bs"], b["page_size"] = 0.86, []any{1.0}, 64.0
	if d := cmp.Diff([]string{"cuda_graph_bs", "mem_fraction_static", "page_size"}, sglang.ServerInfoEqual(a, b, nil)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	keys := []string{"mem-fraction-static", "hicache-size", "port", "env.NCCL_ALGO"}
	if d := cmp.Diff([]string{"mem_fraction_static"}, sglang.ServerInfoEqual(a, b, keys)); d != "" {
		t.Errorf("chosen keys -want +got:\n%s", d)
	}
}
