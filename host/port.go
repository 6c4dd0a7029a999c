package host

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// listening is the state of a listening socket in /proc/net/tcp.
const listening = "0A"

// Reach tells how to talk to a port of this machine and who listens on it; see Host. Any address
// counts as listening: a server bound to another one still makes the port taken.
func (l *Local) Reach(ctx context.Context, port int) (Endpoint, error) {
	if port < 0 || port > 65535 {
		return Endpoint{}, fmt.Errorf("reach port %d: a port is between 0 and 65535", port)
	}
	if port == 0 {
		free, err := freePort(ctx)
		if err != nil {
			return Endpoint{}, err
		}
		return Endpoint{Port: free, URL: loopbackURL(free)}, nil
	}
	inodes, err := listeners(port)
	if err != nil {
		return Endpoint{}, err
	}
	e := Endpoint{Port: port, URL: loopbackURL(port), Listening: len(inodes) > 0}
	if e.Listening {
		e.Owners = socketOwners(inodes)
	}
	return e, context.Cause(ctx)
}

func loopbackURL(port int) string { return "http://127.0.0.1:" + strconv.Itoa(port) }

// freePort asks the kernel for a port nobody uses now. It is not reserved.
func freePort(ctx context.Context) (int, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("pick a free port: %w", err)
	}
	port := ln.Addr().(*net.TCPAddr).Port
	if err := ln.Close(); err != nil {
		return 0, fmt.Errorf("pick a free port: %w", err)
	}
	return port, nil
}

// listeners returns the socket inodes that listen on the port, on IPv4 and IPv6.
func listeners(port int) (map[string]bool, error) {
	inodes := map[string]bool{}
	for _, name := range []string{"tcp", "tcp6"} {
		b, err := os.ReadFile("/proc/self/net/" + name)
		if os.IsNotExist(err) && name == "tcp6" {
			continue // IPv6 is switched off
		}
		if err != nil {
			return nil, fmt.Errorf("read listening ports: %w", err)
		}
		for _, inode := range parseListeners(b, port) {
			inodes[inode] = true
		}
	}
	return inodes, nil
}

// parseListeners reads the table of /proc/net/tcp or tcp6: local address and port in hexadecimal in
// column 2, state in column 4, inode in column 10.
func parseListeners(table []byte, port int) []string {
	want := fmt.Sprintf(":%04X", port)
	var inodes []string
	for line := range bytes.Lines(table) {
		f := strings.Fields(string(line))
		if len(f) >= 10 && strings.HasSuffix(f[1], want) && f[3] == listening {
			inodes = append(inodes, f[9])
		}
	}
	return inodes
}

// socketOwners returns the pids that hold one of the sockets open, where that can be read.
func socketOwners(inodes map[string]bool) []int {
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*") // its only error is a malformed pattern
	var pids []int
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil {
			continue
		}
		inode, ok := strings.CutPrefix(target, "socket:[")
		if !ok || !inodes[strings.TrimSuffix(inode, "]")] {
			continue
		}
		if pid, err := strconv.Atoi(strings.Split(link, "/")[2]); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}
