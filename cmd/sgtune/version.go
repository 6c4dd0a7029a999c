package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sgtune/internal/agent"
	"sgtune/internal/replayjob"
)

func newVersionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		Example: "  sgtune version --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := version()
			if asJSON {
				told := struct {
					Agents  map[string]string `json:"agents,omitempty"`
					Go      string            `json:"go"`
					Version string            `json:"version"`
				}{agents(), runtime.Version(), v}
				return json.NewEncoder(cmd.OutOrStdout()).Encode(told)
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "sgtune %s (%s)\n%s", v, runtime.Version(), agentLines())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// version is the VCS tag or revision the build carries.
func version() string { return replayjob.Version() }

// agents are the checksums of the agents built in, by platform; nil without any.
func agents() map[string]string {
	var sums map[string]string
	for _, arch := range agent.Archs() {
		if sum, err := agent.Checksum(arch); err == nil {
			if sums == nil {
				sums = map[string]string{}
			}
			sums["linux/"+arch] = sum
		}
	}
	return sums
}

// agentLines says on a terminal what agents tells.
func agentLines() string {
	sums := agents()
	if sums == nil {
		return "agent: none built in (for remote hosts: run make agent, then build sgtune again)\n"
	}
	var b strings.Builder
	for _, platform := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(&b, "agent %s sha256 %.12s\n", platform, sums[platform])
	}
	return b.String()
}
