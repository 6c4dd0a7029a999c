package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"sgtune/benchmark"
	"sgtune/sglang"
)

func newReplayCommand() *cobra.Command {
	var o replayOptions
	cmd := &cobra.Command{
		Use:   "replay --url URL --workload FILE|SET",
		Short: "Replay a workload at a server and measure it: the load generator alone",
		Long: "replay sends the requests of a workload file, or of a generated set, to a server and measures what a user\n" +
			"would see: throughput with its interval, TTFT, ITL, TPOT, E2E, the cache hit ratio, and whether the load\n" +
			"generator itself was fast enough to be believed. First it shows how it understood the workload.\n\n" +
			"The load is a closed loop of --concurrency clients, an open loop at a --rate, or --as-recorded; latency of an\n" +
			"open loop counts from when a request was due. A level ends with --requests (all of them are measured), with\n" +
			"--duration, or with --target, when throughput is steady and known so well. Without any of them a file is\n" +
			"passed once, and a generated set runs until its throughput is known within 3%, at most 10 minutes.\n\n" +
			"Any server with SGLang's /generate or OpenAI's streaming endpoints will do. An api key comes from the\n" +
			"environment: SGTUNE_API_KEY, or OPENAI_API_KEY where the way is encrypted or on this machine. Ctrl-C ends\n" +
			"the level and reports what there is.",
		Example: "  sgtune replay --workload trace.jsonl --dry-run\n" +
			"  sgtune replay --url http://127.0.0.1:30000 --workload trace.jsonl --concurrency 32 --out report.json\n" +
			"  sgtune replay --url http://127.0.0.1:30000 --workload trace.jsonl --as-recorded --speed 2 --slo ttft=2s,tpot=50ms\n" +
			"  sgtune replay --url http://gpu-box:8000 --endpoint chat --workload random --random-input-len 2048 --rate 4 --duration 2m\n" +
			"  sgtune replay --url unix:///run/sglang.sock --workload generated-shared-prefix --concurrency 8,16,32 --flush --json",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := o.replay(cmd.Context(), cmd.Flags().Changed, cmd.OutOrStdout(), cmd.ErrOrStderr())
			return withoutSecrets(err, o.secrets)
		},
	}
	o.register(cmd.Flags())
	cmd.Flags().SortFlags = false
	return cmd
}

// withoutSecrets is an error whose text holds none of the values.
func withoutSecrets(err error, secrets []string) error {
	if err == nil || len(secrets) == 0 || maskText(err.Error(), secrets) == err.Error() {
		return err
	}
	return failf(exitCode(err), "%s", strings.TrimRight(maskText(err.Error(), secrets), "\n"))
}

// replay does everything that can be refused before it costs anything, then runs the load.
func (o *replayOptions) replay(ctx context.Context, given func(string) bool, stdout, stderr io.Writer) error {
	if err := o.check(given); err != nil {
		return err
	}
	r := &replayRun{options: o, stdout: stdout, stderr: stderr, mask: sglang.Mask}
	var err error
	if r.loads, err = o.loads(); err != nil {
		return err
	}
	if r.precision, err = parseTarget(o.target); err != nil {
		return err
	}
	if r.slo, err = parseSLO(o.slo); err != nil {
		return err
	}
	if !o.dryRun || o.url != "" {
		if r.server, err = newReplayTarget(o, os.Getenv); err != nil {
			return err
		}
		o.secrets = r.server.secrets
		r.mask = func(text string) string { return strings.TrimRight(maskText(text, o.secrets), "\n") }
	}
	if r.workload, err = o.readWorkload(given); err != nil {
		return err
	}
	if err := r.fit(); err != nil {
		return err
	}
	if o.dryRun {
		return r.dryRun()
	}
	return r.run(ctx)
}

// fit refuses loads that the workload cannot give, and decides how levels end.
func (r *replayRun) fit() error {
	o, w := r.options, r.workload
	if o.asRecorded {
		if benchmark.IsGenerated(o.workload) {
			return usagef("%s has no arrival times; choose --concurrency or --rate", o.workload)
		}
		said := w.Timed && o.timeUnit != "" // the user knows what the times are
		if err := w.CheckArrivals(); err != nil && !said && w.CheckArrivalsAt(o.speed) != nil {
			return fileMistake(o.workload, err)
		}
	}
	r.summary, r.kinds = o.summarize(w), kindsOf(w)
	if o.dryRun && o.concurrency == "" && o.rate == "" && o.timeUnit == "" && o.speed == 1 && w.Timed && hasty(r.summary) {
		return fileMistake(o.workload, w.CheckArrivals()) // a load of its own pace would not mind, but none was named
	}
	r.plan()
	return nil
}

