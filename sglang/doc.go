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
//	knob.go knobs*.go      the flags worth knowing, their bounds, which are dead; docs/knobs.md
//	lossy.go               settings that may change answers
//	instrument.go          the flags sgtune adds to every launch
//	version.go release.go  versions, and the options of sixteen releases (flags/README.md)
//	help.go installed.go   what an installed server says of itself: --help, version
//	resolve.go renames.go  a name as people write it to the option, and to another version's name
//	combination*.go        what SGLang does not take together
//	facts.go               Event, LogFacts, Observation: what a log says
//	log.go fold.go         Reader: bytes in any chunks to events and facts
//	batch.go foldbatch.go  batch lines, the short way: a busy server prints nothing else
//	pieces.go recognize.go messages glued into one line; one message to one event
//	pattern.go patterns.go the table of log lines; a new line is one new row
//	finder.go              many literals in one pass over a text
//	wrap.go clock.go jsonlog.go  prefixes of container runtimes, launchers and logging tools
//	prefix.go traceback.go SGLang's own frame of a line; the context of a Python traceback
//	echo.go                what a client sent is no event
//	serverargs.go          the resolved arguments a server prints first
//	mask.go maskwriter.go maskwords.go  secrets never reach a disk
//	modelconfig.go modellayers.go modelweights.go configjson.go   a model's config.json
//	layout.go cell.go pool.go  how a launch spreads it over ranks; bytes of a token; tokens of a budget
//	memory.go calibrate.go calibratemodel.go prior.go  the formula, and predictions from a log, a model, or both
//	hostpool.go autodefaults.go  host pools and SGLang's own check of them; its automatic values, as a check
//	ready.go               the readiness rule
//	serverinfo.go          are two running servers configured equally?
//
// One line's way through the reader:
//
//	Feed(bytes) -> lines (\n) -> whole batch line? -> LogFacts
//	            -> segments (\r) -> colours and wrappers off -> glued messages -> frame ([time TPn])
//	            -> echoed request? drop -> table -> Event (numbers, words, masked text) -> LogFacts
package sglang
