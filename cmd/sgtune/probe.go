package main

import (
	"os"

	"github.com/spf13/cobra"

	"sgtune/host"
)

// newNVMLProbeCommand is the subprocess that reads the GPUs, so that a hung driver or a missing
// symbol never takes sgtune down.
func newNVMLProbeCommand() *cobra.Command {
	var energy bool
	cmd := &cobra.Command{
		Use: "nvml-probe", Short: "Print GPU facts as JSON (used by sgtune itself)", Hidden: true, Args: cobra.NoArgs,
		Example: "  sgtune nvml-probe",
		RunE: func(cmd *cobra.Command, _ []string) error {
			main := host.ProbeMain
			if energy {
				main = host.EnergyMain
			}
			return main(cmd.OutOrStdout(), os.Getenv("SGTUNE_NVML_LIBRARY"))
		},
	}
	cmd.Flags().BoolVar(&energy, "energy", false, "energy counters and power instead of memory")
	return cmd
}
