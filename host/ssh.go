package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	sshPersist  = 120             // seconds that a control master outlives its last user
	openTime    = 5 * time.Minute // to log in and to copy the agent over a slow line
	controlTime = 20 * time.Second
)

// SSHOptions are the settings of an SSH link. Address and Agent are needed.
type SSHOptions struct {
	Address string            // anything ssh accepts; the user's own ssh configuration applies
	Config  string            // file for ssh -F, "" = the user's
	Work    string            // folder on the machine, relative to the home folder; "" = $XDG_CACHE_HOME/sgtune or ~/.cache/sgtune
	Env     map[string]string // environment of the agent there, and so of what it starts
	Program string            // "" = ssh
	// Agent returns the agent for a machine that calls itself arch (uname -m), and its SHA-256 in hexadecimal.
	Agent func(arch string) (program []byte, sha256 string, err error)
}

// SSH reaches a machine by the system's ssh, so that jump hosts, agents, keys and host keys are as the user set
// them up. One login serves all connections (a control master). It never asks anything and never weakens the check of a host key.
type SSH struct {
	opts    SSHOptions
	dir     string // private folder of the sockets
	name    string // of this link's sockets in dir
	mu      sync.Mutex
	forward map[int]string // port → socket
	made    []int          // the ports of forward, oldest first
}

var _ Link = (*SSH)(nil)

// envName is what a shell can export.
var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// NewSSH returns the link to a machine. Nothing is connected yet.
func NewSSH(opts SSHOptions) (*SSH, error) {
	if opts.Program == "" {
		opts.Program = "ssh"
	}
	if opts.Address == "" || opts.Address[0] == '-' || strings.ContainsAny(opts.Address, " \t\r\n\x00") {
		return nil, fmt.Errorf("%q is no address for ssh: give what you would write after ssh, as user@host", opts.Address)
	}
	for name := range opts.Env {
		if !envName.MatchString(name) {
			return nil, fmt.Errorf("%q is no name for an environment variable", name)
		}
	}
	dir, err := socketFolder()
	if err != nil {
		return nil, err
	}
	sweepSockets(dir, opts.Program)
	// The number of this process alone may be that of a killed one whose control master still lives, or of one in
	// another pid namespace: then ssh would take the way to another machine.
	name := strconv.Itoa(os.Getpid()) + "-" + pidSpace() + newToken()[:4]
	return &SSH{opts: opts, dir: dir, name: name, forward: map[int]string{}}, nil
}

// String is the address.
func (l *SSH) String() string { return l.opts.Address }

// args is a call of ssh: the options, the address, and what is to be run there.
func (l *SSH) args(options []string, command ...string) []string {
	argv := []string{
		l.opts.Program, "-T", "-o", "BatchMode=yes",
		"-o", "ControlMaster=auto", "-o", "ControlPath=" + l.control(), "-o", fmt.Sprintf("ControlPersist=%d", sshPersist),
		"-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3", "-o", "ConnectTimeout=5",
		"-o", "RemoteCommand=none", "-o", "StreamLocalBindUnlink=yes",
	}
	if l.opts.Config != "" {
		argv = append(argv, "-F", l.opts.Config)
	}
	return slices.Concat(argv, options, []string{"--", l.opts.Address}, command)
}

// Open logs in, sees to it that the right agent lies there, and starts it; see Link.
func (l *SSH) Open(ctx context.Context, word string) (*LinkConn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, openTime, fmt.Errorf("not ready after %s", openTime))
	defer cancel()
	// The user's own forwards are for the user's own sessions: a second listener on their ports would fail.
	c, err := startLink(l.args([]string{"-o", "ClearAllForwardings=yes"}, "exec sh -s"), nil)
	if err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			err = fmt.Errorf("the command %s is missing on this machine: install openssh-client", l.opts.Program)
		}
		return nil, &LinkError{Host: l.opts.Address, Text: err.Error(), Final: true}
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	err = l.bootstrap(c, word)
	if !stop() { // closed meanwhile, so whatever came out of it is void
		return nil, &LinkError{Host: l.opts.Address, Text: context.Cause(ctx).Error()}
	}
	if err == nil {
		return c, nil
	}
	status, messages := c.ended()
	var told *LinkError
	if errors.As(err, &told) {
		return nil, told
	}
	return nil, l.trouble(status, messages, err)
}

// master runs ssh for the control master's sake: a command to it, or a login that starts it.
func (l *SSH) master(ctx context.Context, argv []string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, controlTime, fmt.Errorf("no answer within %s", controlTime))
	defer cancel()
	c, err := startLink(argv, nil)
	if err != nil {
		return &LinkError{Host: l.opts.Address, Text: err.Error()}
	}
	ended := make(chan struct{})
	var status int
	var messages string
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, c.Out) // until it ends
		status, messages = c.ended()
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		_ = c.Close()
		<-ended
		return &LinkError{Host: l.opts.Address, Text: context.Cause(ctx).Error()}
	}
	if status != 0 {
		return l.trouble(status, messages, errors.New("ssh failed"))
	}
	return nil
}

// Close ends the control master and removes the sockets; see Link.
func (l *SSH) Close() error {
	var failed error
	if _, err := os.Lstat(l.control()); err == nil {
		// Its failure means that there is no master any more, or none that hears us: then it ends by itself.
		_ = l.master(context.Background(), l.args([]string{"-O", "exit"}))
		failed = removeIfThere(l.control())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, path := range l.forward {
		failed = errors.Join(failed, removeIfThere(path))
	}
	clear(l.forward)
	l.made = nil
	return failed
}
