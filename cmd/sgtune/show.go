package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sgtune/sglang"
	"sgtune/store"
	"sgtune/trial"
	"sgtune/tuner"
	"sgtune/web"
)

func newShowCommand() *cobra.Command {
	var path string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show [STUDY [TRIAL]]",
		Short: "Show a study, or one of its trials",
		Long:  "Shows a study with its verdict and trials, or one trial in full. Without a name it is the newest study.",
		Example: "  sgtune show quickstart --db examples/sgtune.db\n" +
			"  sgtune show quickstart 12 --db examples/sgtune.db\n" +
			"  sgtune show quickstart --db examples/sgtune.db --json",
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			db, err := openForReading(cmd.Context(), path)
			if err != nil {
				return err
			}
			defer func() { _ = db.Close() }() // nothing was written
			return show(cmd.Context(), cmd.OutOrStdout(), db, args, asJSON)
		},
	}
	cmd.Flags().StringVar(&path, "db", defaultDB, "database file")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func show(ctx context.Context, out io.Writer, db *store.DB, args []string, asJSON bool) error {
	name := ""
	if len(args) > 0 {
		name = args[0]
	} else if all, err := db.Studies(ctx); err != nil {
		return err
	} else if len(all) > 0 {
		name = all[0].Name
	}
	study, err := findStudy(ctx, db, name)
	if err != nil {
		return err
	}
	if len(args) == 2 {
		t, err := findTrial(ctx, db, name, args[1])
		if err != nil {
			return err
		}
		if asJSON {
			return printJSON(out, showTrial(t))
		}
		return printTrial(out, &study.Record, t)
	}
	trials, err := db.Trials(ctx, name)
	if err != nil {
		return err
	}
	if asJSON {
		return showJSON(ctx, out, db, study, trials)
	}
	events, _, err := db.Events(ctx, name, 0, eventsAtOnce)
	if err != nil {
		return err
	}
	return printStudy(out, study, trials, tuner.Look(&study.Record, trials, events))
}

// findTrial reads the trial that a person named by its number.
func findTrial(ctx context.Context, db *store.DB, study, number string) (*trial.Trial, error) {
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 {
		return nil, usagef("%q is no trial number; sgtune show %s lists them", number, study)
	}
	t, err := db.Trial(ctx, study, n)
	if errors.Is(err, tuner.ErrNoTrial) {
		return nil, usagef("study %s has no trial %d; sgtune show %s lists them", study, n, study)
	}
	return t, err
}

func printStudy(out io.Writer, r *tuner.Summary, trials []*trial.Trial, known tuner.Learnt) error {
	w := newTable(out)
	simulated := ""
	if r.Simulated {
		simulated = "  SIMULATED"
	}
	now := time.Now()
	lines := []string{fmt.Sprintf("%s  %s  %s%s", r.Name, r.Host, stateNow(r, now), simulated)}
	for _, a := range web.AnswersNow(r, now) {
		lines = append(append(lines, a.Act+"  "+a.Text), a.Lines...)
	}
	if r.Verdict != nil && r.Verdict.Why != "" {
		lines = append(lines, "Why: "+r.Verdict.Why)
	}
	if r.Releases != "" {
		lines = append(lines, "Machine: "+r.Releases)
	}
	if r.AfterDone != "" {
		lines = append(lines, "After: "+r.AfterDone)
	}
	_, _ = fmt.Fprintln(w, strings.Join(lines, "\n")+"\n") // Flush reports what went wrong
	if r.Verdict != nil && r.Verdict.Answer == "better" {
		printChanges(w, r.BaselineConfig, r.Verdict.Config)
	}
	row(w, "TRIAL", "ROLE", "OUTCOME", "VALUE", "RUNNING", "KV TOKENS", "GPU FREE", "CONFIGURATION")
	for _, t := range trials {
		row(w, strconv.Itoa(t.Number), string(t.Role), outcome(t), web.Amount(t, r.Objective), positive(t.MaxRunning, ""),
			positive(float64(t.Memory.Tokens), ""), positive(t.Memory.AfterGraphGiB, " GiB"), web.ConfigText(t.Config))
	}
	printImportances(w, known.Importances)
	printLimit(w, known.Limit)
	return w.Flush()
}

