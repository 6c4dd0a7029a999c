package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
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
	if len(dir)+len("/f4194304-0123abcd-65535") > longestSocket || strings.ContainsAny(dir, "%: ") {
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

// pidSpace tells pid namespaces apart, in four characters: in a folder that is shared with a container a number that is
// free here may be that of a living sgtune.
func pidSpace() string {
	name, _ := os.Readlink("/proc/self/ns/pid") // "" without /proc: then all are one
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:2])
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
	l.made = append(slices.DeleteFunc(l.made, func(p int) bool { return p == port }), port)
	for len(l.made) > mostForwards {
		l.unforward(ctx, l.made[0])
		l.made = l.made[1:]
	}
	return path, nil
}

// mostForwards is how many forwards are kept: each trial has another port, and a master has so many open files only.
const mostForwards = 16

// unforward gives up a forward; connections through it live on. The next dial makes it anew. The caller holds mu.
func (l *SSH) unforward(ctx context.Context, port int) {
	path := l.forward[port]
	// It fails where the master is a new one, which knows nothing of it.
	_ = l.master(ctx, l.args([]string{"-O", "cancel", "-L", path + ":127.0.0.1:" + strconv.Itoa(port)}))
	_ = removeIfThere(path) // else the sweep does it
	delete(l.forward, port)
}
