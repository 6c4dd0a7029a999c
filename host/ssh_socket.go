package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// longestSocket is the room for a path in sockaddr_un (108 bytes), less the 17 that ssh appends to the name of a new
// control socket.
const longestSocket = 108 - 1 - 17

// socketFolder is a private folder with a short name for the sockets of all links of this user.
func socketFolder() (string, error) {
	mine := "sgtune-" + strconv.Itoa(os.Getuid())
	places := []string{filepath.Join(os.TempDir(), mine), filepath.Join("/tmp", mine)}
	if run := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(run) {
		places = append([]string{filepath.Join(run, "sgtune")}, places...)
	}
	var failed error
	for _, dir := range places {
		if err := privateFolder(dir); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		return dir, nil
	}
	return "", fmt.Errorf("no place for the sockets of ssh: %w", failed)
}

// privateFolder makes a folder that nobody else can read, write or have made.
func privateFolder(dir string) error {
	// The longest name in it is that of a forward; ssh reads % and : in paths as something else.
	if len(dir)+len("/f4194304-99999-65535") > longestSocket || strings.ContainsAny(dir, "%: ") {
		return fmt.Errorf("%s: too long a name for sockets, or with characters that ssh would misread", dir)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(owner.Uid) != os.Getuid() || info.Mode().Perm() != 0o700 {
		return fmt.Errorf("%s is not a private folder of this user: remove it", dir)
	}
	return nil
}

// sweepSockets removes what a killed sgtune has left and nobody listens on any more. It is a tidying: what fails stays.
func sweepSockets(dir string) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range list {
		number, _, ok := strings.Cut(strings.TrimLeft(e.Name(), "cf"), "-")
		pid, err := strconv.Atoi(number)
		if !ok || err != nil || syscall.Kill(pid, 0) == nil {
			continue
		}
		path := filepath.Join(dir, e.Name())
		c, err := net.DialTimeout("unix", path, time.Second)
		if err == nil {
			_ = c.Close() // a control master in its last two minutes
			continue
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			_ = os.Remove(path)
		}
	}
}

// control is the socket of the control master.
func (l *SSH) control() string { return filepath.Join(l.dir, "c"+l.name) }

// Dialer dials a port of the machine's loopback through a unix socket that ssh forwards: there is no port here that
// somebody else could take first. The forward is made at the first dial, and again when the connection was lost.
func (l *SSH) Dialer(port int) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		l.mu.Lock()
		path, ok := l.forward[port]
		l.mu.Unlock()
		if ok {
			c, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
			if err == nil || ctx.Err() != nil {
				return c, err
			}
		}
		path, err := l.forwardPort(ctx, port)
		if err != nil {
			return nil, err
		}
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
}

// forwardPort has the control master listen on a socket for a port. Without a master one is started.
func (l *SSH) forwardPort(ctx context.Context, port int) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	path := filepath.Join(l.dir, fmt.Sprintf("f%s-%d", l.name, port))
	if _, ok := l.forward[port]; ok { // perhaps made anew by another one while we waited
		if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
			return path, c.Close()
		}
	}
	delete(l.forward, port)
	request := l.args([]string{"-O", "forward", "-L", path + ":127.0.0.1:" + strconv.Itoa(port)})
	if err := removeIfThere(path); err != nil {
		return "", fmt.Errorf("forward port %d of %s: %w", port, l.opts.Address, err)
	}
	err := l.master(ctx, request)
	if err != nil {
		login := l.args([]string{"-o", "ClearAllForwardings=yes"}, "exit")
		if err = l.master(ctx, login); err == nil {
			err = l.master(ctx, request)
		}
	}
	if err != nil {
		return "", fmt.Errorf("forward port %d: %w", port, err)
	}
	l.forward[port] = path
	return path, nil
}
