package sglang

// gpuPatterns are kernels that failed on a GPU.
var gpuPatterns = []pattern{
	{kind: "cuda_illegal", has: "CUDA error: ", level: fatal, re: `CUDA error: (?P<Msg>an illegal memory access was encountered|device-side assert triggered|unspecified launch failure|misaligned address|[^\n]*)`},
	{kind: "cuda_illegal", has: "CUDNN_STATUS_", level: fatal, re: `(?P<Msg>CUDNN_STATUS_\w+)`},
	{kind: "cuda_illegal", has: "CUBLAS_STATUS_", level: fatal, re: `(?P<Msg>CUBLAS_STATUS_\w+)`},
	{kind: "cuda_illegal", has: "CUDA driver error: ", level: fatal, re: `CUDA driver error: (?P<Msg>.*)`},
	{kind: "cuda_illegal", has: "HIP error: ", level: fatal, re: `HIP error: (?P<Msg>.*)`},
	{kind: "cuda_illegal", has: "Triton Error [CUDA]: ", level: fatal, re: `Triton Error \[CUDA\]: (?P<Msg>.*)`},
}

// exceptionPatterns are what is left: any other exception. Package trial tells them apart by their words.
var exceptionPatterns = []pattern{
	{kind: "scheduler_died_init", has: " scheduler died during initialization", level: fatal, re: `Rank (?P<child_rank>\d+) scheduler died during initialization \(exit code: (?P<child_exit_code>-?\d+)?`},
	{kind: "kv_alloc_failed", has: "alloc_req_slots runs out of memory", level: fatal},
	{kind: "pool_leak", has: "memory leak detected", level: fatal},
	{kind: "traceback_last", has: ": ", level: fatal, re: `^(?P<Type>(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Interrupt|Exit)): (?P<Msg>.*)$`},
	{kind: "traceback_last", has: "Error", level: fatal, re: `^(?P<Type>(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Interrupt|Exit))$`},
	{kind: "traceback_last", has: "Timeout", level: fatal, re: `^(?P<Type>(?:[A-Za-z_]\w*\.)+\w*Timeout): (?P<Msg>.*)$`},
	{kind: "traceback_last", has: "Exception: ", level: fatal, re: `^(?P<Type>Exception): (?P<Msg>.*)$`},
}
