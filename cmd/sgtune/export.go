package main

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sgtune/export"
	"sgtune/store"
	"sgtune/trial"
	"sgtune/tuner"
	"sgtune/web"
)

func newExportCommand() *cobra.Command {
	var path, number, format string
	names := export.Formats()
	cmd := &cobra.Command{
		Use:   "export STUDY",
		Short: "Write a trial's configuration as a launch profile",
		Long: "Writes a launch profile to standard output. --trial best is the configuration that was confirmed to be better,\n" +
			"or else the baseline; another trial is written by its number and says UNCONFIRMED.",
		Example: "  sgtune export quickstart --db examples/sgtune.db --format sh > launch.sh\n" +
			"  sgtune export quickstart --db examples/sgtune.db --trial 7 --format sglang-yaml > quickstart.sglang.yaml",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(names, format) {
				return usagef("--format %q is not one of %s", format, strings.Join(names, ", "))
			}
			db, err := openForReading(cmd.Context(), path)
			if err != nil {
				return err
			}
			defer func() { _ = db.Close() }() // nothing was written
			profile, err := findProfile(cmd.Context(), db, args[0], number)
			if err != nil {
				return err
			}
			var b bytes.Buffer // all or nothing
			if err := export.Write(&b, format, profile); err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(b.Bytes())
			return err
		},
	}
	cmd.Flags().StringVar(&path, "db", defaultDB, "database file")
	cmd.Flags().StringVar(&number, "trial", "best", "trial to write: its number, or best")
	cmd.Flags().StringVar(&format, "format", "sh", "what to write: "+strings.Join(names, ", "))
	return cmd
}

// findProfile picks a trial and says what it may be called.
func findProfile(ctx context.Context, db *store.DB, study, number string) (export.Profile, error) {
	r, err := findStudy(ctx, db, study)
	if err != nil {
		return export.Profile{}, err
	}
	t, err := pickTrial(ctx, db, &r.Record, number)
	if err != nil {
		return export.Profile{}, err
	}
	p, err := web.NewProfile(&r.Record, t)
	if err != nil {
		return export.Profile{}, failf(exitFailed, "%s", err)
	}
	return p, nil
}

// pickTrial is the trial with a number, or the one that best stands for.
func pickTrial(ctx context.Context, db *store.DB, r *tuner.Record, number string) (*trial.Trial, error) {
	if number != "best" {
		return findTrial(ctx, db, r.Name, number)
	}
	t, err := db.Trial(ctx, r.Name, web.BestTrial(r))
	if errors.Is(err, tuner.ErrNoTrial) {
		return nil, failf(exitFailed, "study %s has no trial yet; run sgtune tune first", r.Name)
	}
	return t, err
}
