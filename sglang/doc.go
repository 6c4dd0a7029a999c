// Package sglang is everything sgtune knows about SGLang itself: its flags, how a configuration
// becomes a command line, the arithmetic of its memory pools, the meaning of its log lines and the
// one rule that says when a server is ready.
//
// It is pure: text and numbers in, values out. It starts no process, opens no connection and reads
// no clock, and it imports nothing else of sgtune. It does not judge a trial (package trial does)
// and it does not choose configurations (package tuner does).
//
// Reading order:
//
//	config.go argv.go      a configuration, and the command line it becomes
//	knob.go knobs.go       the flags worth knowing, their bounds, which are lossy or dead
//	instrument.go          the flags sgtune adds to every launch
//	version.go help.go     versions, and the flags an installed server really has
//	facts.go               Event, LogFacts, Observation: what a log says
//	log.go fold.go         Reader: bytes in any chunks to events and facts
//	pattern.go patterns.go the table of log lines; a new line is one new row
//	prefix.go traceback.go the frame of a line; the context of a Python traceback
//	serverargs.go          the resolved arguments a server prints first
//	mask.go maskwriter.go  secrets never reach a disk
//	memory.go calibrate.go KV tokens, host pools, and predictions from one observed launch
//	ready.go               the readiness rule
//	serverinfo.go          are two running servers configured equally?
//
// One line's way through the reader:
//
//	Feed(bytes) -> lines (\n) -> segments (\r) -> frame (ANSI, container, [time TPn])
//	            -> echoed request? drop -> table -> Event (numbers, words, masked text) -> LogFacts
package sglang
