package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"sgtune/web"
)

func newServeCommand() *cobra.Command {
	var path, addr string
	var hosts []string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the web page over a database",
		Long: "Serves the page over finished and running studies until it is interrupted. It starts nothing; what a person asks of a\n" +
			"running study (stop, void, launch) is stored, and the process that runs the study takes it.\n" +
			"Other machines can reach it only where the environment variable SGTUNE_TOKEN holds a secret.",
		Example: "  sgtune serve --db examples/sgtune.db\n" +
			"  SGTUNE_TOKEN=... sgtune serve --web 0.0.0.0:8090 --web-host gpu-box",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			db, err := openForReading(ctx, path)
			if err != nil {
				return err
			}
			defer func() { _ = db.Close() }() // nothing was written
			pages := web.New(db, web.Options{
				Addr: addr, Hosts: hosts, Token: os.Getenv("SGTUNE_TOKEN"), DB: path, Commands: askLater{path}, Evidence: evidenceFolder(path), Version: version(), Draft: readDraft,
				Log: slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)),
			})
			return servePages(ctx, cmd, addr, pages)
		},
	}
	cmd.Flags().StringVar(&path, "db", defaultDB, "database file")
	cmd.Flags().StringVar(&addr, "web", web.DefaultAddr, "address of the page; the next free port is taken if it is in use")
	cmd.Flags().StringSliceVar(&hosts, "web-host", nil, "further names a browser may use for this machine")
	return cmd
}

// servePages says where the page is and serves it until ctx ends.
func servePages(ctx context.Context, cmd *cobra.Command, addr string, pages *web.Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	actual, wait, err := web.Serve(ctx, addr, pages)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(cmd.OutOrStdout(), "page: http://%s/\n", actual); err != nil {
		cancel()
		return errors.Join(err, wait())
	}
	return wait()
}
