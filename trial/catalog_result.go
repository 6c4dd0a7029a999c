package trial

// goodEntries: the server served.
var goodEntries = []Entry{
	{
		Outcome: OK, Cause: causeNone, Blames: BlameYes,
		Meaning: outcomeMeanings[OK],
		Example: Example{Version: "0.5.23", Log: exampleServing, Context: `{"alive": true, "elapsed_s": 5000, "ready_timeout_s": 1500, "log_silent_s": 1, "kernel_oom_kills": 0}`},
	},
	{
		Outcome: Degraded, Cause: "retraction_storm", Blames: BlameYes,
		Meaning: "The KV pool overflows again and again: requests are taken in too eagerly, thrown out half done and computed again.",
		Remedy:  "Admit fewer requests at once, or give the pool more tokens. Every rank prints the line: count one rank.",
		Example: Example{Version: "0.5.5", Log: exampleServing + exampleStorm, Context: `{"alive": true, "elapsed_s": 5000, "ready_timeout_s": 1500, "log_silent_s": 1}`},
	},
	{
		Outcome: Degraded, Cause: "throughput_collapse", Blames: BlameYes,
		Meaning: "It runs at a fraction of the speed that it had, or that the same load reaches without this setting.",
		Remedy: "Usually the hierarchical cache copies tokens that nobody asks for again, or in pages of one token: " +
			"compare without it, use larger pages, and measure with a workload that reuses prefixes.",
		Example: Example{Version: "0.5.10", Log: exampleReady + exampleCollapse, Context: `{"alive": true, "elapsed_s": 5000, "ready_timeout_s": 1500, "log_silent_s": 1, ` +
			`"flags": {"--enable-hierarchical-cache": true, "--hicache-size": 48}, "control": {"flags": {}, "output_tok_s": 1950}, "workload": {"output_tok_s": 310}}`},
	},
	{
		Outcome: Degraded, Cause: "throttled", Blames: BlameNo,
		Meaning: "A GPU lowered its clock for heat or power while it was measured.",
		Remedy:  "The number says how the machine was, not the flags. Measure again when it is cool, or with a fixed power limit.",
		Example: Example{Live: "sgtune tune asks the driver while a trial runs"},
	},
}

// exampleStorm is a dozen overflows.
const exampleStorm = `[2026-01-10 23:42:01 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 3, #new_token_ratio: 0.3910 -> 0.6270
[2026-01-10 23:42:04 TP0] Decode batch, #running-req: 54, #token: 230904, token usage: 1.00, cuda graph: True, gen throughput (token/s): 805.20, #queue-req: 15
[2026-01-10 23:42:11 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 4, #new_token_ratio: 0.3650 -> 0.6120
[2026-01-10 23:42:14 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 3, #new_token_ratio: 0.4110 -> 0.6630
[2026-01-10 23:42:19 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 3, #new_token_ratio: 0.3990 -> 0.6400
[2026-01-10 23:42:24 TP0] Decode batch, #running-req: 52, #token: 230711, token usage: 1.00, cuda graph: True, gen throughput (token/s): 790.11, #queue-req: 19
[2026-01-10 23:42:28 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 2, #new_token_ratio: 0.3810 -> 0.6050
[2026-01-10 23:42:33 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 4, #new_token_ratio: 0.3770 -> 0.6230
[2026-01-10 23:42:39 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 3, #new_token_ratio: 0.3930 -> 0.6310
[2026-01-10 23:42:44 TP0] Decode batch, #running-req: 53, #token: 230802, token usage: 1.00, cuda graph: True, gen throughput (token/s): 788.46, #queue-req: 21
[2026-01-10 23:42:47 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 3, #new_token_ratio: 0.3850 -> 0.6180
[2026-01-10 23:42:52 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 2, #new_token_ratio: 0.3720 -> 0.5960
[2026-01-10 23:42:58 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 3, #new_token_ratio: 0.3900 -> 0.6250
[2026-01-10 23:43:03 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 3, #new_token_ratio: 0.3880 -> 0.6200
`

