package freeport_test

import (
	"errors"
	"net"
	"strconv"
	"syscall"
	"testing"

	"sgtune/internal/freeport"
)

func TestPortIsHeldForItsServer(t *testing.T) {
	t.Parallel()
	port := freeport.For(t)
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if c, err := net.Dial("tcp", addr); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("somebody listens already: %v, %v", c, err)
	}
	for range 2 { // a server may be started again
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatalf("the server does not get its port: %v", err)
		}
		if second, err := net.Listen("tcp", addr); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("two servers get it: %v, %v", second, err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Nobody gets the port who did not ask for it: the system counts it as taken.
func TestPortIsNotGivenAway(t *testing.T) {
	t.Parallel()
	port, release, err := freeport.Take()
	if err != nil {
		t.Fatal(err)
	}
	if err := bindAlone(port); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("the port is not held: %v", err)
	}
	for range 500 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if l.Addr().(*net.TCPAddr).Port == port {
			t.Fatal("the system gave it to somebody else")
		}
		defer l.Close()
	}
	release()
	release()
	if err := bindAlone(port); err != nil {
		t.Errorf("the port is held after it was let go: %v", err)
	}
}

// bindAlone takes a port for itself alone, as the system would for a connection, and lets go of it.
func bindAlone(port int) error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Close(fd) }()
	return syscall.Bind(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
}
