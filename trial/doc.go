// Package trial runs one configuration from a stored proposal to a stored, finished row: launch,
// wait, canary, warm up, measure, and then always reclaim. It also judges why a trial ended, and
// cleans up after a sgtune that died.
//
// It chooses no configurations (package tuner does), knows no SQL (package store does) and reads no
// log lines (package sglang does). A failed trial is a result; an error of Run stops the study.
//
// Only Runner and Recover change a trial's state:
//
//	waiting ──▶ running ──┬─▶ complete    ran to its end with a number
//	   │                  ├─▶ pruned      hopeless; the partial result is a bound
//	   │                  ├─▶ failed      the verdict says whose fault; also aborted and void ones
//	   └──────────────────┴─▶ cancelled   stopped by a person
//
// and the steps of a running trial are, the row being stored before each:
//
//	admit ─ launch ─ wait ─ canary ─ (quality) ─ warmup ─ measure ─╮   work: ends at the first cause
//	      ╰───────┴──────┴────────┴───────────────────────┴────────┴─▶ stop ─ reclaim ─ save   always
//
// A finished row means a host that was verified clean, or it says dirty_host.
//
// Reading order:
//
//	trial.go state.go     the row, its states and steps
//	runner.go             Runner and Run: the whole way in one page
//	attempt.go            what the steps of one trial hand to each other
//	launch.go ready.go    from a free port to a ready server (replay.go, canary.go, measure.go: to a measured one)
//	watch.go usage.go alive.go   what is looked at meanwhile: log, memory, signs of life
//	reclaim.go clean.go   stop, and the proof that nothing is left
//	judge.go              from everything seen to the finished row
//	verdict.go rules.go   Classify: facts in, verdict out (ended.go, fatal.go, flags.go: its rules; numbers.go, words.go)
//	catalog*.go           what each verdict means and what to do, with examples: docs/failures.md
//	recover.go            orphans of a sgtune that died
//	adopt.go              or their living server, taken over
package trial
