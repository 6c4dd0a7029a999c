package sglang

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// kindsOf maps the names of the reference's patterns to the kinds of events that stand for them. An empty
// list is a pattern that is part of another line, or that means nothing for a verdict.
var kindsOf = map[string][]string{
	"line_prefix":                 {"weight_begin", "memory_pool_end", ""},
	"server_args_repr":            {"server_args"},
	"server_args_dict":            {"server_args"},
	"argparse_error":              {"argparse_error"},
	"hicache_radix_conflict":      {"flags_conflict"},
	"config_unsupported":          {"config_unsupported"},
	"no_accelerator":              {"no_accelerator"},
	"port_in_use_internal":        {"port_in_use"},
	"port_in_use_http":            {"port_in_use"},
	"dist_begin":                  {"dist_begin"},
	"dist_end":                    {"dist_end"},
	"mem_baseline":                {"mem_baseline"},
	"mem_unbalanced":              {"mem_unbalanced"},
	"weight_begin":                {"weight_begin"},
	"weight_end":                  {"weight_end"},
	"safetensors_progress":        {"shard_progress"},
	"kv_allocated_mla":            {"kv_allocated"},
	"kv_allocated_mha":            {"kv_allocated"},
	"swa_pool":                    {"swa_pool"},
	"memory_pool_end":             {"memory_pool_end"},
	"post_capture_resize":         {"kv_resized"},
	"not_enough_memory_kv":        {"not_enough_memory"},
	"weights_leave_no_kv":         {"weights_leave_no_kv"},
	"max_tokens_clamped":          {"max_tokens_clamped"},
	"max_running_clamped":         {"max_running_clamped"},
	"hicache_autosize":            {"hicache_autosize"},
	"hicache_alloc_new":           {"host_pool"},
	"hicache_alloc_old":           {"host_pool"},
	"hicache_smaller_than_device": {"hicache_smaller_than_device"},
	"hicache_smaller_assert":      {"hicache_smaller_refused"},
	"host_mem_insufficient":       {"host_mem_insufficient"},
	"host_register_failed":        {"host_register_failed"},
	"graph_begin":                 {"graph_begin"},
	"graph_end":                   {"graph_end"},
	"graph_failed":                {"graph_failed", "gpu_oom"},
	"max_total_num_tokens":        {"capacity"},
	"engine_startup":              {"engine_startup"},
	"uvicorn_running":             {"uvicorn_running"},
	"ready":                       {"fired_up"},
	"warmup_failed":               {"warmup_failed"},
	"access_health":               {"health_access"},
	"health_failed":               {"health_failed"},
	"access_error":                {"access_error"},
	"prefill_batch":               {"prefill_batch"},
	"decode_batch":                {"decode_batch"},
	"graph_flag":                  {""},
	"spec_accept":                 {""},
	"retract":                     {"retract"},
	"retract_abort":               {"retract_abort"},
	"cache_flushed":               {"cache_flushed", "flush_refused"},
	"gpu_oom":                     {"gpu_oom"},
	"cuda_oom_lowlevel":           {"gpu_oom"},
	"prefill_kv_oom":              {"kv_alloc_failed"},
	"decode_kv_oom":               {"kv_alloc_failed"},
	"req_slots_oom":               {"kv_alloc_failed"},
	"alloc_retry_warn":            {""},
	"scheduler_exception":         {""}, // opens a traceback
	"traceback_last":              {"traceback_last"},
	"sigquit_launch":              {"sigquit"},
	"sigquit_running":             {"sigquit"},
	"child_crashed":               {"child_crashed"},
	"scheduler_died_init":         {"scheduler_died_init"},
	"watchdog":                    {"watchdog"},
	"nccl_error":                  {"nccl_error"},
	"cuda_illegal":                {"cuda_illegal"},
	"pool_leak":                   {"pool_leak"},
	"sigterm":                     {"sigterm"},
	"graceful_exit":               {"graceful_exit"},
	"sched_straggler":             {"schedulers_killed"},
	"kill_tree":                   {"kill_tree"},
	"host_oom_killer":             {"kernel_oom"},
	"slurm_oom":                   {"kernel_oom"},
}

// TestReferencePatterns: every example line of every pattern of the reference is recognized as what it is.
func TestReferencePatterns(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/patterns/sglang_patterns.json")
	if err != nil {
		t.Fatal(err)
	}
	var reference struct {
		Patterns []struct {
			Name    string   `json:"name"`
			Example string   `json:"example"`
			More    []string `json:"more_examples"`
		} `json:"patterns"`
	}
	if err := json.Unmarshal(text, &reference); err != nil {
		t.Fatal(err)
	}
	if len(reference.Patterns) != len(kindsOf) {
		t.Errorf("the reference has %d patterns, this table %d", len(reference.Patterns), len(kindsOf))
	}
	for _, p := range reference.Patterns {
		for _, line := range append([]string{p.Example}, p.More...) {
			ev, _ := ParseLine(line)
			if kinds, known := kindsOf[p.Name]; !known || !slices.Contains(kinds, ev.Kind) {
				t.Errorf("%s: %q is read as %q, want one of %q", p.Name, line, ev.Kind, kindsOf[p.Name])
			}
		}
	}
}
