package host

import (
	"bytes"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"
)

// GuardSample is one line of a guard's evidence. Bytes are exact; -1 = not known or none.
type GuardSample struct {
	At     time.Time          `json:"at"` // host time
	Memory GuardMemoryReading `json:"memory"`
	Lowest int64              `json:"lowest"` // least bytes free, of machine and cgroup, since the sample before

	PageCache    int64          `json:"page_cache"`         // Cached of /proc/meminfo
	Refaults     int64          `json:"refaults"`           // file pages read again after they were dropped, since boot: page cache is too small while it rises
	Load         float64        `json:"load"`               // load average of one minute
	BusyCores    float64        `json:"busy_cores"`         // of the machine since the sample before, -1 in the first
	Cores        int            `json:"cores"`              // of the machine, 0 unknown
	Pressure     *GuardPressure `json:"pressure,omitempty"` // nil where the kernel has no /proc/pressure
	OOMKills     int64          `json:"oom_kills"`          // of the machine since boot
	GroupKills   int64          `json:"cgroup_oom_kills"`   // of the trial's cgroup
	OurProcesses int            `json:"processes"`          // that live

	GPUs       []GPU          `json:"gpus,omitempty"`
	GPUAt      time.Time      `json:"gpu_at,omitzero"` // of the GPU reading: a driver may be slow
	GPUNote    string         `json:"gpu_note,omitempty"`
	ForeignGPU []GuardForeign `json:"foreign_gpu,omitempty"` // holders of GPU memory that are not the trial's
	ForeignCPU []GuardForeign `json:"foreign_cpu,omitempty"` // others that took more than half a core

	ForeignMemory []GuardForeign `json:"foreign_memory,omitempty"` // others that took a gigabyte or more since the guard's first look, and how much

	// Since the sample before, -1 unknown. Others are neither the trial nor sgtune nor the kernel.
	OtherCores float64      `json:"other_cores"`      // that all others took together
	Crowd      []GuardCrowd `json:"crowd,omitempty"`  // those of them that are many and small
	Faults     float64      `json:"major_faults"`     // a second: pages that the trial's processes had to read from storage
	OtherDisk  float64      `json:"other_disk_bytes"` // a second: that others read and wrote
}

// GuardForeign is a process that is not the trial's and takes what the trial needs.
type GuardForeign struct {
	PID    int     `json:"pid"`
	Name   string  `json:"name,omitempty"` // "" = not visible from here: another container's, or gone
	GPU    int     `json:"gpu"`            // index, -1 for a user of the CPU
	Memory int64   `json:"memory,omitempty"`
	Cores  float64 `json:"cores,omitempty"`
}

// GuardPressure is the kernel's pressure stall information (avg10, percent of the time).
type GuardPressure struct {
	CPUSome    float64 `json:"cpu_some"`
	MemorySome float64 `json:"memory_some"`
	MemoryFull float64 `json:"memory_full"`
	IOSome     float64 `json:"io_some"`
	IOFull     float64 `json:"io_full"`
}

// readPressure reads /proc/pressure; nil where there is none.
func readPressure(root fs.FS) *GuardPressure {
	p := &GuardPressure{}
	found := false
	for name, to := range map[string][2]*float64{
		"cpu": {&p.CPUSome, nil}, "memory": {&p.MemorySome, &p.MemoryFull}, "io": {&p.IOSome, &p.IOFull},
	} {
		b, err := fs.ReadFile(root, "proc/pressure/"+name)
		if err != nil {
			continue
		}
		for line := range bytes.Lines(b) { // some avg10=0.12 avg60=0.05 avg300=0.01 total=11155
			f := strings.Fields(string(line))
			if len(f) < 2 {
				continue
			}
			target := to[0]
			if f[0] == "full" {
				target = to[1]
			}
			text, ok := strings.CutPrefix(f[1], "avg10=")
			if n, err := strconv.ParseFloat(text, 64); ok && err == nil && target != nil {
				*target, found = n, true
			}
		}
	}
	if !found {
		return nil
	}
	return p
}

// readSystem fills in what /proc says of the machine as a whole.
func (s *GuardSample) readSystem(root fs.FS) {
	s.PageCache, s.Refaults, s.OOMKills, s.Load = -1, -1, -1, -1
	if b, err := fs.ReadFile(root, "proc/meminfo"); err == nil {
		s.PageCache = kilobytes(b, "Cached:")
	}
	if b, err := fs.ReadFile(root, "proc/vmstat"); err == nil {
		s.OOMKills = keyed(b, "oom_kill")
		s.Refaults = keyed(b, "workingset_refault_file")
		if s.Refaults < 0 { // before Linux 5.9
			s.Refaults = keyed(b, "workingset_refault")
		}
	}
	if b, err := fs.ReadFile(root, "proc/loadavg"); err == nil {
		text, _, _ := strings.Cut(string(b), " ")
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			s.Load = n
		}
	}
	s.Pressure = readPressure(root)
}

// coreCount is the number of cores that are switched on, 0 where it cannot be read.
func coreCount(root fs.FS) int {
	b, err := fs.ReadFile(root, "proc/stat")
	if err != nil {
		return 0
	}
	n := 0
	for line := range bytes.Lines(b) {
		if len(line) > 3 && bytes.HasPrefix(line, []byte("cpu")) && line[3] >= '0' && line[3] <= '9' {
			n++
		}
	}
	return n
}

// busyTicks is the time that all cores together were at work since boot, in hundredths of a second: the first line of
// /proc/stat without idle and iowait.
func busyTicks(root fs.FS) int64 {
	return statTicks(root, 1, 2, 3, 6, 7) // user nice system irq softirq; not steal: that is another machine's
}

// join puts a sample and the one before it into one: the figures of the later, the lows and all foreigners of both.
func (s GuardSample) join(before GuardSample) GuardSample {
	if before.Lowest >= 0 && (s.Lowest < 0 || before.Lowest < s.Lowest) {
		s.Lowest = before.Lowest
	}
	s.ForeignGPU = joinForeign(s.ForeignGPU, before.ForeignGPU)
	s.ForeignCPU = joinForeign(s.ForeignCPU, before.ForeignCPU)
	return s
}

// joinForeign keeps at most the 20 of a list that a thinned file may have.
func joinForeign(list, more []GuardForeign) []GuardForeign {
	for _, f := range more {
		if !slices.ContainsFunc(list, func(g GuardForeign) bool { return g.PID == f.PID && g.GPU == f.GPU }) && len(list) < 20 {
			list = append(slices.Clip(list), f)
		}
	}
	return list
}
