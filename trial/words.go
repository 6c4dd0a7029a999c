package trial

// Causes of the closed list that are used in more than one place.
const (
	causeNone    = "none"
	causeUnknown = "unknown"
)

// Advice: the closed list of codes, best first in a verdict.
const (
	adviceAccept        = "accept_result"
	adviceRaiseFraction = "raise_mem_fraction"
	adviceLowerFraction = "lower_mem_fraction"
	adviceLowerChunk    = "lower_chunked_prefill"
	adviceLowerRunning  = "lower_max_running"
	adviceLowerGraphs   = "lower_cuda_graph_max_bs"
	adviceLowerHicache  = "lower_hicache_size"
	adviceRaiseHicache  = "raise_hicache_size"
	adviceNoHicache     = "disable_hicache"
	adviceMambaSlots    = "raise_mamba_slots"
	adviceConservative  = "raise_schedule_conservativeness"
	adviceFixFlag       = "fix_flag"
	adviceFreePort      = "free_port"
	adviceFreeGPU       = "free_gpu_memory"
	adviceRaiseShm      = "raise_shm"
	adviceContainerRAM  = "raise_container_memory"
	advicePeers         = "check_peer_nodes"
	adviceReadyTimeout  = "raise_ready_timeout"
	advicePrewarm       = "prewarm_cache"
	adviceFixProbe      = "fix_probe"
	adviceRerun         = "rerun_same"
	adviceRerunBench    = "rerun_bench"
	adviceReport        = "report_bug"
	adviceSmallerOrMore = "more_gpus_or_smaller_model"
)

// Kinds of log events the verdict and the watch look at; package sglang names them.
const (
	kindFiredUp     = "fired_up"
	kindUvicorn     = "uvicorn_running"
	kindHostPool    = "host_pool"
	kindShards      = "shard_progress"
	kindCapacity    = "capacity"
	kindServerArgs  = "server_args"
	kindSigterm     = "sigterm"
	kindChild       = "child_crashed"
	kindGPUOOM      = "gpu_oom"
	kindRetract     = "retract"
	kindChildExit   = "child_exit"
	kindDiedInit    = "scheduler_died_init"
	kindSigquit     = "sigquit"
	kindTraceback   = "traceback_last"
	kindKernelOOM   = "kernel_oom"
	kindDistBegin   = "dist_begin"
	kindContextPool = "context_exceeds_pool"
)
