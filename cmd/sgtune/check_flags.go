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
	if err := runnable(ctx, ask, s, command[0]); err != nil {
		if s.Host.Kind == tuner.HostSlurm { // the nodes may have what the login node lacks
			in.Notes = append(in.Notes, fmt.Sprintf("The flags could not be checked: %v; the nodes must have it.", err))
			return
		}
		in.Against = append(in.Against, err.Error())
		return
	}
	ask = askInside(s.Server.Container, ask)
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

// runnable says why a program cannot be run where the server will run.
func runnable(ctx context.Context, ask asker, s *tuner.Study, program string) error {
	if s.Server.Container != nil {
		return containable(ctx, ask, s)
	}
	if s.Host.Address == "" {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("server.command starts %s, which cannot be run here (%w)", program, plainExec(err))
		}
		return nil
	}
	if _, err := ask(ctx, []string{"sh", "-c", `command -v -- "$1"`, "sh", program}, s.Server.Env); err != nil {
		return fmt.Errorf("server.command starts %s, which cannot be run on %s (%w)", program, s.Host.Address, err)
	}
	return nil
}
