package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// SlurmRunner runs the programs of Slurm on a machine that has them. Implementations: SlurmHere, SSH.
type SlurmRunner interface {
	// RunCommand runs argv with stdin, and returns what it wrote to its two outputs together, and its exit status. The
	// error is for a program that was not run, or whose end is not known.
	RunCommand(ctx context.Context, argv []string, stdin string) (output string, status int, err error)
}

// SlurmHere runs Slurm's programs on this machine.
type SlurmHere struct {
	Env []string // added to ours, NAME=VALUE
}

// slurmOutput is the most that is read of a program of Slurm, in bytes.
const slurmOutput = 4 << 20

// RunCommand implements SlurmRunner.
func (h SlurmHere) RunCommand(ctx context.Context, argv []string, stdin string) (string, int, error) {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return "", 0, fmt.Errorf("the command %s is missing on this machine: run sgtune where Slurm's commands are, or name a login node in host.address", argv[0])
	}
	cmd := exec.CommandContext(ctx, path, argv[1:]...)
	cmd.Env = append(slurmEnv(), h.Env...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C is for sgtune alone
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	if ctx.Err() != nil {
		return "", 0, fmt.Errorf("%s: %w", argv[0], context.Cause(ctx))
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() >= 0 {
		return out.String(), exit.ExitCode(), nil
	}
	if err != nil {
		return "", 0, fmt.Errorf("%s: %w", argv[0], err)
	}
	return out.String(), 0, nil
}

// slurmEnv is our environment without what would change the meaning of a call: the marker, the job that sgtune itself
// may run in, and a user's wishes for what squeue shows.
func slurmEnv() []string {
	var env []string
	for _, pair := range probeEnv() {
		name, _, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, "SQUEUE_") || strings.HasPrefix(name, "SLURM_") && !strings.HasPrefix(name, "SLURM_CONF") && name != "SLURM_JWT" {
			continue
		}
		env = append(env, pair)
	}
	return env
}

var _ SlurmRunner = (*SSH)(nil)

// RunCommand runs a program on the machine through its login shell's sh; see SlurmRunner. stdin is text, of which the
// last line is ended where it is not.
func (l *SSH) RunCommand(ctx context.Context, argv []string, stdin string) (string, int, error) {
	c, err := startLink(l.args([]string{"-o", "ClearAllForwardings=yes"}, "exec sh -s"), nil)
	if err != nil {
		return "", 0, &LinkError{Host: l.opts.Address, Text: err.Error(), Final: true}
	}
	defer func() { _ = c.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	mark := "sgtune-" + newToken()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = io.WriteString(c.In, slurmRemote(argv, stdin, l.exports(), mark)) // why it failed is best told by what comes back
	}()
	b, _ := io.ReadAll(io.LimitReader(c.Out, slurmOutput)) // likewise
	_ = c.In.Close()
	<-sent
	if ctx.Err() != nil {
		return "", 0, fmt.Errorf("%s on %s: %w", argv[0], l.opts.Address, context.Cause(ctx))
	}
	if output, status, ok := cutRemote(string(b), mark); ok {
		return output, status, nil
	}
	status, messages := c.ended()
	return "", 0, l.trouble(status, messages, fmt.Errorf("whether %s was run is not known", argv[0]))
}

// slurmRemote is the script for the shell at the other end: one compound command, read whole before it is run.
func slurmRemote(argv []string, stdin, exports, mark string) string {
	words := make([]string, len(argv))
	for i, w := range argv {
		words[i] = shellQuote(w)
	}
	call := strings.Join(words, " ") + " 2>&1"
	if stdin == "" {
		call += " </dev/null\n"
	} else {
		call += " <<'" + mark + "'\n" + strings.TrimSuffix(stdin, "\n") + "\n" + mark + "\n"
	}
	return "{\n" + exports + "\nprintf '\\n" + mark + " begin\\n'\n" + call + "printf '\\n" + mark + " end %s\\n' $?\nexit 0\n}\n"
}

// cutRemote takes the program's output out of what the shell has said.
func cutRemote(text, mark string) (output string, status int, ok bool) {
	_, text, begun := strings.Cut(text, "\n"+mark+" begin\n")
	output, end, ended := strings.Cut(text, "\n"+mark+" end ")
	status, err := strconv.Atoi(strings.TrimSpace(end))
	return output, status, begun && ended && err == nil
}
