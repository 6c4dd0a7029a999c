package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"sgtune/benchmark"
	"sgtune/host"
	"sgtune/store"
	"sgtune/trial"
	"sgtune/tuner"
)

func newCheckCommand() *cobra.Command {
	var db string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "check STUDY.yaml", Short: "Say everything that can be known about a study before it runs", Args: cobra.ExactArgs(1),
		Long: "Read a study file, the host and the installed SGLang's --help, and say what was understood, how many configurations\n" +
			"the space has, which the rules exclude and why, who holds the GPUs, what fits into the budget, and whether the study\n" +
			"can be left alone. Starts no server and changes nothing. Mistakes in the file end it with exit code 2.",
		Example: "  sgtune check examples/quickstart.yaml\n  sgtune check night.yaml --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			report, err := check(cmd.Context(), args[0], db)
			if err != nil {
				return err
			}
			if asJSON {
				return printCheckJSON(cmd.OutOrStdout(), report)
			}
			return printCheck(cmd.OutOrStdout(), report)
		},
	}
	cmd.Flags().StringVar(&db, "db", "", "database to learn from (default sgtune.db beside the study file, when it is there)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// check asks the host, the workload file, the database and the installed SGLang about a study.
func check(ctx context.Context, path, db string) (*tuner.Report, error) {
	study, err := readStudy(path)
	if err != nil {
		return nil, err
	}
	workload, err := benchmark.ReadWorkload(study.Workload.File)
	if err != nil {
		return nil, usagef("%w", err)
	}
	if db == "" {
		db = filepath.Join(filepath.Dir(path), "sgtune.db")
	}
	in := tuner.CheckInput{Workload: workloadRows(workload), Rows: workload.Len(), Reuse: workload.Reuse}
	if err := asking(study, func(ask asker) error { checkFlags(ctx, ask, study, &in); return nil }); err != nil {
		return nil, err
	}
	study.FitWorkload(workload.Reuse)
	record, history, err := stored(ctx, db, study.Name)
	if err != nil {
		in.Notes = append(in.Notes, fmt.Sprintf("The database %s could not be read (%v); nothing was learnt from earlier trials.", db, err))
	}
	in.History = history
	if record != nil {
		for _, difference := range tuner.DiffIdentity(record.Identity, study.Identity()) {
			in.Against = append(in.Against, fmt.Sprintf("the file is not what study %s was begun with: %s (use another study: name, or tune --fresh)", study.Name, difference))
		}
	}
	times := []time.Time{time.Now()}
	if study.Host.Kind == tuner.HostSimulated {
		for _, t := range history {
			times = append(times, t.EndedAt)
		}
	}
	in.Now = latest(nil, times...)
	if err := askHost(ctx, study, db, &in); err != nil {
		return nil, err
	}
	return tuner.Check(study, in), nil
}

// stored is what an earlier run left of a study; nothing when there is no database or no such study.
func stored(ctx context.Context, path, study string) (*tuner.Record, []*trial.Trial, error) {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil, nil, nil
	}
	db, err := store.OpenReadOnly(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	defer db.Close() //nolint:errcheck // read only
	record, err := db.Study(ctx, study)
	if errors.Is(err, tuner.ErrNoStudy) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	history, err := db.Trials(ctx, study)
	return record, history, err
}

// askHost fills in the host's facts and who has leased it.
func askHost(ctx context.Context, s *tuner.Study, db string, in *tuner.CheckInput) error {
	where, err := newPlace(s, db, in.Now)
	if err != nil {
		return err
	}
	defer func() { _ = where.close() }()
	if in.Facts, err = where.facts(ctx, s); err != nil {
		return err
	}
	note, err := where.hostUntil(ctx, s)
	if err != nil {
		return err
	}
	if note != "" {
		in.Notes = append(in.Notes, note)
	}
	if where.slurm != nil {
		where.slurm.check(ctx, s, in)
	} else if where.remote != nil {
		where.checkAgent(ctx, s, in)
	}
	if _, err := os.Stat(where.files); s.Host.Kind == tuner.HostSimulated && err != nil {
		return nil //nolint:nilerr // never used, so nobody holds it; looking would make its folder
	}
	release, err := where.host.Lease(ctx, "check of study "+s.Name)
	switch {
	case errors.Is(err, host.ErrLeased):
		in.Facts.Lease = err.Error()
	case err != nil:
		in.Notes = append(in.Notes, fmt.Sprintf("Whether another sgtune holds the host is not known: %v.", err))
	default:
		return release()
	}
	return nil
}

func workloadRows(w *benchmark.Workload) []tuner.Row {
	var input, output, longest int
	for _, r := range w.All() {
		input += r.Input()
		output += r.OutputTokens
		longest = max(longest, r.Input()+r.OutputTokens)
	}
	n := max(1, w.Len())
	rows := []tuner.Row{
		{Name: "format", Text: w.Format},
		{Name: "requests", Text: fmt.Sprintf("%d, on average %d tokens in and %d out, the longest %d together", w.Len(), input/n, output/n, longest)},
		{Name: "shared prefixes", Text: fmt.Sprintf("%.1f%% of the prompt tokens repeat", 100*w.Reuse)},
	}
	for reason, count := range w.Dropped {
		rows = append(rows, tuner.Row{Name: "dropped", Text: fmt.Sprintf("%d rows: %s", count, reason)})
	}
	for _, note := range w.Notes {
		rows = append(rows, tuner.Row{Name: "note", Text: note})
	}
	return rows
}

func printCheckJSON(w io.Writer, r *tuner.Report) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// printCheck writes the report for a person; the last line is the answer.
func printCheck(out io.Writer, r *tuner.Report) error {
	w := &lineWriter{out: out}
	title := r.Study
	if r.Simulated {
		title += "   SIMULATED"
	}
	w.line("%s", title)
	for _, section := range r.Understood {
		w.table(section.Title, section.Rows)
	}
	w.table("Host now", r.Host)
	about := ""
	if !r.Space.Exact {
		about = "about "
	}
	w.line("\nConfigurations")
	w.line("  %s%d in the space, %s%d admitted", about, r.Space.Configurations, about, r.Space.Admitted)
	for _, e := range r.Space.Excluded {
		w.line("  %s%d excluded by rule %q, such as %s:", about, e.Configurations, e.Rule, describe(e.Example))
		w.line("      %s", e.Text)
	}
	for _, text := range r.Space.LeftOut {
		w.line("  %s", text)
	}
	w.line("\nPlan")
	w.line("  %s", r.Plan.Text)
	if len(r.Notes) > 0 {
		w.line("\nNotes")
	}
	for _, n := range r.Notes {
		w.line("  %s", n)
	}
	w.line("\n%s", r.Verdict)
	return w.err
}

// lineWriter keeps the first error of many small writes.
type lineWriter struct {
	out io.Writer
	err error
}

func (w *lineWriter) line(format string, args ...any) {
	if w.err == nil {
		_, w.err = fmt.Fprintf(w.out, format+"\n", args...)
	}
}

func (w *lineWriter) table(title string, rows []tuner.Row) {
	w.line("\n%s", title)
	if w.err != nil {
		return
	}
	t := tabwriter.NewWriter(w.out, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		if _, err := fmt.Fprintf(t, "  %s\t%s\n", r.Name, strings.ReplaceAll(r.Text, "\t", " ")); err != nil {
			w.err = err
		}
	}
	if err := t.Flush(); err != nil {
		w.err = err
	}
}