// printChanges lists the flags to change.
func printChanges(w io.Writer, today, better sglang.Config) {
	row(w, "FLAG", "RUNS TODAY", "CHANGE TO")
	for _, name := range sglang.Merge(today, better).Names() {
		from, to := setting(today, name), setting(better, name)
		if from != to {
			row(w, name, from, to)
		}
	}
	row(w, "")
}

func setting(c sglang.Config, name string) string {
	if _, set := c[name]; !set {
		return "not set"
	}
	return c.Text(name)
}

// outcome is a trial's end, or where it is.
func outcome(t *trial.Trial) string {
	text := string(t.State) + " " + string(t.Step)
	if t.State.Finished() {
		text = string(t.Verdict.Outcome)
		if text == "" || t.State != trial.Complete && t.State != trial.Failed {
			text = string(t.State)
		}
	}
	if t.State == trial.Complete && t.Value == nil && len(t.Levels) > 0 {
		text += ", SLO missed"
	}
	if t.Void != "" {
		text += ", void: " + t.Void
	}
	return text
}

// positive is a figure, "" where it is not known.
func positive(v float64, unit string) string {
	if v <= 0 {
		return ""
	}
	return web.Number(v) + unit
}

func printTrial(out io.Writer, r *tuner.Record, t *trial.Trial) error {
	w := newTable(out)
	line := func(name, value string) {
		if value != "" {
			row(w, name, value)
		}
	}
	title := fmt.Sprintf("Trial %d of %s (%s)", t.Number, t.Study, t.Role)
	if r.Simulated {
		title += "  SIMULATED"
	}
	_, _ = fmt.Fprintln(w, title) // Flush reports what went wrong
	line("outcome", outcome(t))
	line("value", web.Amount(t, r.Objective))
	line("what happened", t.Verdict.Text)
	if v := t.Verdict; v.Cause != "" {
		text := fmt.Sprintf("%s / %s / %s", v.Outcome, v.Phase, v.Cause)
		if t.State == trial.Failed {
			text += fmt.Sprintf(", the configuration is to blame: %s", v.Blames)
		}
		line("verdict", text)
	}
	line("evidence", t.Verdict.Evidence)
	for _, finding := range t.Verdict.Findings {
		line("finding", finding.Text)
	}
	line("configuration", web.ConfigText(t.Config))
	line("command", strings.Join(t.Argv, " "))
	line("why", t.Why)
	printReason(line, t, r.Objective)
	line("KV tokens", positive(float64(t.Memory.Tokens), ""))
	line("GPU memory free after graphs", positive(t.Memory.AfterGraphGiB, " GiB"))
	line("host pool a rank", positive(t.Memory.HostPoolGB, " GB"))
	line("most requests running", positive(t.MaxRunning, ""))
	if t.Startup > 0 {
		line("start-up", tuner.FormatDuration(t.Startup))
	}
	line("started", day(t.StartedAt))
	line("ended", day(t.EndedAt))
	line("host afterwards", string(t.Release))
	if len(t.Levels) > 0 {
		printLevels(w, t.Levels)
	}
	return w.Flush()
}

func printLevels(w io.Writer, levels []trial.Level) {
	row(w, "")
	row(w, "CLIENTS", "OUTPUT TOK/S", "95% INTERVAL", "TTFT P95", "TPOT P95", "OK / SENT", "CACHE HITS", "REMARKS")
	for _, l := range levels {
		r := l.Report
		if r == nil {
			row(w, strconv.Itoa(l.Concurrency), "nothing measured")
			continue
		}
		var ttft, tpot string
		if r.TTFTms != nil {
			ttft = web.Number(r.TTFTms.P95) + " ms"
		}
		if r.TPOTms != nil {
			tpot = web.Number(r.TPOTms.P95) + " ms"
		}
		remarks := r.Flags
		if !r.Valid {
			remarks = append([]string{"not valid: " + r.Invalid}, remarks...)
		}
		row(w, strconv.Itoa(l.Concurrency), web.Number(r.OutputTokS), web.Number(r.OutputLow)+" to "+web.Number(r.OutputHigh), ttft, tpot,
			fmt.Sprintf("%d / %d", r.Requests.OK, r.Requests.Sent), web.Number(100*r.CacheHitRatio)+"%", strings.Join(remarks, "; "))
	}
}
