package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		Example: "  sgtune version --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := version()
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]string{"version": v, "go": runtime.Version()})
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "sgtune %s (%s)\n", v, runtime.Version())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// version is the VCS tag or revision the build carries.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	rev, dirty := "", ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			rev = s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			if s.Value == "true" {
				dirty = "+changes"
			}
		}
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	if rev == "" {
		return "devel"
	}
	return "devel-" + rev + dirty
}
