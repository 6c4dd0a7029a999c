// Package benchmark replays a workload at a running server and says how fast it was, how sure that
// is, and whether the figure can be trusted at all.
//
// It knows nothing of trials, launches or SGLang's flags: it gets a URL, a file and a load, and
// returns a Report. It starts no servers, keeps no state between two levels and writes no files of
// its own. Only a closed loop is spoken here: a fixed number of clients, each sending its next row at once.
//
// Reading order:
//
//	target.go      Clock and Target: whose time, which server
//	workload.go    a file becomes Rows (formats.go: the table of formats; blocks.go: block size, reuse)
//	palette.go     the tokens prompts are built from, asked of the server itself
//	prompt.go      Feed: rows become prompts of exact length with the file's shared prefixes
//	stream.go      the server-sent events of one answer, read without decoding each
//	client.go      one request: body, send, events, verdict (failure.go: the kinds of failure)
//	load.go        Run: one load level from start to drained (options.go, level.go, cpu.go)
//	window.go      tokens and requests in flight booked into windows of host time
//	steady.go      which windows count, and the interval of their mean
//	report.go      what is told; metrics.go percentiles; validity.go when not to believe it
//	sample.go      raw samples as evidence
//	compare.go     two sets of launches: better, worse, or no difference found (ranktest.go)
//	calls.go       the small calls a trial makes besides the load: flush, abort, health, one token
//
// One level, in one picture:
//
//	Feed.Next ─▶ client 1..N ─▶ POST /generate ─▶ events ─▶ windows ─▶ steady part ─▶ Report
//	                 ▲                              │
//	                 └────── next row at once ◀─────┘
//
// Every time in a Request, a Window or a Report is host time, the time of the server's machine as
// its Clock tells it. A simulated host's clock runs faster than ours.
package benchmark
