// Package simulator is the simulated machine: a model of one SGLang server on eight GPUs that
// runs in virtual time (Run), and a process that paces the same model by the wall clock and speaks
// SGLang's command line, log, HTTP and ways of dying (Main, `sgtune sim-server`). It is the newcomer's
// first run and the test double of the whole program; everything measured with it is labelled SIMULATED.
//
// It is not a source of knowledge for the tuner: nothing but cmd and tests imports it, and it imports
// only sglang, whose memory formula it shares. What the tuner is not told: spread between ranks, memory of
// runtime and graphs, activation peaks, fragmentation, noise.
//
// # Reading order
//
// The model: profile.go (the machine), settings.go (the flags it heeds), memory.go (where a launch's
// memory goes), request.go and radix.go (prompts as hash chains, the cache and its host tier), engine.go
// (one step after the other), schedule.go (admission), pacer.go (the one departure from SGLang), decode.go
// (tokens, retraction), workload.go and run.go (a closed loop in virtual time).
//
// The process: dialect.go (the versions it speaks), args.go with flags_VERSION.tsv, configfile.go, help.go (the
// command line), launch.go (checks), startup.go (a start as data), server.go, pace.go and ending.go (a life), http.go (paths), generate.go,
// generateevents.go, scan.go, tokens.go and stream.go (/generate), openai.go, openaiscan.go, chat.go, openaichunks.go and apierror.go
// (/v1), metrics.go, exposition.go and metriclist.go (/metrics), logwriter.go, tracebacks.go and serverargs.go (the log), child.go and
// claims.go (what other programs of the machine can see), faults.go.
//
// # What is known, what is assumed
//
// T, A, tokens, free memory after graphs, running requests and both throughput bands are the founding
// machine's. Flags come from the parsers of the wheels named in dialect.go, log lines, HTTP and deaths from their
// source and from logs; the model itself is one for all versions but for the automatic values. Assumed: the shape of the decode table, prefill cost (0.21 ms a token + 69 ms a step, so small
// chunks cost throughput), activations (0.5 GiB + 0.16 GiB per 1,024 tokens of one prefill step), at most 0.22 GiB
// of fragmentation growing over minutes of load, host link 7.3 GB/s a rank, run-to-run noise of about 1%.
//
// Simplifications: prefixes match in blocks of 64 tokens and whole prompts; between two prefill steps the
// running batch decodes once, so a decode waits for one chunk at most; admission is paced (pacer.go), so
// after a cold start under overload the running count needs about one request lifetime to settle at tokens /
// mean resident length; answers are one-digit token ids of exactly max_new_tokens, but for a chat without a limit; tokens of one stream
// that fall within 5 ms of real time share an event; one real child stands for all schedulers.
//
// # Environment
//
// FAKENVML_CLAIMS names the folder for memory claims, SGTUNE_SIM_RAM_AVAILABLE is host memory in bytes before
// launch (440e9), SGLANG_PYSPY_DUMP_BEFORE_CRASH=0 switches the five seconds of crash diagnostics off.
package simulator
