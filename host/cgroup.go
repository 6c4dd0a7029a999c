package host

import (
	"bytes"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// hierarchy is where a cgroup version keeps our memory limits: group is our folder, top the mount
// point above which nothing can be read. Paths are relative to the root, without a leading slash.
type hierarchy struct {
	group, top string
	v2         bool
}

// Files of the two versions. memory.high is no hard limit, but a group above it is throttled until
// a server seems to hang, so it counts like one.
var (
	limitsV2 = []string{"memory.max", "memory.high"}
	limitsV1 = []string{"memory.limit_in_bytes"}
)

// unlimited is above any real limit; version 1 says "none" with a number near 2^63.
const unlimited = math.MaxInt64 / 2

// cgroupHeadroom is the least number of bytes left under any limit from our cgroup up to the root,
// -1 without a limit. File pages count as free, as they do in MemAvailable: the kernel drops them
// before it kills, and a model just read from disk would otherwise look like used memory.
func cgroupHeadroom(root fs.FS) int64 {
	h, ok := findHierarchy(root)
	if !ok {
		return -1
	}
	least := int64(-1)
	for dir := h.group; ; dir = path.Dir(dir) {
		if left, ok := h.left(root, dir); ok && (least < 0 || left < least) {
			least = left
		}
		if dir == h.top || dir == "." {
			return least
		}
	}
}

func (h hierarchy) left(root fs.FS, dir string) (int64, bool) {
	names, usage, prefix := limitsV1, "memory.usage_in_bytes", "total_"
	if h.v2 {
		names, usage, prefix = limitsV2, "memory.current", ""
	}
	limit := int64(unlimited)
	for _, name := range names {
		if n, ok := readNumber(root, path.Join(dir, name)); ok {
			limit = min(limit, n)
		}
	}
	used, ok := readNumber(root, path.Join(dir, usage))
	if !ok || limit >= unlimited {
		return 0, false
	}
	if b, err := fs.ReadFile(root, path.Join(dir, "memory.stat")); err == nil {
		for _, key := range []string{"inactive_file", "active_file"} {
			used -= max(0, keyed(b, prefix+key))
		}
	}
	return max(0, limit-max(0, used)), true
}

// cgroupOOMKills is how many processes of our cgroup the kernel killed for lack of memory, -1 unknown.
func cgroupOOMKills(root fs.FS) int64 {
	h, ok := findHierarchy(root)
	if !ok {
		return -1
	}
	name := "memory.oom_control"
	if h.v2 {
		name = "memory.events"
	}
	b, err := fs.ReadFile(root, path.Join(h.group, name))
	if err != nil {
		return -1
	}
	return keyed(b, "oom_kill")
}

// findHierarchy looks for a cgroup with memory files: version 2 first, then version 1. A hybrid
// machine mounts both, with the memory controller in only one.
func findHierarchy(root fs.FS) (hierarchy, bool) {
	self, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return hierarchy{}, false
	}
	mounts, err := fs.ReadFile(root, "proc/self/mountinfo")
	if err != nil {
		return hierarchy{}, false
	}
	v2, v1 := parseCgroup(self)
	for _, m := range parseCgroupMounts(mounts) {
		own := v1
		if m.v2 {
			own = v2
		}
		h := hierarchy{group: m.dir(own), top: m.point, v2: m.v2}
		if own == "" {
			continue
		}
		usage := "memory.usage_in_bytes"
		if h.v2 {
			usage = "memory.current"
		}
		// The root group of version 2 has no such file, and no limit either.
		if _, err := fs.Stat(root, path.Join(h.group, usage)); err == nil {
			return h, true
		}
	}
	return hierarchy{}, false
}

// parseCgroup reads /proc/self/cgroup: our path in version 2 ("0::/path") and in the memory
// controller of version 1 ("4:memory:/path"); "" where we are in none.
func parseCgroup(b []byte) (v2, v1 string) {
	for line := range bytes.Lines(b) {
		f := strings.SplitN(strings.TrimRight(string(line), "\n"), ":", 3)
		if len(f) != 3 || !strings.HasPrefix(f[2], "/") {
			continue
		}
		if f[0] == "0" && f[1] == "" {
			v2 = f[2]
		}
		for controller := range strings.SplitSeq(f[1], ",") {
			if controller == "memory" {
				v1 = f[2]
			}
		}
	}
	return v2, v1
}

// cgroupMount is one mounted cgroup tree: root is the group that its mount point shows.
type cgroupMount struct {
	root, point string
	v2          bool
}

// dir is the folder of a group. In a container the path may be seen from outside: then the mount
// point itself is the best that can be read.
func (m cgroupMount) dir(group string) string {
	rest, ok := strings.CutPrefix(path.Clean(group), strings.TrimSuffix(m.root, "/"))
	if !ok || strings.Contains(group, "..") || rest != "" && rest[0] != '/' {
		rest = ""
	}
	return path.Join(m.point, rest)
}

// parseCgroupMounts reads /proc/self/mountinfo: version 2 trees first, then the version 1 memory tree.
func parseCgroupMounts(b []byte) []cgroupMount {
	var v2, v1 []cgroupMount
	for line := range bytes.Lines(b) {
		before, after, ok := strings.Cut(string(line), " - ")
		f, g := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 5 || len(g) < 3 {
			continue
		}
		m := cgroupMount{root: f[3], point: strings.TrimPrefix(path.Clean(f[4]), "/")}
		switch {
		case g[0] == "cgroup2":
			m.v2 = true
			v2 = append(v2, m)
		case g[0] == "cgroup" && strings.Contains(","+g[2]+",", ",memory,"):
			v1 = append(v1, m)
		}
	}
	return append(v2, v1...)
}

// readNumber reads a file with one number; "max" is no limit.
func readNumber(root fs.FS, name string) (int64, bool) {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	return parseLimit(string(b))
}

func parseLimit(text string) (int64, bool) {
	text = strings.TrimSpace(text)
	if text == "max" {
		return unlimited, true
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, false
	}
	return int64(min(n, unlimited)), true
}
