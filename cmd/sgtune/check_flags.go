package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"sgtune/sglang"
	"sgtune/tuner"
)

// helpTimeout is real time for `server.command --help`: importing SGLang takes half a minute on a
// cold disk.
const helpTimeout = 2 * time.Minute

// checkFlags asks the installed server which flags it has, by its own --help, and notes what the
// study passes that it does not take.
func checkFlags(ctx context.Context, s *tuner.Study, in *tuner.CheckInput) {
	command := s.Server.Command
	if len(command) == 0 {
		self, err := os.Executable()
		if err != nil {
			in.Notes = append(in.Notes, fmt.Sprintf("The flags could not be checked: sgtune's own program is not found (%v).", err))
			return
		}
		command = []string{self, "sim-server"}
	}
	if _, err := exec.LookPath(command[0]); err != nil {
		in.Against = append(in.Against, fmt.Sprintf("server.command starts %s, which cannot be run here (%v)", command[0], plainExec(err)))
		return
	}
	text, err := help(ctx, command, s.Server.Env)
	flags := sglang.ParseHelp(text)
	if len(flags) == 0 {
		in.Notes = append(in.Notes, fmt.Sprintf("The flags could not be checked: %s --help %s.", sglang.Mask(strings.Join(command, " ")), whyNoHelp(err)))
		return
	}
	in.Flags = unknownFlags(flags, searched(s))
	if len(in.Flags) == 0 {
		in.Notes = append(in.Notes, fmt.Sprintf("Every flag is among the %d that the installed server's --help lists.", len(flags)))
	}
}

// unknownFlags names what the installed server does not take.
func unknownFlags(flags sglang.Flags, passed map[string][]any) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(passed)) {
		if strings.HasPrefix(name, sglang.EnvPrefix) {
			continue
		}
		if !flags.Has(name) {
			out = append(out, fmt.Sprintf("the installed server has no flag --%s", name))
			continue
		}
		for _, v := range passed[name] {
			if _, list := v.([]any); !list && flags[name].TakesValue && !flags.Accepts(name, sglang.FormatValue(v)) {
				out = append(out, fmt.Sprintf("the installed server does not take --%s %s", name, sglang.FormatValue(v)))
			}
		}
	}
	return slices.Compact(out)
}

// help runs command --help to its end and returns what it printed.
func help(ctx context.Context, command []string, env map[string]string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, helpTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], append(slices.Clone(withoutPort(command[1:])), "--help")...)
	cmd.Env = os.Environ()
	for name, v := range env {
		cmd.Env = append(cmd.Env, name+"="+v)
	}
	var out bytes.Buffer
	cmd.Stdout = &out
	// The whole group ends at the time limit: a wrapper's child would outlive its shell.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	return out.String(), err
}

// withoutPort leaves out a {port} and the flag before it: no port is chosen yet.
func withoutPort(words []string) []string {
	var out []string
	for _, w := range words {
		switch {
		case w == "{port}" && len(out) > 0:
			out = out[:len(out)-1]
		case !strings.Contains(w, "{port}"):
			out = append(out, w)
		}
	}
	return out
}

func whyNoHelp(err error) string {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "printed no list of options"
	case errors.As(err, &exit):
		return "ended with " + exit.String()
	}
	return fmt.Sprintf("failed (%v)", plainExec(err))
}

// plainExec is an exec error without the program's name, which the message has already.
func plainExec(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	var e *exec.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}
