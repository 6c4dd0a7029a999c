package hosts

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"sgtune/host"
)

// A night asks for a forward of another port with each trial. Old ones are given up, and made anew when they are asked for.
func TestForwardsAreFew(t *testing.T) {
	f := fixture(t, "gpu-host")
	const ports = 18
	var dials []func() error
	for range ports {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		go greetAll(ln)
		port := ln.Addr().(*net.TCPAddr).Port
		e, err := f.Reach(t.Context(), port)
		if err != nil {
			t.Fatal(err)
		}
		dials = append(dials, func() error { return heard(t.Context(), e) })
	}
	for i, dial := range append(dials, dials[0]) {
		if err := dial(); err != nil {
			t.Errorf("forward %d: %v", i, err)
		}
	}
	folder := os.Getenv("XDG_RUNTIME_DIR")
	if folder == "" {
		folder = filepath.Join(os.TempDir(), "sgtune-"+strconv.Itoa(os.Getuid()))
	} else {
		folder = filepath.Join(folder, "sgtune")
	}
	sockets, err := filepath.Glob(filepath.Join(folder, fmt.Sprintf("f%d-*", os.Getpid())))
	if err != nil || len(sockets) != 16 {
		t.Errorf("%d sockets, %v; want 16 of %d", len(sockets), err, ports)
	}
}

// greetAll answers every connection with one letter until the listener is closed.
func greetAll(ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		_, _ = c.Write([]byte("x")) // a lost answer is seen by who waits for it
		_ = c.Close()
	}
}

// heard dials a port of the host and waits for the letter.
func heard(ctx context.Context, e host.Endpoint) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	c, err := e.Dial(ctx, "tcp", "")
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second)) // a unix socket takes it
	b := make([]byte, 1)
	_, err = c.Read(b)
	return err
}
