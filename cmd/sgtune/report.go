package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"sgtune/tuner"
	"sgtune/web"
)

func newReportCommand() *cobra.Command {
	var path, output, format string
	cmd := &cobra.Command{
		Use:   "report STUDY",
		Short: "Write a study as one file to mail: verdict, charts, every trial",
		Long: "Writes a study's report: as HTML one file that opens without a network and holds all the study's page shows, as Markdown\n" +
			"the same words and tables. The format is what the end of the file's name says; without -o it goes to standard output.",
		Example: "  sgtune report quickstart --db examples/sgtune.db -o report.html\n" +
			"  sgtune report quickstart --db examples/sgtune.db -o report.md\n" +
			"  sgtune report quickstart --db examples/sgtune.db --format markdown",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, err := reportFormat(format, output)
			if err != nil {
				return err
			}
			if err := reportOutput(output, path); err != nil {
				return err
			}
			db, err := openForReading(cmd.Context(), path)
			if err != nil {
				return err
			}
			defer func() { _ = db.Close() }() // nothing was written
			if _, err := findStudy(cmd.Context(), db, args[0]); err != nil {
				return err
			}
			text, err := web.New(db, web.Options{DB: path, Version: version()}).Report(cmd.Context(), args[0], kind)
			if errors.Is(err, tuner.ErrNoStudy) { // removed meanwhile
				return usagef("%w", err)
			}
			if err != nil {
				return err
			}
			if output == "" {
				_, err = cmd.OutOrStdout().Write(text)
				return err
			}
			return writeWhole(output, text, true)
		},
	}
	cmd.Flags().StringVar(&path, "db", defaultDB, "database file")
	cmd.Flags().StringVarP(&output, "output", "o", "", "file to write, .html or .md; what was there is overwritten")
	cmd.Flags().StringVar(&format, "format", "", "html or markdown (default: by the end of the file's name, else html)")
	return cmd
}

// reportFormat is the format that is asked for, or that a file's name says.
func reportFormat(format, output string) (string, error) {
	switch format {
	case web.ReportHTML, web.ReportMarkdown:
		return format, nil
	case "md":
		return web.ReportMarkdown, nil
	case "":
	default:
		return "", usagef("--format %q is not one of html, markdown", format)
	}
	switch end := strings.ToLower(filepath.Ext(output)); {
	case output == "", end == ".html", end == ".htm":
		return web.ReportHTML, nil
	case end == ".md", end == ".markdown":
		return web.ReportMarkdown, nil
	}
	return "", usagef("-o %s: the end of the name does not say the format; end it in .html or .md, or add --format html", output)
}

// reportOutput refuses what a report must not overwrite.
func reportOutput(output, db string) error {
	if err := checkOutput(output, true); err != nil {
		return err
	}
	if output == "" {
		return nil
	}
	target, err := os.Stat(output)
	if err != nil {
		return nil //nolint:nilerr // it is not there yet, so it overwrites nothing
	}
	if stored, err := os.Stat(db); err == nil && os.SameFile(target, stored) {
		return usagef("-o %s is the database itself; name another file", output)
	}
	return nil
}
