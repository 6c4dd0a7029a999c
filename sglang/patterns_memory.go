package sglang

// memoryPatterns are how memory of a GPU or of the host runs out: torch, CUDA, NCCL, SGLang's own checks,
// the kernel, Slurm, a container runtime. Special before general.
var memoryPatterns = []pattern{
	{
		kind: "gpu_oom", has: "CUDA out of memory", level: fatal,
		re: `CUDA out of memory\.(?:.*?Tried to allocate (?P<oom_tried_mib>[\d.]+ [KMGT]iB))?(?:.*?GPU (?P<gpu>\d+) )?(?:.*?total capacity of (?P<oom_gpu_total_gib>[\d.]+ [KMGT]iB))?(?:.*?of which (?P<oom_gpu_free_mib>[\d.]+ [KMGT]iB) is free)?`,
	},
	{
		kind: "gpu_oom", has: "HIP out of memory", level: fatal,
		re: `HIP out of memory\.(?:.*?Tried to allocate (?P<oom_tried_mib>[\d.]+ [KMGT]iB))?(?:.*?GPU (?P<gpu>\d+) )?(?:.*?total capacity of (?P<oom_gpu_total_gib>[\d.]+ [KMGT]iB))?(?:.*?of which (?P<oom_gpu_free_mib>[\d.]+ [KMGT]iB) is free)?`,
	},
	{kind: "gpu_oom", has: "OutOfMemoryError", level: fatal, re: `^torch\.(?:cuda\.)?OutOfMemoryError: (?:.*?Tried to allocate (?P<oom_tried_mib>[\d.]+ [KMGT]iB))?`},
	{kind: "gpu_oom", has: "CUDA error: out of memory", level: fatal},
	{kind: "gpu_oom", has: "cudaErrorMemoryAllocation", level: fatal},
	{kind: "gpu_oom", has: "CUBLAS_STATUS_ALLOC_FAILED", level: fatal},
	{kind: "graph_failed", has: " graph failed: ", level: fatal, phase: PhaseGraphCapture, re: `Capture [\w ]+ graph failed: (?P<Msg>.*)`},
	{
		kind: "not_enough_memory", has: "Not enough memory. Please try to increase --mem-fraction-static", level: fatal, phase: PhaseKVPool,
		re: `--mem-fraction-static\.(?:.*mem_fraction_static=(?P<mem_fraction_static>[\d.]+))?`,
	},
	{
		kind: "weights_leave_no_kv", has: "Loaded weights leave no GPU memory", level: fatal, phase: PhaseKVPool,
		re: `--mem-fraction-static=(?P<mem_fraction_static>[\d.]+)\. Raise --mem-fraction-static above (?P<lowest_fraction>[\d.]+)`,
	},
	{
		kind: "host_mem_insufficient", has: "Not enough host memory", level: fatal, phase: PhaseHostPool,
		re: `Requesting (?P<host_request_gb_per_rank>[\d.]+) GB but only have (?P<host_free_gb>-?[\d.]+) GB free`,
	},
	{kind: "host_register_failed", has: "cudaHostRegister", level: fatal, phase: PhaseHostPool},
	{kind: "kernel_oom", has: "Out of memory: Killed process ", level: fatal, re: `(?P<Where>Out of memory|Memory cgroup out of memory): Killed process (?P<pid>\d+)(?: \((?P<Name>[^)]*)\))?`},
	{kind: "kernel_oom", has: "Memory cgroup out of memory: Killed process ", level: fatal, re: `(?P<Where>Memory cgroup out of memory): Killed process (?P<pid>\d+)(?: \((?P<Name>[^)]*)\))?`},
	{kind: "kernel_oom", has: "oom-kill:", level: fatal, re: `oom-kill:(?:.*?constraint=(?P<Where>CONSTRAINT_MEMCG))?`},
	{kind: "kernel_oom", has: "slurmstepd: error: ", level: fatal, re: `(?i)(?P<Where>oom[-_]kill|out of memory|out-of-memory)`},
	{kind: "gpu_oom", has: "Cuda failure", level: fatal, re: `Cuda failure (?:\d+ )?'out of memory'`},
	{kind: "gpu_oom", has: "CUDA driver error: out of memory", level: fatal},
	{kind: "gpu_oom", has: "CUDA_ERROR_OUT_OF_MEMORY", level: fatal},
	{kind: "gpu_oom", has: "CUBLAS_STATUS_NOT_INITIALIZED", level: fatal}, // cuBLAS could not allocate its workspace
	{kind: "gpu_oom", has: "CUDNN_STATUS_ALLOC_FAILED", level: fatal},
	{kind: "gpu_oom", has: "hipErrorOutOfMemory", level: fatal},
	{kind: "state_cache_too_small", has: "Not enough GPU memory for hybrid (mamba/linear-attention) state cache", level: fatal, phase: PhaseKVPool},
	{kind: "state_cache_too_small", has: "state cache is too small to serve", level: fatal, phase: PhaseKVPool},
	{kind: "host_mem_insufficient", has: "No host memory is left for HiCache", level: fatal, phase: PhaseHostPool},
	{kind: "host_register_failed", has: "hipHostRegister", level: fatal, phase: PhaseHostPool},
	{kind: "host_register_failed", has: "Pinned host memory allocation of ", level: fatal, phase: PhaseHostPool},
	{kind: "host_alloc_failed", has: "DefaultCPUAllocator: ", level: fatal, re: `DefaultCPUAllocator: (?:not enough memory|can't allocate memory)(?:.*?tried to allocate (?P<tried_bytes>\d+) bytes)?`},
	{kind: "host_alloc_failed", has: "std::bad_alloc", level: fatal},
	{kind: "host_alloc_failed", has: "[Errno 12] Cannot allocate memory", level: fatal},
	{kind: "host_alloc_failed", has: "MemoryError", level: fatal, re: `^(?:numpy\.\S+?)?_?(?:Array)?MemoryError\b`},
	{kind: "kernel_oom", has: "Exceeded job memory limit", level: fatal, re: `(?P<Where>job memory limit)`},
	{kind: "kernel_oom", has: "OOMKilled", level: fatal, re: `(?:(?i:reason|state|status)\S*[ :=]+"?|"|^\s*|pod .*|container .*)(?P<Where>OOMKilled)(?:"?: ?true)?`},
	{kind: "kernel_oom", has: "task ", level: fatal, re: `^srun: error: .*task \d+: (?P<Where>Out Of Memory)`},
}
