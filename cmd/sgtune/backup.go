package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"sgtune/store"
	"sgtune/tuner"
)

func newBackupCommand() *cobra.Command {
	var path string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "backup DEST", Short: "Copy the database to a file, also while a study runs", Args: cobra.ExactArgs(1),
		Long: "Copy the database as it is at one instant to the new file DEST; a running study is not held up. The copy is\n" +
			"checked and only then given its name; a file that exists is never replaced. To go on from a copy: --db DEST.\n" +
			"Logs and samples (sgtune.files beside the database) are not part of it.",
		Example: "  sgtune backup --db sgtune.db /backup/sgtune-monday.db",
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := backup(cmd.Context(), path, args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return backupJSON(cmd.OutOrStdout(), path, b)
			}
			return backupText(cmd.OutOrStdout(), path, b)
		},
	}
	cmd.Flags().StringVar(&path, "db", defaultDB, "database file")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func backup(ctx context.Context, path, dest string) (*store.Backup, error) {
	db, err := openForReading(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }() // nothing was written to it
	return db.Backup(ctx, dest)
}

// backupText is one line: where the copy is, its size, and what is in it.
func backupText(out io.Writer, path string, b *store.Backup) error {
	trials, finished := 0, 0
	for _, s := range b.Studies {
		trials, finished = trials+s.Trials, finished+s.Finished
	}
	_, err := fmt.Fprintf(out, "copied %s to %s: %.1f MB, %s with %s (%d finished), checked\n",
		path, b.File, float64(b.Bytes)/1e6, count(len(b.Studies), "study"), count(trials, "trial"), finished)
	return err
}

func backupJSON(out io.Writer, path string, b *store.Backup) error {
	type line struct {
		Study    string           `json:"study"`
		State    tuner.StudyState `json:"state"`
		Trials   int              `json:"trials"`
		Finished int              `json:"finished"`
	}
	studies := make([]line, len(b.Studies))
	for i, s := range b.Studies {
		studies[i] = line{s.Name, s.State, s.Trials, s.Finished}
	}
	return printJSON(out, map[string]any{
		"from": path, "file": b.File, "bytes": b.Bytes, "schema": b.Schema, "integrity": "ok", "studies": studies,
	})
}
