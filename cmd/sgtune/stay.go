package main

import (
	"io"

	"github.com/spf13/cobra"

	"sgtune/host"
	"sgtune/sglang"
)

// newStayCommand is the keeper of a server that a study left running on this machine. Elsewhere it is the agent's.
func newStayCommand() *cobra.Command {
	return &cobra.Command{
		Use: "stay FOLDER", Short: "Keep the server running that a study left (used by sgtune itself)", Hidden: true, Args: cobra.ExactArgs(1),
		Long: "Runs the server that FOLDER describes, starts it again when it dies, and keeps its log. SIGTERM ends the server, then\n" +
			"this program.",
		Example: "  sgtune stay ~/.local/state/sgtune/servers/local-gpu-box/night",
		RunE: func(cmd *cobra.Command, args []string) error {
			return host.StayMain(cmd.Context(), host.NewLocal(host.LocalOptions{}), args[0], func(w io.Writer, secrets ...string) host.MaskedLog {
				return sglang.NewMaskWriter(w, secrets...)
			})
		},
	}
}
