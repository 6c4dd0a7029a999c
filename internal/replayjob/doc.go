// Package replayjob is how sgtune asks a program on the server's machine to replay a load and hears what came
// of it: a job goes in, events come out, one JSON object a line. cmd/sgtune-agent is that program and is hardly
// more than Serve; package internal/agent is the asking half.
//
//	caller                                agent
//	   │ ◀──────────── hello ─────────────  │   program, version, pid, protocol
//	   │ ──────────────  job ────────────▶  │   target, workload, load
//	   │ ◀────────── prepared ────────────  │   what was read, how exact its prompts are
//	   │ ◀─ window, samples, ask, beat ───  │   while the level runs
//	   │ ── beat, go, prune, stop ───────▶  │
//	   │ ◀────── result, or error ────────  │   then the agent ends
//
// The agent writes no file. It ends within a second when its input is closed, and also when it hears nothing for
// Job.Silence: its caller is gone, and nobody would stop the load. A slow link delays events and not the
// requests: they wait in the agent's memory.
//
// By hand, without a caller that answers (the sleep keeps the agent's input open):
//
//	(echo '{"job":{"protocol":2,"target":{"url":"http://127.0.0.1:30000"},"workload":{"path":"trace.jsonl"},
//	"load":{"concurrency":8,"requests":100}}}' | tr -d '\n'; echo; sleep 60) | sgtune-agent replay
//
// Reading order: job.go and load.go (what is asked), event.go (what is answered), serve.go (a job from its first
// line to its last), prepare.go (workload, palette and feeds), caller.go and outbox.go (the two directions).
package replayjob
