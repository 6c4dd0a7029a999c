package host

import (
	"cmp"
	"fmt"
	"io/fs"
	"math"
	"path"
	"strconv"
)

// exactly asks memoryWatch.read for the page cache of every limited cgroup.
const exactly = math.MaxInt64

// memoryWatch reads the memory that a process can still take, many times a second.
type memoryWatch struct {
	root   fs.FS
	pid    int
	main   func() int     // the main process of its container, whose limits count then; 0 or nil = none
	groups []limitedGroup // those with a limit, in all hierarchies
	count  string         // file with the kill counter of the process's own group, "" = none
}

// limitedGroup is a cgroup with a memory limit.
type limitedGroup struct {
	hierarchy
	dir   string
	limit int64 // bytes
}

// refresh finds the cgroups of the process and their limits again: both may change while it lives. Those of a
// process that is gone stay as they were, for what it left behind is still in them.
func (w *memoryWatch) refresh() {
	pid := w.pid
	if w.main != nil {
		pid = cmp.Or(w.main(), pid)
	}
	self, err := fs.ReadFile(w.root, path.Join("proc", strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return
	}
	mounts, err := fs.ReadFile(w.root, "proc/self/mountinfo")
	if err != nil {
		return
	}
	v2, v1 := parseCgroup(self)
	w.groups, w.count = nil, ""
	for _, m := range parseCgroupMounts(mounts) {
		own, counter := v1, "memory.oom_control"
		if m.v2 {
			own, counter = v2, "memory.events"
		}
		if own == "" {
			continue
		}
		h := hierarchy{group: m.dir(own), top: m.point, v2: m.v2}
		if file := path.Join(h.group, counter); w.count == "" && exists(w.root, file) {
			w.count = file
		}
		w.groups = append(w.groups, h.limited(w.root)...)
	}
}

func exists(root fs.FS, name string) bool {
	_, err := fs.Stat(root, name)
	return err == nil
}

// limited lists the groups with a limit, from ours up to the top.
func (h hierarchy) limited(root fs.FS) []limitedGroup {
	names := limitsV1
	if h.v2 {
		names = limitsV2
	}
	var list []limitedGroup
	for dir := h.group; ; dir = path.Dir(dir) {
		limit := int64(unlimited)
		for _, name := range names {
			if n, ok := readNumber(root, path.Join(dir, name)); ok {
				limit = min(limit, n)
			}
		}
		if limit < unlimited {
			list = append(list, limitedGroup{hierarchy: h, dir: dir, limit: limit})
		}
		if dir == h.top || dir == "." {
			return list
		}
	}
}

// free is what is left under the limit. Page cache counts as free, as in cgroupHeadroom; but its figure costs as
// much as all the rest, so it is only asked for when less than enough is left without it.
func (g limitedGroup) free(root fs.FS, enough int64) (int64, bool) {
	usage := "memory.usage_in_bytes"
	if g.v2 {
		usage = "memory.current"
	}
	used, ok := readNumber(root, path.Join(g.dir, usage))
	if !ok {
		return 0, false
	}
	if g.limit-used >= enough {
		return g.limit - used, true
	}
	return g.left(root, g.dir)
}

var unknownMemory = GuardMemoryReading{Total: -1, Available: -1, Headroom: -1, Limit: -1, Swap: -1}

// read takes one look. Headroom may be too low by the page cache where it is at least enough.
func (w *memoryWatch) read(enough int64) (GuardMemoryReading, error) {
	b, err := fs.ReadFile(w.root, "proc/meminfo")
	if err != nil {
		return unknownMemory, fmt.Errorf("read host memory: %w", err)
	}
	r := unknownMemory
	r.Total, r.Available = kilobytes(b, "MemTotal:"), kilobytes(b, "MemAvailable:")
	if total, free := kilobytes(b, "SwapTotal:"), kilobytes(b, "SwapFree:"); total > 0 && free >= 0 {
		r.Swap = total - free
	}
	for _, g := range w.groups {
		if left, ok := g.free(w.root, enough); ok && (r.Headroom < 0 || left < r.Headroom) {
			r.Headroom, r.Limit, r.Group = left, g.limit, g.dir
		}
	}
	return r, nil
}

// size is the memory that the process can have at most.
func (w *memoryWatch) size(total int64) int64 {
	for _, g := range w.groups {
		total = min(total, g.limit)
	}
	return total
}

// kills is the kill counter of the process's own group, -1 unknown.
func (w *memoryWatch) kills() int64 {
	if w.count == "" {
		return -1
	}
	b, err := fs.ReadFile(w.root, w.count)
	if err != nil {
		return -1
	}
	return keyed(b, "oom_kill")
}

// free is the lower of the two bounds, and the reason it would be a kill for; -1 when neither is known.
func (r GuardMemoryReading) free() (int64, GuardReason) {
	if r.Headroom >= 0 && (r.Available < 0 || r.Headroom < r.Available) {
		return r.Headroom, GuardCgroup
	}
	return r.Available, GuardMemory
}
