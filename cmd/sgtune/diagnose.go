package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"sgtune/trial"
	"sgtune/tuner"
)

// diagnoseOptions are the flags of sgtune diagnose.
type diagnoseOptions struct {
	context string
	json    bool
	follow  bool
}

func newDiagnoseCommand() *cobra.Command {
	var o diagnoseOptions
	cmd := &cobra.Command{
		Use:   "diagnose [LOG...]",
		Short: "Say why a server died, or how it is, from its log",
		Long: "diagnose reads what an SGLang server printed (0.4.6 to 0.5.23, also through docker, journald or a\n" +
			"launcher) and says what happened, which line proves it, and what to change in which direction.\n\n" +
			"LOG is a file, also .gz or .zst; several are read in the given order as one log; - or nothing is\n" +
			"standard input. What a log cannot know (is the process alive, its exit code, did the kernel kill)\n" +
			"comes from --context, a JSON object; docs/failures.md lists every verdict.\n\n" +
			"Exit code 0: a verdict; 1: the inputs do not decide it; 2: wrong usage or file.",
		Example: "  sgtune diagnose server.log\n" +
			"  docker logs my-sglang 2>&1 | sgtune diagnose\n" +
			"  journalctl -u sglang -o cat --since today | sgtune diagnose --json | jq .advice\n" +
			"  sgtune diagnose server.log.1.gz server.log --context context.json\n" +
			"  sgtune diagnose -f server.log",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return diagnose(ctx, args, o, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&o.context, "context", "", "JSON file with what the log cannot know: alive, exit_code, kernel_oom_kills, probes, ...")
	cmd.Flags().BoolVar(&o.json, "json", false, "print the verdict as one JSON object")
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "follow a growing log: print each new state, and the verdict when there is one; Ctrl-C ends")
	return cmd
}

func diagnose(ctx context.Context, args []string, o diagnoseOptions, stdin io.Reader, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		args = []string{stdinName}
	}
	if f, ok := stdin.(*os.File); ok && args[0] == stdinName && term.IsTerminal(int(f.Fd())) {
		return usagef("no log: name a file, or pipe one in (docker logs NAME 2>&1 | sgtune diagnose)")
	}
	facts, err := readContext(o.context)
	if err != nil {
		return err
	}
	log, err := openLog(args, stdin)
	if err != nil {
		return err
	}
	defer log.close()
	page := newPage(stdout)
	page.log, page.context = args, facts
	if o.follow {
		return follow(ctx, log, facts, page, o.json, atEase)
	}
	d := newDiagnosis()
	switch err := d.read(ctx, log); {
	case err != nil && ctx.Err() == nil:
		return err
	case log.truncated != "":
		_, _ = fmt.Fprintf(stderr, "sgtune: %s ends in the middle of its compressed data; what is there was judged\n", log.truncated)
	}
	if d.facts().Bytes == 0 && o.context == "" {
		return tuner.Problems{{File: args[0], Text: "the log is empty; give the file that holds what the server printed, or --context when it printed nothing"}}
	}
	return page.verdict(d, d.verdict(facts), log, o.json)
}

// readContext reads the file of --context; without one nothing is known beside the log.
func readContext(path string) (trial.Context, error) {
	const most = 8 << 20
	if path == "" {
		return trial.Context{}, nil
	}
	f, err := openRegular(path, "the context")
	if err != nil {
		return trial.Context{}, err
	}
	defer f.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	wrong := func(line, col int, format string, args ...any) error {
		return tuner.Problems{{File: path, Line: line, Col: col, Text: fmt.Sprintf(format, args...)}}
	}
	switch {
	case err != nil:
		return trial.Context{}, wrong(0, 0, "the context cannot be read: %s", reason(err))
	case len(text) == 0:
		return trial.Context{}, wrong(0, 0, `the context is empty; write an object like {"alive": false, "exit_code": 1}`)
	case len(text) > most:
		return trial.Context{}, wrong(0, 0, "the context is larger than 8 MiB; is this the log? the log comes first: sgtune diagnose LOG --context FILE")
	}
	c, err := trial.ParseContext(text)
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return c, nil
	case errors.As(err, &syntax):
		line, col := position(text, syntax.Offset)
		return c, wrong(line, col, "no JSON: %s; write an object like {\"alive\": false, \"exit_code\": 1}", syntax.Error())
	}
	line, col := 0, 0
	if key := wrongKey.FindString(err.Error()); key != "" {
		if at := bytes.Index(text, []byte(key)); at >= 0 {
			line, col = position(text, int64(at)+1)
		}
	}
	return c, wrong(line, col, "%s; see docs/failures.md for the keys of a context", err)
}

// wrongKey is the key, in its quotes, that an error of ParseContext names.
var wrongKey = regexp.MustCompile(`"\w+"`)

// position is the line and column, from 1, of the byte that a JSON error stopped at.
func position(text []byte, offset int64) (line, col int) {
	line, col = 1, 1
	for _, c := range text[:min(max(offset-1, 0), int64(len(text)))] {
		if col++; c == '\n' {
			line, col = line+1, 1
		}
	}
	return line, col
}

// reason is an error without the path that the message names already.
func reason(err error) string {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}
