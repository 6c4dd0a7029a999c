package host

import (
	"cmp"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// GuardCrowd is many processes of one name that are not the trial's, none of which took half a core.
type GuardCrowd struct {
	Name      string  `json:"name"`
	Processes int     `json:"processes"`
	Cores     float64 `json:"cores"` // of all of them together
}

// side says whose the work of a process is.
type side int

const (
	sideOther  side = iota
	sideTrial       // of the guarded server
	sideOwn         // sgtune's: the tuner, the load generator, the guard, and the link on which they are reached
	sideSystem      // the kernel's threads, and what the guard was started from
)

// labour is what a process has done since its start.
type labour struct {
	side        side
	name        string
	parent      int
	ticks       int64 // of CPU
	childTicks  int64 // of children that it has waited for
	faults      int64 // pages that had to be read from storage
	childFaults int64
	storage     int64 // bytes read from and written to storage, -1 unknown; of the trial's alone
}

// machineLook is all processes at one moment, and what the machine has done since its start.
type machineLook struct {
	processes map[procKey]labour
	busy      int64 // ticks of all processes, -1 unknown
	storage   int64 // bytes read from and written to storage, -1 unknown
}

const (
	mostCrowds  = 3    // named in one sample
	leastCrowd  = 0.05 // cores
	pagedKBytes = 1024 // unit of pgpgin and pgpgout
)

// share is how the machine's work was divided between two looks, per second.
type share struct {
	others  float64 // cores, -1 unknown
	crowd   []GuardCrowd
	faults  float64 // of the trial's processes, -1 unknown
	storage float64 // bytes by others, -1 unknown
}

// since compares a look with the one before. What others did is the machine's work without that of the trial, sgtune and
// the kernel: so are counted those too short-lived to be seen, and those whom nobody here may see.
func (now machineLook) since(before machineLook, seconds float64) share {
	s := share{others: -1, faults: -1, storage: -1}
	if before.processes == nil || seconds <= 0 {
		return s
	}
	s.crowd = crowds(before.processes, now.processes, seconds)
	if orphaned(before.processes, now.processes) {
		return s
	}
	was, is := sums(before.processes), sums(now.processes)
	known := int64(0) // ticks that are not others'
	for key, l := range now.processes {
		if old, seen := before.processes[key]; seen && (l.side == sideOwn || l.side == sideSystem) {
			known += l.ticks - old.ticks
			if l.side == sideOwn {
				known += l.childTicks - old.childTicks
			}
		}
	}
	trial := is.ticks - was.ticks
	if trial < 0 || is.faults < was.faults {
		return s
	}
	s.faults = float64(is.faults-was.faults) / seconds
	if now.busy >= 0 && before.busy >= 0 {
		s.others = float64(max(0, now.busy-before.busy-trial-known)) / ticksASecond / seconds
	}
	if now.storage >= 0 && before.storage >= 0 && was.storage >= 0 && is.storage >= was.storage {
		s.storage = float64(max(0, now.storage-before.storage-(is.storage-was.storage))) / seconds
	}
	return s
}

// sums adds up what the trial's processes have done, with the children they have waited for. A child that ends between
// two looks stays in the sum through its parent.
func sums(processes map[procKey]labour) labour {
	var all labour
	for _, l := range processes {
		if l.side != sideTrial {
			continue
		}
		all.ticks += l.ticks + l.childTicks
		all.faults += l.faults + l.childFaults
		if l.storage < 0 || all.storage < 0 {
			all.storage = -1
		} else {
			all.storage += l.storage
		}
	}
	return all
}

// orphaned reports whether a process of the trial has ended that no other one of the trial has waited for: then its work
// is missing in the sum.
func orphaned(before, now map[procKey]labour) bool {
	living := map[int]bool{}
	for key, l := range now {
		if l.side == sideTrial {
			living[key.pid] = true
		}
	}
	for key, l := range before {
		if _, there := now[key]; l.side == sideTrial && !there && !living[l.parent] {
			return true
		}
	}
	return false
}

// crowds adds up by name the others that took too little to be named one by one, the busiest names first.
func crowds(before, now map[procKey]labour, seconds float64) []GuardCrowd {
	byName := map[string]GuardCrowd{}
	for key, l := range now {
		old, seen := before[key]
		cores := float64(l.ticks-old.ticks) / ticksASecond / seconds
		if !seen || l.side != sideOther || cores <= 0 || cores >= bigForeign {
			continue
		}
		c := byName[l.name]
		byName[l.name] = GuardCrowd{Name: l.name, Processes: c.Processes + 1, Cores: c.Cores + cores}
	}
	list := slices.SortedFunc(maps.Values(byName), func(a, b GuardCrowd) int {
		return cmp.Or(cmp.Compare(b.Cores, a.Cores), cmp.Compare(a.Name, b.Name))
	})
	list = slices.DeleteFunc(list, func(c GuardCrowd) bool { return c.Cores < leastCrowd })
	return list[:min(len(list), mostCrowds)]
}

// processTicks is the time that all cores together were at work for processes since boot, in hundredths of a second, -1
// unknown: user, nice and system of the first line of /proc/stat. Interrupts are nobody's.
func processTicks(root fs.FS) int64 {
	return statTicks(root, 1, 2, 3)
}

// statTicks adds up fields of the first line of /proc/stat.
func statTicks(root fs.FS, fields ...int) int64 {
	b, err := fs.ReadFile(root, "proc/stat")
	if err != nil {
		return -1
	}
	line, _, _ := strings.Cut(string(b), "\n")
	f := strings.Fields(line)
	if len(f) < 9 || f[0] != "cpu" {
		return -1
	}
	var sum int64
	for _, i := range fields {
		n, err := strconv.ParseInt(f[i], 10, 64)
		if err != nil {
			return -1
		}
		sum += n
	}
	return sum
}

// storageBytes is what the machine has read from and written to storage since boot, -1 unknown.
func storageBytes(root fs.FS) int64 {
	b, err := fs.ReadFile(root, "proc/vmstat")
	if err != nil {
		return -1
	}
	in, out := keyed(b, "pgpgin"), keyed(b, "pgpgout")
	if in < 0 || out < 0 {
		return -1
	}
	return (in + out) * pagedKBytes
}

// processStorage is what a process has read from and written to storage, -1 unknown.
func processStorage(pid int) int64 {
	b, err := os.ReadFile(procPath(pid, "io"))
	if err != nil {
		return -1
	}
	read, written := keyed(b, "read_bytes:"), keyed(b, "write_bytes:")
	if read < 0 || written < 0 {
		return -1
	}
	return read + written
}
