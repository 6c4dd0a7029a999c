package trial_test

import (
	"slices"
	"strings"
	"testing"

	"sgtune/trial"
)

// The closed lists as the vocabulary's page gives them, and what the design adds.
const (
	pageOutcomes = `ok degraded gpu_oom host_oom config_rejected env_fault crashed startup_timeout stuck monitor_wrong unreachable
		bench_invalid quality_rejected aborted unknown`
	addedOutcomes = `dirty_host quality_unmeasured`
	pagePhases    = `launch dist_init weight_load kv_pool graph_capture host_pool http_start warmup ready prefill decode bench shutdown`
	pageAdvice    = `accept_result raise_mem_fraction lower_mem_fraction lower_chunked_prefill lower_max_running lower_cuda_graph_max_bs lower_hicache_size
		raise_hicache_size disable_hicache use_reusing_workload raise_page_size raise_mamba_slots raise_schedule_conservativeness lower_schedule_conservativeness
		use_bf16_kv provide_kv_scales more_gpus_or_smaller_model fix_flag free_port free_gpu_memory raise_shm raise_container_memory bypass_proxy check_peer_nodes
		raise_ready_timeout raise_job_time_limit prewarm_cache fix_probe fix_bind_or_tunnel rerun_same rerun_bench upgrade_sglang report_bug`
)

var pageCauses = map[trial.Outcome]string{
	trial.OK:                "none",
	trial.GPUOOM:            "weights_too_big kv_pool_nonpositive graph_capture_oom prefill_activation decode_activation sampling_logits hicache_device_buffers",
	trial.HostOOM:           "hicache_check_refused hicache_oversubscribed kernel_oom_kill cgroup_limit",
	trial.ConfigRejected:    "unknown_flag bad_value unsupported_combination hicache_smaller_than_device",
	trial.EnvFault:          "port_in_use no_gpu gpu_memory_leftover shm_too_small http_proxy model_missing",
	trial.Crashed:           "python_exception cuda_error nccl_error silent_exit",
	trial.StartupTimeout:    "slow_weight_load load_barrier_timeout jit_compile slow_graph_capture",
	trial.Stuck:             "peer_missing hicache_deadlock watchdog_timeout no_progress",
	trial.MonitorWrong:      "health_body_empty health_busy_timeout health_starting",
	trial.Unreachable:       "bound_to_loopback tunnel_down",
	trial.Degraded:          "retraction_storm throughput_collapse",
	trial.QualityRejected:   "fp8_kv_unscaled",
	trial.BenchInvalid:      "failed_requests wrong_token_count client_hung",
	trial.Aborted:           "operator_signal job_time_limit",
	trial.Unknown:           "unknown",
	trial.DirtyHost:         "memory_held process_left port_held",
	trial.QualityUnmeasured: "none",
}

var addedCauses = map[trial.Outcome]string{
	trial.BenchInvalid: "client_limited", trial.Degraded: "throttled", trial.EnvFault: "gpu_lost ecc mig_on",
	trial.QualityRejected: "lossy_kv lossy_weights lossy_sampling",
}

func TestClosedLists(t *testing.T) {
	t.Parallel()
	check := func(name string, got []string, want string) {
		t.Helper()
		a, b := slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(strings.Fields(want)))
		if !slices.Equal(a, b) {
			t.Errorf("%s: %v, want %v", name, a, b)
		}
	}
	check("outcomes", texts(trial.Outcomes), pageOutcomes+" "+addedOutcomes)
	check("phases", texts(trial.Phases), pagePhases)
	check("advice", trial.AdviceCodes, pageAdvice)
	for _, outcome := range trial.Outcomes {
		check("causes of "+string(outcome), trial.Causes[outcome], pageCauses[outcome]+" "+addedCauses[outcome])
	}
}

func texts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}

// inVocabulary reports whether every word of a verdict is of the closed lists.
func inVocabulary(t *testing.T, v trial.Verdict) {
	t.Helper()
	if !slices.Contains(trial.Outcomes, v.Outcome) || !slices.Contains(trial.Phases, v.Phase) || !trial.CauseAllowed(v.Outcome, v.Cause) {
		t.Errorf("verdict %s / %s / %s is not of the vocabulary", v.Outcome, v.Phase, v.Cause)
	}
	if v.Blames != trial.BlameYes && v.Blames != trial.BlameNo && v.Blames != trial.BlamePartly || v.Text == "" {
		t.Errorf("blames %q, text %q", v.Blames, v.Text)
	}
	for _, code := range v.Advice {
		if !slices.Contains(trial.AdviceCodes, code) {
			t.Errorf("advice %q is not of the vocabulary", code)
		}
	}
	if v.Outcome == trial.Unknown && v.Blames != trial.BlameNo {
		t.Error("an unknown end blames the configuration")
	}
}
