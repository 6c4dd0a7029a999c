package sglang

// httpPatterns are lines about the socket, readiness and health.
var httpPatterns = []pattern{
	// HTTP, readiness, health.
	{kind: "engine_startup", starts: "Engine startup timings", re: `load_weight=(?P<load_weight_s>[\d.]+), kv_cache_allocation=(?P<kv_s>[\d.]+), scheduler_e2e=(?P<scheduler_s>[\d.]+)`},
	{kind: "port_in_use", starts: "ERROR:", level: fatal, phase: PhaseHTTPStart, re: `\[Errno (?:98|48)\].*?(?:'[^']*', (?P<port>\d+)[^)]*\): )?[Aa]ddress already in use`},
	{kind: "uvicorn_running", starts: "INFO:", also: "Uvicorn running", phase: PhaseHTTPStart, re: `^INFO:\s+Uvicorn running on (?P<Url>https?://\S*?:(?P<port>\d+))\b`},
	{kind: "http_starting", starts: "INFO:", also: "Started server", phase: PhaseHTTPStart, re: `^INFO:\s+Started server process \[(?P<pid>\d+)\]`},
	{kind: "health_access", starts: "INFO:", also: "\"GET /", re: `"GET (?P<Path>/health(?:_generate)?|/ready) HTTP/[\d.]+" (?P<status>\d{3})`},
	{kind: "uvicorn_shutdown", starts: "INFO:", re: `^INFO:\s+(?:Shutting down|Waiting for application shutdown\.)`, level: note, phase: PhaseShutdown},
	{kind: "access_error", starts: "INFO:", also: `" 4`, re: `"(?:POST|PUT) (?P<Path>/\S*) HTTP/[\d.]+" (?P<status>4\d\d)`},
	{kind: "access_error", starts: "INFO:", also: `" 5`, re: `"(?:POST|PUT) (?P<Path>/\S*) HTTP/[\d.]+" (?P<status>5\d\d)`},
	{kind: "fired_up", starts: "The server is fired up and ready to roll!", phase: PhaseReady},
	{kind: "warmup_failed", starts: "Initialization failed. warmup error:", level: fatal, phase: PhaseWarmup, re: `warmup error: (?P<Msg>.*)`},
	{kind: "warmup_refused", starts: "AssertionError: res=<Response [", level: fatal, phase: PhaseWarmup, re: `<Response \[(?P<status>\d+)\]>`},
	{kind: "health_failed", starts: "Health check failed.", level: note, re: `for last (?P<health_timeout_s>\d+) seconds`},
}

// servingPatterns are the lines of a server at work.
var servingPatterns = []pattern{
	// Serving.
	{
		kind: "prefill_batch", starts: "Prefill batch",
		re: `^Prefill batch(?: \[\d+\])?[.,] #new-seq: (?P<new_seq>\d+), #new-token: (?P<new_token>\d+), #cached-token: (?P<cached_token>\d+), ` +
			`.*?(?:token usage: (?P<token_usage>[\d.]+), .*?)?#running-req: (?P<running>\d+), #queue-req: (?P<queue>\d+)` +
			`(?:.*?input throughput \(token/s\): (?P<input_tok_s>[\d.]+))?`,
	},
	{
		kind: "decode_batch", starts: "Decode batch",
		re: `^Decode batch(?: \[\d+\])?[.,] #running-req: (?P<running>\d+), (?:#(?:full )?token: (?P<tokens>\d+), )?(?:full )?token usage: (?P<token_usage>[\d.]+), ` +
			`.*?gen throughput \(token/s\): (?P<gen_tok_s>[\d.]+), #queue-req: (?P<queue>\d+)`,
	},
	{kind: "retract", starts: "KV cache pool is full. Retract requests.", re: `#retracted_reqs: (?P<retracted>\d+)`},
	{kind: "retract", starts: "Decode out of memory happened.", re: `#retracted_reqs: (?P<retracted>\d+)`},
	{kind: "retract_abort", starts: "Out of memory even after retracting all other requests", level: note},
	{kind: "retract_abort", starts: "retract_decode: aborted", level: note},
	{kind: "cache_flushed", starts: "Cache flushed successfully!"},
	{kind: "flush_refused", starts: "Cache not flushed because there are pending requests.", level: note, re: `#queue-req: (?P<queue>\d+), #running-req: (?P<running>\d+)`},
	{kind: "kv_alloc_failed", starts: "Prefill out of memory.", level: fatal, phase: PhasePrefill},
	{kind: "kv_alloc_failed", starts: "Decode out of memory.", level: fatal, phase: PhaseDecode},
}
