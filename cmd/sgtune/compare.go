package main

import (
	"context"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"sgtune/benchmark"
	"sgtune/tuner"
)

// compareOptions are the flags of sgtune compare.
type compareOptions struct {
	db, study, metric string
	level             float64
	json              bool
}

func newCompareCommand() *cobra.Command {
	var o compareOptions
	cmd := &cobra.Command{
		Use:   "compare BASE CANDIDATE",
		Short: "Tell whether one trial or set of replay reports is better than another",
		Long: "Compares two sides: better, worse, no difference found, or not confirmed. A side is\n" +
			"  - reports of sgtune replay --out: a file, several with commas between (a.json,b.json), or a folder of *.json;\n" +
			"    names that the shell expands stand around a double dash: base/*.json -- new/*.json\n" +
			"  - a trial of a study: STUDY:12, STUDY:baseline or STUDY:best, plainly 12 of the newest study. Its configuration\n" +
			"    counts with its confirmation launches, or with all its launches where it has none.\n\n" +
			"One report or launch is one value: requests and windows of the same run are not independent. An answer needs\n" +
			"three of each side, best taken in turns; the 95% t-interval of the difference of log(value) decides. With fewer\n" +
			"the answer is \"not confirmed\". A report that is not valid does not count.\n\n" +
			"Exit code 0 for an answer, 1 for none (not confirmed), 2 for a mistake in what was named.",
		Example: "  sgtune compare base.json new.json\n" +
			"  sgtune compare runs/base runs/new --metric ttft_p95\n" +
			"  sgtune compare base/*.json -- new/*.json\n" +
			"  sgtune compare quickstart:baseline quickstart:best --db examples/sgtune.db",
		Args: twoSides,
		RunE: func(cmd *cobra.Command, args []string) error {
			base, candidate := args[:1], args[1:]
			if dash := cmd.ArgsLenAtDash(); dash > 0 {
				base, candidate = args[:dash], args[dash:]
			}
			c, err := o.compare(cmd.Context(), base, candidate)
			if err != nil {
				return err
			}
			if o.json {
				err = printJSON(cmd.OutOrStdout(), c.result)
			} else {
				err = c.print(cmd.OutOrStdout())
			}
			if err == nil && c.result.Answer == benchmark.AnswerNotConfirmed {
				return &exitError{code: exitFailed} // the output says it
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.db, "db", defaultDB, "database file of the trials")
	f.StringVar(&o.study, "study", "", "study of trials that stand alone: 12, baseline, best (default: the newest)")
	f.StringVar(&o.metric, "metric", "", "what to compare: output_tok_s, requests_s, goodput, concurrency, or ttft_, tpot_, itl_, e2e_ with p50, p90, p95, p99, mean, max\n(default: the objective both studies have, else output_tok_s)")
	f.Float64Var(&o.level, "level", 0, "load level to compare at, clients or requests/s (default: a trial's best one; of reports the one with the best value)")
	f.BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

// twoSides takes two words, or any number on both sides of "--".
func twoSides(cmd *cobra.Command, args []string) error {
	dash := cmd.ArgsLenAtDash()
	switch {
	case dash > 0 && dash < len(args), dash <= 0 && len(args) == 2:
		return nil
	case dash < 0 && len(args) > 2:
		return fmt.Errorf("%d names for two sides; put -- between them: sgtune compare base/*.json -- new/*.json", len(args))
	}
	return fmt.Errorf("two sides are needed, a base and a candidate")
}

// comparison is both sides and what came of them.
type comparison struct {
	sides   [2]*side // base, candidate
	studies [2]*tuner.Record
	metric  metric
	level   float64 // asked for, 0 = each launch's own
	result  compareResult
}

// compare reads both sides and compares them.
func (o *compareOptions) compare(ctx context.Context, base, candidate []string) (*comparison, error) {
	if o.level < 0 || math.IsNaN(o.level) || math.IsInf(o.level, 0) {
		return nil, usagef("--level %g is no load; write a number of clients or of requests/s", o.level)
	}
	if o.metric != "" { // before anything is read
		if _, err := findMetric(o.metric); err != nil {
			return nil, err
		}
	}
	c, err := o.operands(ctx, base, candidate)
	if err != nil {
		return nil, err
	}
	if c.metric, err = findMetric(c.metricName(o.metric)); err != nil {
		return nil, err
	}
	c.level = o.level
	for _, s := range c.sides {
		if err := s.pick(c.metric, o.level); err != nil {
			return nil, err
		}
	}
	c.conclude()
	return c, nil
}

// metricName is what is compared: what was asked for, or else the objective that both studies have.
func (c *comparison) metricName(asked string) string {
	a, b := c.studies[0], c.studies[1]
	switch {
	case asked != "":
		return asked
	case a != nil && b != nil && a.Objective == b.Objective && a.Objective != "":
		return a.Objective
	}
	return defaultMetric
}