// exampleCollapse is a server whose speed fell for good.
const exampleCollapse = `[2026-01-10 23:41:02 TP0] Decode batch, #running-req: 57, #token: 219004, token usage: 0.95, cuda graph: True, gen throughput (token/s): 1995.20, #queue-req: 12
[2026-01-10 23:41:22 TP0] Decode batch, #running-req: 56, #token: 220114, token usage: 0.95, cuda graph: True, gen throughput (token/s): 1960.77, #queue-req: 13
[2026-01-10 23:41:50 TP0] Decode batch, #running-req: 57, #token: 221310, token usage: 0.96, cuda graph: True, gen throughput (token/s): 310.31, #queue-req: 40
[2026-01-10 23:42:20 TP0] Decode batch, #running-req: 55, #token: 220877, token usage: 0.95, cuda graph: True, gen throughput (token/s): 305.92, #queue-req: 66
`

// testEntries: the server was fine; the way to it, the load, the answers or the clean-up were not.
var testEntries = []Entry{
	{
		Outcome: Unreachable, Cause: "bound_to_loopback", Blames: BlameNo,
		Meaning: "The server is ready and listens on 127.0.0.1 only; who asks from another machine or container is refused.",
		Remedy:  "Keep the server's settings: only its address or the way to it is wrong.",
		Example: Example{Version: "0.5.23", Log: exampleServing, Context: `{"alive": true, "elapsed_s": 900, "ready_timeout_s": 1500, "log_silent_s": 1, ` +
			`"probes": [{"path": "/health", "status": "refused", "count": 30, "from": "another machine"}]}`},
	},
	{
		Outcome: Unreachable, Cause: "tunnel_down", Blames: BlameNo,
		Meaning: "The server is ready, also for who asks on its own machine; the tunnel or port mapping to it is down.",
		Remedy:  "Keep the server running and repair the way to it.",
		Example: Example{Version: "0.5.23", Log: exampleServing, Context: `{"alive": true, "elapsed_s": 900, "ready_timeout_s": 1500, "log_silent_s": 1, "executor": "ssh", ` +
			`"probes": [{"path": "/health", "status": 200, "count": 3, "from": "the server's own host"}, {"path": "/health", "status": "refused", "count": 30, "from": "ssh tunnel"}]}`},
	},
	{
		Outcome: BenchInvalid, Cause: "failed_requests", Blames: BlameNo,
		Meaning: "Too many requests failed for the result to stand for the load.",
		Remedy:  "Look at what the requests were answered (too long for the context, refused, cut off) and repair the workload.",
		Example: Example{Version: "0.5.23", Log: exampleServing, Context: `{"alive": true, "elapsed_s": 5000, "ready_timeout_s": 1500, "log_silent_s": 1, ` +
			`"workload": {"requests": 400, "completed": 130, "failed": 270}}`},
	},
	{
		Outcome: BenchInvalid, Cause: "wrong_token_count", Blames: BlameNo,
		Meaning: "Answers have fewer tokens than were asked for, so tokens per second compare different work.",
		Remedy:  "Ask with ignore_eos, or record what was really generated.",
		Example: Example{Version: "0.5.23", Log: exampleServing, Context: `{"alive": true, "elapsed_s": 5000, "ready_timeout_s": 1500, "log_silent_s": 1, ` +
			`"workload": {"requests": 400, "completed": 400, "output_tokens_expected": 1200000, "output_tokens": 300000}}`},
	},
	{
		Outcome: BenchInvalid, Cause: "client_hung", Blames: BlameNo,
		Meaning: "The load generator stood still while the server was idle.",
		Remedy:  "Keep the server and run the load again; the client lost its answers.",
		Example: Example{Version: "0.5.23", Log: exampleServing, Context: `{"alive": true, "elapsed_s": 5000, "ready_timeout_s": 1500, "log_silent_s": 900, ` +
			`"probes": [{"path": "/health", "status": 200, "count": 9}], "workload": {"requests": 400, "completed": 211, "client": "hung"}}`},
	},
	{
		Outcome: BenchInvalid, Cause: "client_limited", Blames: BlameNo,
		Meaning: "The load generator was too slow: its own CPU was full or its requests left late.",
		Remedy:  "Run it on a machine with free cores, or nearer to the server.",
		Example: Example{Live: "sgtune tune and replay measure their own delay"},
	},
	{
		Outcome: QualityRejected, Cause: "fp8_kv_unscaled", Blames: BlameYes,
		Meaning: "The KV cache is fp8 with scale 1.0, because the checkpoint carries no scales, and answers got worse.",
		Remedy:  "However fast it is, it must not win. Go back to bf16, or bring calibrated scales and pass the gate.",
		Example: Example{Version: "0.5.5", Log: `[2026-01-10 22:20:01] server_args=ServerArgs(model_path='/models/example', tp_size=8, mem_fraction_static=0.85, kv_cache_dtype='fp8_e4m3')
[2026-01-10 22:26:02 TP0] Using KV cache dtype: torch.float8_e4m3fn
[2026-01-10 22:26:02 TP0] Using FP8 KV cache but no scaling factors provided. Defaulting to scaling factors of 1.0. This may lead to less accurate results!
` + exampleReady, Context: `{"alive": true, "elapsed_s": 700, "ready_timeout_s": 900, "log_silent_s": 1, "flags": {"--kv-cache-dtype": "fp8_e4m3"}, ` +
			`"quality": {"suite": "gate", "baseline": 0.906, "measured": 0.74, "max_drop": 0.01}}`},
	},
	{
		Outcome: QualityRejected, Cause: "lossy_kv", Blames: BlameYes,
		Meaning: "The KV cache is kept in fewer bits, and answers got worse.",
		Remedy:  "However fast it is, it must not win. Go back to bf16.",
		Example: Example{Live: "the quality gate of sgtune tune"},
	},
	{
		Outcome: QualityRejected, Cause: "lossy_weights", Blames: BlameYes,
		Meaning: "The weights are kept in fewer bits than in the baseline, and answers got worse.",
		Remedy:  "However fast it is, it must not win. Leave --quantization as it was.",
		Example: Example{Live: "the quality gate of sgtune tune"},
	},
	{
		Outcome: QualityRejected, Cause: "lossy_sampling", Blames: BlameYes,
		Meaning: "A setting changes which token is chosen (speculative acceptance, sampling backend), and answers got worse.",
		Remedy:  "However fast it is, it must not win. Use the exact setting.",
		Example: Example{Live: "the quality gate of sgtune tune"},
	},
	{
		Outcome: QualityUnmeasured, Cause: causeNone, Blames: BlameYes,
		Meaning: outcomeMeanings[QualityUnmeasured],
		Remedy:  "Give the study a quality gate; until then this configuration cannot win.",
		Example: Example{Live: "the quality gate of sgtune tune"},
	},
	{
		Outcome: DirtyHost, Cause: "memory_held", Blames: BlameNo,
		Meaning: "The server's processes are gone, and GPU memory did not come back.",
		Remedy:  "sgtune reclaim shows who holds it and frees what is ours. If nobody does, the driver holds it: reset the GPU.",
		Example: Example{Live: "sgtune tune verifies the host after every trial"},
	},
	{
		Outcome: DirtyHost, Cause: "process_left", Blames: BlameNo,
		Meaning: "A process of the trial could not be ended; it may sit in the kernel, returning host memory.",
		Remedy:  "Wait some minutes, then sgtune reclaim. What stays in state D until then needs a reboot.",
		Example: Example{Live: "sgtune tune verifies the host after every trial"},
	},
	{
		Outcome: DirtyHost, Cause: "port_held", Blames: BlameNo,
		Meaning: "The trial's port is still held after its processes were ended.",
		Remedy:  "sgtune reclaim names the holder.",
		Example: Example{Live: "sgtune tune verifies the host after every trial"},
	},
}
