// Package benchmark replays a workload at a running server and says how fast it was, how sure that
// is, and whether the figure can be trusted at all.
//
// It knows nothing of trials, launches or SGLang's flags: it gets a URL, a file and a load, and
// returns a Report. It starts no servers, keeps no state between two levels, writes no files of
// its own, and needs no cgo: it is also what sgtune-agent is made of.
//
// Reading order:
//
//	target.go      which server, over TCP, TLS or a unix socket (address.go); clock.go: whose time
//	detect.go      what answers there, asked without a single generation; calls.go: flush, abort, health, one token
//	workload*.go   a file becomes Rows: format*.go are the formats, rowstore.go and row*.go keep big files on disk,
//	               blocks.go prefix sharing, summary.go what is shown, generate*.go sets that come from no file
//	palette.go     the tokens prompts are built from, asked of the server itself
//	prompt*.go     Feed: rows become prompts of exact length with the file's shared prefixes; session.go: later turns
//	conn.go        one HTTP/1.1 connection (connidle.go: between two answers); stream.go its events; events.go what the three endpoints say in them
//	client.go      one request: body.go, send, events, verdict (failure.go: the kinds of failure)
//	load.go        Run: one load level from start to drained; closed.go clients in a loop, open.go requests at their
//	               times (arrivals.go), options.go, level.go
//	window.go      tokens and requests in flight booked into windows of host time (meter.go: by each client);
//	               series.go: into seconds
//	steady.go      which windows count, and the interval of their mean
//	report.go      what is told: summarise.go, metrics.go percentiles, buckets.go by prompt length; record.go and gaps.go
//	               what is kept of each request; validity.go when not to believe it: cpu.go, pulse.go, procs.go
//	serverwatch.go the server's own view of the same time (promtext.go, serverview.go); energy.go
//	sample.go      raw samples as evidence
//	compare.go     two sets of launches: better, worse, or no difference found (ranktest.go)
//
// One level, in one picture:
//
//	Feed.Next ─▶ client 1..N ─▶ POST ─▶ events ─▶ windows ─▶ steady part ─▶ Report
//	                 ▲            ▲       │
//	   closed loop:  └── next row at once ┤
//	   open loop:     a schedule ─┘       └─▶ the answer ─▶ next turn of a conversation
//
// Every time in a Request, a Window or a Report is host time, the time of the server's machine as
// its Clock tells it. A simulated host's clock runs faster than ours.
package benchmark
