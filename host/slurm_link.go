package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// SlurmAskEnv tells an agent in a step of a job where to ask for keepers (ServeOptions.Ask).
const SlurmAskEnv = "SGTUNE_AGENT_ASK"

// SlurmLogin is a machine that has Slurm's programs: SlurmHere or an SSH link to a login node.
type SlurmLogin interface {
	SlurmRunner
	// StartCommand starts a program there whose standard input and output are the caller's, who closes it.
	StartCommand(argv []string) (*LinkConn, error)
}

var (
	_ SlurmLogin = SlurmHere{}
	_ SlurmLogin = (*SSH)(nil)
)

// askedLogin is a login node whose programs are not waited for any more once that machine was given up (Remote.GiveUp).
type askedLogin struct {
	SlurmLogin
	machine *Remote
}

// RunCommand implements SlurmRunner.
func (l askedLogin) RunCommand(ctx context.Context, argv []string, stdin string) (string, int, error) {
	ctx, done := l.machine.asked(ctx)
	defer done()
	return l.SlurmLogin.RunCommand(ctx, argv, stdin)
}

// StartCommand implements SlurmLogin.
func (h SlurmHere) StartCommand(argv []string) (*LinkConn, error) {
	keep := map[string]bool{}
	for _, pair := range slurmEnv() {
		name, _, _ := strings.Cut(pair, "=")
		keep[name] = true
	}
	clean := []string{"env"}
	for _, pair := range probeEnv() {
		if name, _, _ := strings.Cut(pair, "="); !keep[name] {
			clean = append(clean, "-u", name)
		}
	}
	return startLink(slices.Concat(clean, argv), h.Env)
}

// StartCommand runs a program on the machine by its login shell; see SlurmLogin.
func (l *SSH) StartCommand(argv []string) (*LinkConn, error) {
	words := []string{"exec env"}
	for name, value := range l.opts.Env {
		words = append(words, shellQuote(name+"="+value))
	}
	for _, w := range argv {
		words = append(words, shellQuote(w))
	}
	return startLink(l.args([]string{"-o", "ClearAllForwardings=yes"}, strings.Join(words, " ")), nil)
}

// slurmLink reaches the node of a running job: the agent runs in a step of its own beside the batch script.
type slurmLink struct {
	login SlurmLogin
	job   SlurmJob
	agent string // path on the node
	work  string
	ask   string
}

// step is the call of srun for the agent with some words.
func (l slurmLink) step(words ...string) []string {
	argv := []string{"srun"}
	if l.job.Cluster != "" {
		argv = append(argv, "-M", l.job.Cluster)
	}
	argv = append(argv, "--jobid="+l.job.ID, "--overlap", "--nodes=1", "--ntasks=1", "--unbuffered", "--quiet", "--chdir=/",
		"env", SlurmAskEnv+"="+l.ask)
	if words[0] == "replay" { // the load generator is nice to the server beside it
		argv = append(argv, "nice", "-n", "5")
	}
	return append(append(argv, l.agent), words...)
}

// Open starts the agent on the node; see Link.
func (l slurmLink) Open(_ context.Context, word string) (*LinkConn, error) {
	words := []string{word}
	if word == "serve" {
		words = append(words, l.work)
	}
	c, err := l.login.StartCommand(l.step(words...))
	if err != nil {
		return nil, &LinkError{Host: l.String(), Text: err.Error()}
	}
	return c, nil
}

// Dialer reaches the loopback of the node: each connection is a step of its own.
func (l slurmLink) Dialer(port int) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		c, err := l.login.StartCommand(l.step("pipe", strconv.Itoa(port)))
		if err != nil {
			return nil, &LinkError{Host: l.String(), Text: err.Error()}
		}
		return pipeConn{c}, nil
	}
}

// Close does nothing: nothing is kept.
func (l slurmLink) Close() error { return nil }

// String names the job and its node.
func (l slurmLink) String() string {
	if l.job.Node == "" {
		return "Slurm job " + l.job.ID
	}
	return fmt.Sprintf("Slurm job %s on %s", l.job.ID, l.job.Node)
}

// pipeConn is a connection through an agent that pipes. It has no deadlines, which net/http does without.
type pipeConn struct{ *LinkConn }

func (c pipeConn) Write(b []byte) (int, error)      { return c.In.Write(b) }
func (c pipeConn) LocalAddr() net.Addr              { return pipeAddr{} }
func (c pipeConn) RemoteAddr() net.Addr             { return pipeAddr{} }
func (c pipeConn) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (c pipeConn) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (c pipeConn) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "sgtune-agent" }

// PipeMain is the body of "sgtune-agent pipe PORT": it connects in and out to a port of this machine's loopback, until
// both ways have ended, or the connection has.
func PipeMain(ctx context.Context, port string, in io.Reader, out io.Writer) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return fmt.Errorf("pipe: %w", err)
	}
	defer func() { _ = conn.Close() }()
	// Nobody waits for this one: it is in a Read of our input, which ends with the process.
	go func() {
		_, _ = io.Copy(conn, in)
		if c, ok := conn.(*net.TCPConn); ok {
			_ = c.CloseWrite()
		}
	}()
	if _, err = io.Copy(out, conn); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("pipe: %w", err)
	}
	return nil
}
