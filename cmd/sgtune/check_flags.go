package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"sgtune/sglang"
	"sgtune/tuner"
)

// checkFlags asks the installed server for its version and its flags, fits the study to them, and
// notes what cannot be passed.
func checkFlags(ctx context.Context, ask asker, s *tuner.Study, in *tuner.CheckInput) {
	command := s.Server.Command
	if len(command) == 0 {
		self, err := os.Executable()
		if err != nil {
			in.Notes = append(in.Notes, fmt.Sprintf("The flags could not be checked: sgtune's own program is not found (%v).", err))
			return
		}
		command = []string{self, "sim-server"}
		if text, ok := s.Server.Flags["sim-version"].(string); ok {
			command = append(command, "--sim-version", text)
		}
	}
	if _, err := exec.LookPath(command[0]); err != nil {
		in.Against = append(in.Against, fmt.Sprintf("server.command starts %s, which cannot be run here (%v)", command[0], plainExec(err)))
		return
	}
	installed, err := findInstalled(ctx, ask, command, s.Server.Env)
	if v, ok := simulatedVersion(s); ok {
		installed.Version = v
		installed.Text = fmt.Sprintf("sgtune's simulated server, which speaks as SGLang %s", v)
	}
	in.Server = installed.Text
	in.Flags = s.Fit(installed)
	switch {
	case err != nil:
		in.Notes = append(in.Notes, fmt.Sprintf("The flags could not be checked: %s --help %v.", sglang.Mask(strings.Join(command, " ")), err))
	case len(in.Flags) == 0:
		in.Notes = append(in.Notes, fmt.Sprintf("Every flag is among the %d that the installed server's --help lists.", len(installed.Flags)))
	}
}
