package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"sgtune/sglang"
	"sgtune/tuner"
)

const (
	// helpTimeout is real time for `server.command --help`: importing SGLang takes half a minute on a
	// cold disk.
	helpTimeout = 2 * time.Minute
	// versionTimeout is real time for a command that prints the version and imports nothing.
	versionTimeout = 30 * time.Second
)

// asker runs one command where a study's server will run, with env beside the environment there, and
// returns what it printed to standard output. A remote host answers the same words over its own way.
type asker func(ctx context.Context, argv []string, env map[string]string) (string, error)

// askHere runs a command on this machine. The whole group ends with ctx: a wrapper's child would
// outlive its shell.
func askHere(ctx context.Context, argv []string, env map[string]string) (string, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = os.Environ()
	for name, v := range env {
		cmd.Env = append(cmd.Env, name+"="+v)
	}
	var out bytes.Buffer
	cmd.Stdout = &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	return out.String(), err
}

// installedVersion asks a server command for the version of its SGLang, without importing it. text
// is the version as spelt; an error means that it cannot be told this way.
func installedVersion(ctx context.Context, ask asker, command []string, env map[string]string) (v sglang.Version, text string, err error) {
	err = errors.New("the command does not show which program it runs")
	for _, argv := range sglang.VersionCommands(command) {
		timed, cancel := context.WithTimeout(ctx, versionTimeout)
		output, failed := ask(timed, argv, env)
		cancel()
		if v, text, err = sglang.ReadVersion(output); err == nil {
			return v, text, nil
		}
		if failed != nil {
			err = failed
		}
	}
	return sglang.Version{}, text, err
}

// installedFlags asks a server command for its options, by its own --help.
func installedFlags(ctx context.Context, ask asker, command []string, env map[string]string) (sglang.Flags, error) {
	ctx, cancel := context.WithTimeout(ctx, helpTimeout)
	defer cancel()
	text, err := ask(ctx, append(withoutPort(command), "--help"), env)
	if flags := sglang.ParseHelp(text); len(flags) > 0 {
		return flags, nil
	}
	return nil, errors.New(whyNoHelp(err))
}

// findInstalled asks both and puts the answers together: a version that does not say itself is
// inferred from the options.
func findInstalled(ctx context.Context, ask asker, command []string, env map[string]string) (tuner.Installed, error) {
	var in tuner.Installed
	var said string
	in.Version, said, _ = installedVersion(ctx, ask, command, env)
	flags, err := installedFlags(ctx, ask, command, env)
	in.Flags = flags
	in.Text = describeInstalled(&in, said)
	return in, err
}

// describeInstalled says in words what was found, and infers the version where it is not known.
func describeInstalled(in *tuner.Installed, said string) string {
	inferred, ok := sglang.InferVersion(in.Flags)
	count := fmt.Sprintf("its --help lists %d option names", inferred.Options)
	switch known := in.Version != (sglang.Version{}); {
	case known && !ok:
		return fmt.Sprintf("SGLang %s, as it says itself", said)
	case known && inferred.Version == in.Version && inferred.Exact():
		return fmt.Sprintf("SGLang %s, as it says itself; %s, exactly those of the release", said, count)
	case known:
		return fmt.Sprintf("SGLang %s, as it says itself; %s, %s", said, count, likeRelease(inferred))
	case ok:
		in.Version = inferred.Version
		return fmt.Sprintf("SGLang %s, told by its options alone; %s, %s", inferred.Version, count, likeRelease(inferred))
	case in.Flags != nil:
		return fmt.Sprintf("not a known SGLang: its --help lists %d option names, and fewer than two thirds are those of any release", len(in.Flags))
	}
	return ""
}

func likeRelease(i sglang.Inference) string {
	if i.Exact() {
		return fmt.Sprintf("exactly those of %s", i.Version)
	}
	return i.String()
}

// quickInstalled is what a study's launches need to know before the first of them, in about a
// second: the version, by which renamed flags are passed. --help is asked only where the version
// would make a flag or a value impossible, because a build may have more than its release.
func quickInstalled(ctx context.Context, ask asker, s *tuner.Study) tuner.Installed {
	if v, ok := simulatedVersion(s); ok {
		return tuner.Installed{Version: v}
	}
	ask = askInside(s.Server.Container, ask)
	v, said, err := installedVersion(ctx, ask, s.Server.Command, s.Server.Env)
	in := tuner.Installed{Version: v, Text: fmt.Sprintf("SGLang %s, as it says itself", said)}
	if err == nil && len(s.Misfits(in)) == 0 {
		return in
	}
	if err != nil && !s.NeedsVersion() {
		return tuner.Installed{}
	}
	in, _ = findInstalled(ctx, ask, s.Server.Command, s.Server.Env) // without --help, the release's own flags are what is known
	return in
}

// simulatedVersion is the version a study's simulated server speaks.
func simulatedVersion(s *tuner.Study) (sglang.Version, bool) {
	if len(s.Server.Command) > 0 && !slices.Contains(s.Server.Command, "sim-server") {
		return sglang.Version{}, false
	}
	text := s.Server.Flags.Text("sim-version")
	if i := slices.Index(s.Server.Command, "--sim-version"); i >= 0 && i+1 < len(s.Server.Command) {
		text = s.Server.Command[i+1]
	}
	if v, err := sglang.ParseVersion(text); err == nil {
		return v, true
	}
	all := sglang.Releases()
	return all[len(all)-1], true
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
