package host

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Link is a way to a machine that runs sgtune-agent there. Implementations: SSH, CommandLink.
type Link interface {
	// Open starts "sgtune-agent WORD" on the machine and returns its standard input and output. ctx bounds
	// the opening, not what was opened.
	Open(ctx context.Context, word string) (*LinkConn, error)
	// Dialer dials the machine's loopback; nil where ordinary dialling reaches it.
	Dialer(port int) func(ctx context.Context, network, addr string) (net.Conn, error)
	// Close ends what the link itself keeps open. Connections are closed by who opened them.
	Close() error
	// String names the machine, as the user calls it.
	String() string
}

// ErrUnreachable is wrapped by the errors of a link that cannot be opened.
var ErrUnreachable = errors.New("host cannot be reached")

// LinkError is why a machine cannot be reached: one line, with what to do.
type LinkError struct {
	Host  string // as the user calls it
	Text  string
	Final bool // trying again does not help, as with a changed host key
}

// Error implements error.
func (e *LinkError) Error() string { return e.Host + ": " + e.Text }

// Is makes it an ErrUnreachable.
func (e *LinkError) Is(target error) bool { return target == ErrUnreachable }

// stderrTail is how much of a link program's messages is kept, in bytes.
const stderrTail = 4 << 10

// LinkConn is a started agent. Close it, also after an error.
type LinkConn struct {
	In  io.WriteCloser
	Out *bufio.Reader

	cmd    *exec.Cmd
	out    io.ReadCloser
	stderr *tailBuffer
	close  sync.Once
	status error // of the link program; valid after Close
}

// startLink starts the program that is the link. It gets a session of its own: Ctrl-C is for sgtune alone, which
// still needs the link to clean up. It never carries our marker.
func startLink(argv, env []string) (*LinkConn, error) {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return nil, err
	}
	c := &LinkConn{stderr: &tailBuffer{}}
	c.cmd = &exec.Cmd{
		Path: path, Args: argv, Env: slices.Concat(probeEnv(), env), Stderr: c.stderr, WaitDelay: time.Second,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if c.In, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if c.out, err = c.cmd.StdoutPipe(); err != nil {
		return nil, errors.Join(err, c.In.Close())
	}
	c.Out = bufio.NewReaderSize(c.out, 64<<10)
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	return c, nil
}

// Read reads what the agent says.
func (c *LinkConn) Read(b []byte) (int, error) { return c.Out.Read(b) }

// Close ends the link program, which ends the agent at the other end. The error is always nil: a program that had to
// be killed is what was wanted.
func (c *LinkConn) Close() error {
	c.close.Do(func() {
		_ = c.In.Close()
		_ = c.out.Close()
		_ = c.cmd.Process.Kill()
		c.status = c.cmd.Wait()
	})
	return nil
}

// Messages is the end of what the link program wrote to its standard error so far.
func (c *LinkConn) Messages() string { return c.stderr.String() }

// ended waits a moment for a link program that seems to have ended by itself, so that its own status is seen
// and not that of our kill. -1 means that it had to be killed.
func (c *LinkConn) ended() (status int, messages string) {
	_ = c.In.Close()
	done := make(chan struct{})
	c.close.Do(func() {
		go func() {
			defer close(done)
			c.status = c.cmd.Wait()
		}()
		select {
		case <-done:
		case <-time.After(linkEnd):
			_ = c.cmd.Process.Kill()
			<-done
		}
	})
	var exit *exec.ExitError
	if errors.As(c.status, &exit) {
		return exit.ExitCode(), c.stderr.String()
	}
	if c.status != nil {
		return -1, c.stderr.String()
	}
	return 0, c.stderr.String()
}

// linkEnd is how long a link program may take to end once its output has ended.
const linkEnd = 2 * time.Second

// tailBuffer keeps the end of what is written to it.
type tailBuffer struct {
	mu sync.Mutex
	b  []byte
}

func (t *tailBuffer) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	t.b = t.b[max(0, len(t.b)-stderrTail):]
	return len(p), nil
}

func (t *tailBuffer) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(bytes.ToValidUTF8(t.b, []byte("?"))))
}

// CommandLink reaches a machine by a command that runs the agent there: argv, with the agent's word appended.
type CommandLink struct {
	Name string   // of the machine
	Argv []string // usually ends with the path of the agent
	Env  []string // added to ours, NAME=VALUE
}

// Open starts the command; see Link.
func (l CommandLink) Open(_ context.Context, word string) (*LinkConn, error) {
	c, err := startLink(slices.Concat(l.Argv, []string{word}), l.Env)
	if err != nil {
		return nil, &LinkError{Host: l.Name, Text: err.Error()}
	}
	return c, nil
}

// Dialer is nil: the machine's addresses are ours.
func (l CommandLink) Dialer(int) func(context.Context, string, string) (net.Conn, error) { return nil }

// Close does nothing: nothing is kept.
func (l CommandLink) Close() error { return nil }

// String is the name of the machine.
func (l CommandLink) String() string { return l.Name }

// lastLine is the last line of a text that is not empty.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
