package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"sgtune/internal/simulator"
)

// newSimServerCommand is the hidden `sgtune sim-server`: a process that behaves like an SGLang server on a
// simulated machine. All flags but --sim-... are SGLang's, so cobra must not look at them; the exit status is
// SGLang's too.
func newSimServerCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "sim-server [SGLang flags] [--sim-... flags]",
		Short:              "a simulated SGLang server",
		Example:            "  sgtune sim-server --model-path any --tp-size 8 --port 30000 --mem-fraction-static 0.85 --sim-time-scale 150 --sim-startup 90",
		Hidden:             true,
		DisableFlagParsing: true,
		Run: func(cmd *cobra.Command, args []string) {
			code := simulator.Main(cmd.Context(), args, os.Stdout)
			if code == exitDone && (slices.Contains(args, "--help") || slices.Contains(args, "-h")) {
				_, _ = fmt.Fprintf(os.Stdout, "\nExample:\n%s\n", cmd.Example)
			}
			os.Exit(code)
		},
	}
}
