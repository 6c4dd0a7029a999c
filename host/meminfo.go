package host

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// rootFS is where /proc and /sys are read from.
var rootFS = os.DirFS("/")

// memory is the machine's memory in bytes; -1 = not known, or no limit for headroom.
type memory struct {
	total, available, headroom int64
	oom                        counters
}

// counters are kills for lack of memory so far; -1 = not known.
type counters struct{ kernel, cgroup int64 }

// rose reports whether one of the counters is higher than before.
func (c counters) rose(before counters) bool {
	return before.kernel >= 0 && c.kernel > before.kernel || before.cgroup >= 0 && c.cgroup > before.cgroup
}

// readMemory reads /proc/meminfo, /proc/vmstat and the limits of our cgroup below root.
func readMemory(root fs.FS) (memory, error) {
	b, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return memory{}, fmt.Errorf("read host memory: %w", err)
	}
	m := memory{total: kilobytes(b, "MemTotal:"), available: kilobytes(b, "MemAvailable:")}
	if m.total < 0 {
		return memory{}, fmt.Errorf("read host memory: no MemTotal in /proc/meminfo")
	}
	m.headroom = cgroupHeadroom(root)
	m.oom = readCounters(root)
	return m, nil
}

func machineCounters() counters { return readCounters(rootFS) }

func readCounters(root fs.FS) counters {
	c := counters{kernel: -1, cgroup: cgroupOOMKills(root)}
	if b, err := fs.ReadFile(root, "proc/vmstat"); err == nil {
		c.kernel = keyed(b, "oom_kill")
	}
	return c
}

// kilobytes returns a value of /proc/meminfo in bytes: "MemTotal:  24684096 kB". The kernel writes
// kB and means KiB.
func kilobytes(b []byte, key string) int64 {
	kib := keyed(b, key)
	if kib < 0 || kib > 1<<52 {
		return -1
	}
	return kib << 10
}

// keyed returns the number after a key at the start of a line, as in /proc/vmstat, memory.events and
// memory.stat; -1 when it is missing, negative or no number.
func keyed(b []byte, key string) int64 {
	for line := range bytes.Lines(b) {
		f := strings.Fields(string(line))
		if len(f) < 2 || f[0] != key {
			continue
		}
		if n, err := strconv.ParseInt(f[1], 10, 64); err == nil && n >= 0 {
			return n
		}
		return -1
	}
	return -1
}
