package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func newSuggestCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "suggest",
		Short: "The search alone, as a line protocol: which configuration to try next",
		Long: "suggest reads one request a line on standard input and answers each with one line on standard output, both\n" +
			"JSON objects; lines that do not begin with { are ignored. It launches nothing: whoever calls it runs the\n" +
			"configurations and says what they showed. tune searches with the same code.\n\n" +
			`  {"op":"init","space":[...],"facts":{...},"budget":30,"seed":7}   begins anew: {"ok":true}` + "\n" +
			`  {"op":"suggest"}                the next trial: {"config":{...},"measure_frac":0.5,"why":{...}}, or {"stop":true}` + "\n" +
			`  {"op":"observe","obs":{...}}    what a trial showed: {"ok":true}` + "\n" +
			`  {"op":"recommend"}              what to export now: {"config":{...}}, or {"config":null}` + "\n" +
			`  {"op":"exit"}                   ends, as the end of the input does: {"ok":true}` + "\n\n" +
			`A wrong request is answered by {"error":"..."} and changes nothing, a wrong init leaves no search. Knobs may have` + "\n" +
			"any names in any order; those of SGLang's flags, with dashes or underscores, are understood as such. hicache_size\n" +
			"x tp stays within facts.host_budget_gb, and kv_cache_dtype at 16 bits without facts.fp8_opt_in.\n" +
			"docs/suggest.md describes every key.",
		Example: `  printf '%s\n' '{"op":"init","space":[{"name":"mem_fraction_static","type":"float","low":0.8,"high":0.93,"step":0.005}],"facts":{"tp":8,"gpu_gb":95.6}}' '{"op":"suggest"}' | sgtune suggest` + "\n" +
			"  python3 runner.py --cmd 'sgtune suggest' --name sgtune --out sgtune.jsonl",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			defer context.AfterFunc(ctx, stop)() // a second Ctrl-C ends the program at once
			in := cmd.InOrStdin()
			if f, ok := in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
				_, _ = fmt.Fprintln(cmd.ErrOrStderr(), `sgtune suggest: reads one JSON object a line, the first is {"op":"init","space":[...]}; Ctrl-D ends; --help shows an example`)
			}
			defer easeGC()()
			return serveSuggest(ctx, in, cmd.OutOrStdout())
		},
	}
}

// easeGC lets the heap grow to several times what is in use before it is collected: a search holds
// little and makes much garbage. A GOGC of the user's stays. The function it returns undoes it.
func easeGC() func() {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	before := debug.SetGCPercent(800)
	return func() { debug.SetGCPercent(before) }
}

// serveSuggest answers the lines of in until its end, an exit request, or the end of ctx.
func serveSuggest(ctx context.Context, in io.Reader, out io.Writer) error {
	lines := newSuggestLines(in)
	defer lines.close()
	var session suggestSession
	for {
		line, err := lines.next(ctx)
		switch {
		case ctx.Err() != nil:
			return &exitError{code: exitInterrupted}
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !errors.Is(err, errLineTooLong):
			return fmt.Errorf("read standard input: %w", err)
		case len(line) == 0 || line[0] != '{':
			continue
		}
		reply, end := suggestError(err), false
		if err == nil {
			reply, end = session.answer(line)
		}
		if _, err := out.Write(reply); err != nil {
			return fmt.Errorf("write a reply: %w", err)
		}
		if end {
			return nil
		}
	}
}
