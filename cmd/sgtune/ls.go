package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"sgtune/store"
	"sgtune/tuner"
	"sgtune/web"
)

// defaultDB is the database of the commands that only read.
const defaultDB = "sgtune.db"

func newLsCommand() *cobra.Command {
	var path string
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "ls",
		Short:   "List the studies of a database",
		Example: "  sgtune ls --db examples/sgtune.db",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			db, err := openForReading(cmd.Context(), path)
			if err != nil {
				return err
			}
			defer func() { _ = db.Close() }() // nothing was written
			all, err := db.Studies(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return listJSON(cmd.OutOrStdout(), all)
			}
			return list(cmd.OutOrStdout(), all)
		},
	}
	cmd.Flags().StringVar(&path, "db", defaultDB, "database file")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// list prints one line a study, the newest first.
func list(out io.Writer, all []tuner.Summary) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(out, "No study yet. Start the 2-minute example: sgtune tune examples/quickstart.yaml")
		return err
	}
	w := newTable(out)
	row(w, "STATE", "STUDY", "TRIALS", "HOST", "ENDED", "VERDICT")
	now := time.Now()
	for _, s := range all {
		act, text := web.HeadlineNow(&s, now)
		name := s.Name
		if s.Simulated {
			name += " (SIMULATED)"
		}
		row(w, stateNow(&s, now), name, fmt.Sprint(s.Finished), s.Host, day(s.EndedAt), act+": "+text)
	}
	return w.Flush()
}

// stateNow is how a study stands, in a word: one that is stored as running and whose tuner is gone has stopped.
func stateNow(s *tuner.Summary, now time.Time) string {
	if s.Silent(now) {
		return string(tuner.StudyStopped)
	}
	return string(s.State)
}

func listJSON(out io.Writer, all []tuner.Summary) error {
	type line struct {
		Study     string           `json:"study"`
		Simulated bool             `json:"simulated"`
		State     tuner.StudyState `json:"state"`
		Silent    bool             `json:"tuner_silent,omitempty"` // stored as running, and nobody runs it
		Host      string           `json:"host"`
		Trials    int              `json:"trials"`
		Finished  int              `json:"finished"`
		Verdict   shownVerdict     `json:"verdict"`
	}
	lines := make([]line, len(all))
	for i, s := range all {
		lines[i] = line{s.Name, s.Simulated, s.State, s.Silent(time.Now()), s.Host, s.Trials, s.Finished, showVerdict(s.Verdict)}
	}
	return printJSON(out, map[string]any{"studies": lines})
}

// openForReading opens a database for the commands that change nothing.
func openForReading(ctx context.Context, path string) (*store.DB, error) {
	db, err := store.OpenReadOnly(ctx, path)
	if err != nil {
		return nil, usagef("%w", err)
	}
	return db, nil
}

// findStudy reads one study; for an unknown name the error lists those there are.
func findStudy(ctx context.Context, db *store.DB, name string) (*tuner.Summary, error) {
	study, err := db.Summary(ctx, name)
	if !errors.Is(err, tuner.ErrNoStudy) {
		return study, err
	}
	all, err := db.Studies(ctx)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, usagef("%s holds no study; run sgtune tune STUDY.yaml first, or name another file with --db", db.Path())
	}
	var names []string
	for _, s := range all[:min(len(all), 8)] {
		names = append(names, s.Name)
	}
	if len(all) > len(names) {
		names = append(names, "... (sgtune ls shows all)")
	}
	return nil, usagef("%s holds no study %q; it holds %s", db.Path(), name, strings.Join(names, ", "))
}

// newTable aligns columns with two spaces between them.
func newTable(out io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(out, 0, 0, 2, ' ', 0) }

// row writes one line of a table; a text cannot break it.
func row(w io.Writer, cells ...string) {
	for i, cell := range cells {
		cells[i] = strings.Join(strings.FieldsFunc(cell, func(r rune) bool { return r < ' ' }), " ")
	}
	_, _ = fmt.Fprintln(w, strings.Join(cells, "\t")) // Flush reports what went wrong
}

// day is a date and time for a person, "" for none.
func day(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04")
}

func printJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