// hasty reports whether arrivals are so fast that their unit must have been guessed wrongly: few rows of a file
// made by hand may be a millisecond apart.
func hasty(s benchmark.Summary) bool {
	const certain, likely, many = 10_000, 1_000, 100 // requests/s, the same, rows
	if s.Arrivals == nil || s.Arrivals.MeanRate == nil {
		return false
	}
	rate := s.Arrivals.MeanRate
	return *rate > certain || *rate > likely && s.Kept >= many
}

// dryRun prints what was understood of the workload.
func (r *replayRun) dryRun() error {
	if !r.options.json {
		_, err := io.WriteString(r.stdout, strings.TrimRight(r.mask(r.workloadText()), "\n")+"\n")
		return err
	}
	text, err := reportJSON(r.summary)
	if err != nil {
		return err
	}
	_, err = r.stdout.Write(text)
	return err
}

// errInterrupted ends a load that a person stopped.
var errInterrupted = errors.New("interrupted")

// interruptible is a context that Ctrl-C, TERM and a closed terminal end, so that the report of what there is
// can still be written. A reader of our output that went away must not end a measurement either.
func interruptible(ctx context.Context) (context.Context, func()) {
	survived := make(chan os.Signal, 1) // never read
	signal.Notify(survived, syscall.SIGPIPE)
	ctx, cancel := context.WithCancelCause(ctx)
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup wants it to go on
		signal.Notify(c, syscall.SIGHUP)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range c {
			cancel(errInterrupted)
		}
	}()
	return ctx, func() {
		signal.Stop(c)
		signal.Stop(survived)
		close(c)
		<-done
		cancel(nil)
	}
}

// run sends the load, level by level, and reports it.
func (r *replayRun) run(ctx context.Context) (err error) {
	ctx, stop := interruptible(ctx)
	defer stop()
	o := r.options
	if o.out != "" {
		file, err := newReportFile(o.out)
		if err != nil {
			return err
		}
		defer file.Drop()
		r.file = file
	}
	if o.csv != "" {
		if r.csv, err = newCSVFile(o.csv, r.mask); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, r.csv.Close()) }()
	}
	human := r.stdout
	if o.json {
		human = r.stderr
	}
	r.screen = newReplayScreen(human, r.mask)
	r.screen.Say(r.workloadText())
	if err := r.connect(ctx); err != nil {
		return r.stopped(ctx, err)
	}
	defer benchmark.FewProcessors(ctx)()
	runErr := r.levels(ctx)
	if err := r.write(); err != nil {
		return errors.Join(runErr, err)
	}
	return r.verdict(ctx, runErr)
}

// stopped is an error as the program ends with it: a person who stopped it knows why.
func (r *replayRun) stopped(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errInterrupted) {
		return failf(exitInterrupted, "stopped before the load began; nothing was measured")
	}
	return err
}

// write puts the report where it was asked for.
func (r *replayRun) write() error {
	if len(r.reports) == 0 {
		return nil
	}
	text, err := r.json()
	if err != nil {
		return err
	}
	if r.file != nil {
		if err := r.file.Write(text); err != nil {
			return err
		}
	}
	if r.options.json {
		if _, err := r.stdout.Write(text); err != nil {
			return fmt.Errorf("print the report: %w", err)
		}
	}
	return nil
}

// json is the report: of one level its own, of several a list of theirs.
func (r *replayRun) json() ([]byte, error) {
	var v any = r.reports[0]
	if len(r.loads) > 1 {
		v = struct {
			Schema int                 `json:"schema"`
			Levels []*benchmark.Report `json:"levels"`
		}{benchmark.ReportSchema, r.reports}
	}
	return reportJSON(v)
}

// verdict is how the program ends once the report is written.
func (r *replayRun) verdict(ctx context.Context, runErr error) error {
	ok := 0
	for _, report := range r.reports {
		ok += report.Requests.OK
		if !report.Valid {
			_, _ = fmt.Fprintf(r.stderr, "sgtune replay: NOT VALID (%s): %s\n", report.Invalid, printable(r.mask(report.Advice)))
		}
	}
	switch {
	case errors.Is(context.Cause(ctx), errInterrupted):
		return failf(exitInterrupted, "interrupted; the report covers what was measured until then")
	case runErr != nil:
		return runErr
	case ok == 0:
		return failf(exitFailed, "not one request was answered%s", r.firstError())
	}
	return nil
}

// firstError is the first failure's text, for a person who got nothing else.
func (r *replayRun) firstError() string {
	for _, report := range r.reports {
		for _, text := range report.Errors {
			return ": " + printable(r.mask(text))
		}
	}
	return ""
}
