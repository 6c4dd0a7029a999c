package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sgtune/export"
	"sgtune/sglang"
	"sgtune/store"
	"sgtune/trial"
	"sgtune/tuner"
	"sgtune/web"
)

// formats are the launch profiles that can be written.
var formats = map[string]func(io.Writer, export.Profile) error{
	"sh": export.WriteShell, "sglang-yaml": export.WriteSGLangYAML,
}

func newExportCommand() *cobra.Command {
	var path, number, format string
	names := slices.Sorted(maps.Keys(formats))
	cmd := &cobra.Command{
		Use:   "export STUDY",
		Short: "Write a trial's configuration as a launch profile",
		Long: "Writes a launch profile to standard output. --trial best is the configuration that was confirmed to be better,\n" +
			"or else the baseline; another trial is written by its number and says UNCONFIRMED.",
		Example: "  sgtune export quickstart --db examples/sgtune.db --format sh > launch.sh\n" +
			"  sgtune export quickstart --db examples/sgtune.db --trial 7 --format sglang-yaml > quickstart.sglang.yaml",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			write := formats[format]
			if write == nil {
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
			if err := write(&b, profile); err != nil {
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
	t, err := pickTrial(ctx, db, r, number)
	if err != nil {
		return export.Profile{}, err
	}
	for name, value := range sglang.Merge(r.Server.Flags, t.Config) {
		if why := tuner.Lossy(name, value); why != "" {
			return export.Profile{}, failf(exitFailed, "trial %d of %s is not exported: %s (rule %s); export another with --trial N",
				t.Number, study, why, tuner.RuleQuality)
		}
	}
	v := r.Verdict
	p := export.Profile{
		Study: r.Name, Trial: t.Number, Baseline: t.Role == trial.RoleBaseline, Simulated: r.Simulated,
		Server: r.Server, Config: t.Config, Version: t.SGLang, Figures: figures(r, t), Date: t.EndedAt,
	}
	if better(v) && t.Config.Key() == v.Config.Key() {
		p.Confirmed = true
		p.Figures = append(p.Figures, gain(v))
		p.Date = r.EndedAt
	}
	if job := wholeJob(v, p); job != "" {
		p.Figures = append(p.Figures, job)
	}
	return p, nil
}

// better reports whether a confirmation found a configuration that is better than the baseline.
func better(v *tuner.Verdict) bool { return v != nil && v.Answer == "better" }

// wholeJob is how long the study's whole job takes with a profile, "" where the verdict does not say.
func wholeJob(v *tuner.Verdict, p export.Profile) string {
	switch {
	case v == nil:
		return ""
	case p.Confirmed:
		return tuner.JobText(v.Total, v.BaselineHours, v.Hours)
	case p.Baseline:
		return tuner.JobText(v.Total, v.BaselineHours, 0)
	}
	return ""
}

// pickTrial is the trial with a number, or the one that best stands for.
func pickTrial(ctx context.Context, db *store.DB, r *tuner.Record, number string) (*trial.Trial, error) {
	if number != "best" {
		t, err := findTrial(ctx, db, r.Name, number)
		if err == nil && t.Role != trial.RoleBaseline && t.State != trial.Complete {
			err = failf(exitFailed, "trial %d of %s is %s, so nothing shows that it works; export a complete one", t.Number, r.Name, outcome(t))
		}
		return t, err
	}
	n := 0
	if better(r.Verdict) {
		n = r.Verdict.Trial
	}
	t, err := db.Trial(ctx, r.Name, n)
	if errors.Is(err, tuner.ErrNoTrial) {
		return nil, failf(exitFailed, "study %s has no trial yet; run sgtune tune first", r.Name)
	}
	return t, err
}

// figures says what was measured.
func figures(r *tuner.Record, t *trial.Trial) []string {
	text := web.Amount(t, r.Objective)
	switch {
	case text == "" && t.Verdict.Text != "":
		return []string{fmt.Sprintf("nothing was measured: %s", t.Verdict.Text)}
	case text == "":
		return []string{"nothing was measured"}
	}
	if ran := tuner.RanAtOnce(t); ran > 0 {
		text += fmt.Sprintf("; %.0f ran at once", ran)
	}
	out := []string{text}
	for _, l := range t.Levels {
		if l.Concurrency == t.Best && l.Report != nil && l.Report.OutputHigh > 0 {
			out = append(out, fmt.Sprintf("95%% interval inside this launch: %s to %s output tok/s", web.Number(l.Report.OutputLow), web.Number(l.Report.OutputHigh)))
		}
	}
	return out
}

// gain is the verdict's figure with its interval.
func gain(v *tuner.Verdict) string {
	text := fmt.Sprintf("better than the baseline by %.1f%%", 100*v.Gain)
	if v.Low != nil && v.High != nil {
		text += fmt.Sprintf(", 95%% interval %+.1f%% to %+.1f%%", 100**v.Low, 100**v.High)
	}
	if v.Level > 0 {
		text += fmt.Sprintf(", at %d clients", v.Level)
	}
	return text + fmt.Sprintf(", %d launches each", v.Launches)
}
