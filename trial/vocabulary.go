package trial

import (
	"slices"

	"sgtune/sglang"
)

// The closed lists of the failure vocabulary, as data. Tests hold every verdict against them and them
// against the vocabulary's own page.

// Outcomes lists every outcome a verdict may have, best first.
var Outcomes = []Outcome{
	OK, Degraded, GPUOOM, HostOOM, ConfigRejected, EnvFault, Crashed, StartupTimeout, Stuck, MonitorWrong, Unreachable, BenchInvalid,
	QualityRejected, QualityUnmeasured, DirtyHost, Aborted, Unknown,
}

// Phases lists every phase a verdict may have, in the order of a server's life.
var Phases = []sglang.Phase{
	sglang.PhaseLaunch, sglang.PhaseDistInit, sglang.PhaseWeightLoad, sglang.PhaseKVPool, sglang.PhaseGraphCapture, sglang.PhaseHostPool,
	sglang.PhaseHTTPStart, sglang.PhaseWarmup, sglang.PhaseReady, sglang.PhasePrefill, sglang.PhaseDecode, sglang.PhaseBench, sglang.PhaseShutdown,
}

// Causes lists the causes of each outcome. Where the inputs prove an outcome and not its cause, the
// cause is "unknown" (CauseAllowed).
var Causes = map[Outcome][]string{
	OK:                {causeNone},
	Degraded:          {"retraction_storm", "throughput_collapse", "throttled"},
	GPUOOM:            {"weights_too_big", "kv_pool_nonpositive", "graph_capture_oom", "prefill_activation", "decode_activation", "sampling_logits", "hicache_device_buffers"},
	HostOOM:           {"hicache_check_refused", "hicache_oversubscribed", "kernel_oom_kill", "cgroup_limit"},
	ConfigRejected:    {"unknown_flag", "bad_value", "unsupported_combination", "hicache_smaller_than_device"},
	EnvFault:          {"port_in_use", "no_gpu", "gpu_memory_leftover", "shm_too_small", "http_proxy", "model_missing", "gpu_lost", "ecc", "mig_on"},
	Crashed:           {"python_exception", "cuda_error", "nccl_error", "silent_exit"},
	StartupTimeout:    {"slow_weight_load", "load_barrier_timeout", "jit_compile", "slow_graph_capture"},
	Stuck:             {"peer_missing", "hicache_deadlock", "watchdog_timeout", "no_progress"},
	MonitorWrong:      {"health_body_empty", "health_busy_timeout", "health_starting"},
	Unreachable:       {"bound_to_loopback", "tunnel_down"},
	BenchInvalid:      {"failed_requests", "wrong_token_count", "client_hung", "client_limited"},
	QualityRejected:   {"fp8_kv_unscaled", "lossy_kv", "lossy_weights", "lossy_sampling"},
	QualityUnmeasured: {causeNone},
	DirtyHost:         {"memory_held", "process_left", "port_held"},
	Aborted:           {"operator_signal", "job_time_limit"},
	Unknown:           {causeUnknown},
}

// AdviceCodes lists every advice a verdict may give.
var AdviceCodes = []string{
	adviceAccept, adviceRaiseFraction, adviceLowerFraction, adviceLowerChunk, adviceLowerRunning, adviceLowerGraphs, adviceLowerHicache,
	adviceRaiseHicache, adviceNoHicache, adviceReusing, advicePageSize, adviceMambaSlots, adviceConservative, adviceLessConservative,
	adviceBF16, adviceScales, adviceSmallerOrMore, adviceFixFlag, adviceFreePort, adviceFreeGPU, adviceRaiseShm, adviceContainerRAM,
	adviceBypassProxy, advicePeers, adviceReadyTimeout, adviceJobTime, advicePrewarm, adviceFixProbe, adviceFixRoute, adviceRerun,
	adviceRerunBench, adviceUpgrade, adviceReport,
}

// CauseAllowed reports whether a verdict may join this outcome and this cause.
func CauseAllowed(outcome Outcome, cause string) bool {
	own, known := Causes[outcome]
	return known && (slices.Contains(own, cause) || cause == causeUnknown && outcome != OK)
}
