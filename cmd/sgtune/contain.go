package main

import (
	"os"

	"github.com/spf13/cobra"

	"sgtune/host"
)

// newContainCommand is the holder of a trial's container: a process that ends as the container does.
func newContainCommand() *cobra.Command {
	return &cobra.Command{
		Use: "contain FOLDER", Short: "Hold the container of one trial (used by sgtune itself)", Hidden: true, Args: cobra.ExactArgs(1),
		Long: "Makes the container that FOLDER describes, prints its log, stops it on SIGTERM, writes down how it ended, removes it\n" +
			"and ends with its exit status.",
		Example: "  sgtune contain ~/.local/state/sgtune/lease-local-box.containers/night.3.1796033922899832637",
		Run: func(cmd *cobra.Command, args []string) {
			status, err := host.ContainMain(cmd.Context(), host.NewLocal(host.LocalOptions{}), args[0], os.Stdout)
			if err != nil {
				printError(os.Stderr, err)
			}
			os.Exit(status)
		},
	}
}
