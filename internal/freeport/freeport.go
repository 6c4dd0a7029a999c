package freeport

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
)

// For is a TCP port that nobody but a server started by this test gets, until the test is over. Until one listens,
// connections to it are refused.
func For(tb testing.TB) int {
	tb.Helper()
	port, release, err := Take()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(release)
	return port
}

// Take is For for whoever has no testing.TB. release lets go of the port, and may be called more than once.
func Take() (port int, release func(), err error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, fmt.Errorf("hold a port: socket: %w", err)
	}
	release = sync.OnceFunc(func() { _ = syscall.Close(fd) }) // there is nothing in it that could be lost
	defer func() {
		if err != nil {
			release()
		}
	}()
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return 0, nil, fmt.Errorf("hold a port: share its address: %w", err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{}); err != nil {
		return 0, nil, fmt.Errorf("hold a port: bind: %w", err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		return 0, nil, fmt.Errorf("hold a port: ask which: %w", err)
	}
	at, ok := name.(*syscall.SockaddrInet4)
	if !ok {
		return 0, nil, fmt.Errorf("hold a port: the system gave %T", name)
	}
	return at.Port, release, nil
}
