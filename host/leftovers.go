package host

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Leftover is a living process with a marker, as a person wants to see it before it is ended.
type Leftover struct {
	ID     ID            `json:"id"`
	Age    time.Duration `json:"age"`             // ns since its start
	Memory int64         `json:"memory"`          // bytes resident, -1 unknown
	Ports  []int         `json:"ports,omitempty"` // on which it listens
	Owner  string        `json:"owner,omitempty"` // the living sgtune whose trial this is, "" = nobody's
}

// Leftovers lists the living processes with a marker, oldest first. Those of a trial whose sgtune lives name it: such a
// sgtune holds a lease, maybe one that this user does not see, and is the parent of what it started.
func (l *Local) Leftovers(ctx context.Context) ([]Leftover, error) {
	all, err := scan()
	if err != nil {
		return nil, err
	}
	marked := l.marked(ctx, all, "")
	ours := map[int]bool{}
	for _, c := range marked {
		ours[c.pid] = true
	}
	owners := map[string]string{} // by marker: what has left the family belongs to it still
	for _, c := range marked {
		if who := ownerOf(c.procStat, all, ours); who != "" {
			owners[c.marker] = who
		}
	}
	ports := portsByInode()
	list := make([]Leftover, 0, len(marked))
	for _, c := range marked {
		o := Leftover{
			ID:     ID{BootID: l.boot, PID: c.pid, PGID: c.pgrp, StartTicks: c.startTicks, Marker: c.marker, Argv: readArgv(c.pid)},
			Memory: residentBytes(c.pid), Owner: owners[c.marker],
		}
		if start, err := startedAt(c.procStat); err == nil {
			o.Age = time.Since(start)
		}
		for _, inode := range openSockets(c.pid) {
			if port := ports[inode]; port > 0 && !slices.Contains(o.Ports, port) {
				o.Ports = append(o.Ports, port)
			}
		}
		list = append(list, o)
	}
	return list, context.Cause(ctx)
}

// ownerOf is the nearest ancestor without a marker, if it holds a lease.
func ownerOf(s procStat, all map[int]procStat, marked map[int]bool) string {
	for seen := 0; seen < len(all); seen++ {
		parent, ok := all[s.ppid]
		if !ok || parent.pid <= 1 {
			return ""
		}
		if s = parent; marked[s.pid] {
			continue
		}
		for _, link := range fdLinks(s.pid) {
			target, err := os.Readlink(link)
			if name := filepath.Base(target); err == nil && strings.HasPrefix(name, "lease-") && strings.HasSuffix(name, ".json") {
				return fmt.Sprintf("pid %d (%s)", s.pid, s.comm)
			}
		}
		return ""
	}
	return ""
}

// residentBytes is the memory of a process that is in RAM, what it shares included; -1 unknown.
func residentBytes(pid int) int64 {
	b, err := os.ReadFile(procPath(pid, "statm"))
	if err != nil {
		return -1
	}
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return -1
	}
	pages, err := strconv.ParseInt(f[1], 10, 64)
	if err != nil {
		return -1
	}
	return pages * int64(os.Getpagesize())
}

// portsByInode are the listening TCP ports of this machine by their sockets' inodes.
func portsByInode() map[string]int {
	ports := map[string]int{}
	for _, name := range []string{"tcp", "tcp6"} {
		table, err := os.ReadFile("/proc/self/net/" + name)
		if err != nil {
			continue
		}
		for line := range bytes.Lines(table) {
			f := strings.Fields(string(line))
			if len(f) < 10 || f[3] != listening {
				continue
			}
			_, hex, _ := strings.Cut(f[1], ":")
			if port, err := strconv.ParseUint(hex, 16, 16); err == nil {
				ports[f[9]] = int(port)
			}
		}
	}
	return ports
}
