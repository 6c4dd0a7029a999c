package host

import (
	"fmt"
	"slices"
	"strings"
)

// A measurement counts as disturbed from so many samples on; a sample is a second. A stranger on a GPU is unmistakable.
// One on the CPU matters only where there was none to spare, one on the disks only where the trial's own pages were
// dropped for its sake. Shares of strangers that are not named one by one are differences of large figures, so they count
// from a higher one on.
const (
	gpuStrangerSamples = 2
	strangerSamples    = 5
	strangerShare      = 0.2 // of the samples
	cpuShort           = 0.9 // of all cores were busy
	cpuStrangerCores   = 0.1 // of all cores were the strangers'
	cpuCrowdCores      = 0.15
	cacheFaults        = 100  // pages of the trial a second that were read again
	cacheDisk          = 50e6 // bytes a second that others read and wrote
)

// GPUStrangers says who else used the GPUs of a trial while the samples were taken, "" when nobody did. Who was there
// before the launch is no news. A process that cannot be named may be the trial's own under another number, as in a
// container; so may all be where none of the listed is the trial's: then nothing is said.
func GPUStrangers(samples []GuardSample, before []GPU) string {
	known := map[int]bool{}
	for _, g := range before {
		for _, p := range g.Processes {
			known[p.PID] = true
		}
	}
	var names []string
	seen := 0
	for _, s := range samples {
		found := false
		for _, f := range s.ForeignGPU {
			if f.Name == "" || known[f.PID] || !s.oursOnGPUs() {
				continue
			}
			found = true
			names = addName(names, fmt.Sprintf("pid %d (%s) on GPU %d", f.PID, f.Name, f.GPU))
		}
		if found {
			seen++
		}
	}
	if seen < gpuStrangerSamples {
		return ""
	}
	return fmt.Sprintf("another process used the GPUs in %d of %d samples: %s", seen, len(samples), strings.Join(names, ", "))
}

// oursOnGPUs reports whether the driver lists a process of the trial.
func (s GuardSample) oursOnGPUs() bool {
	for _, g := range s.GPUs {
		for _, p := range g.Processes {
			if !slices.ContainsFunc(s.ForeignGPU, func(f GuardForeign) bool { return f.PID == p.PID }) {
				return true
			}
		}
	}
	return false
}

// CPUStrangers says who else used the CPUs while the samples were taken and nearly all of them were busy, "" when
// nobody did for long enough.
func CPUStrangers(samples []GuardSample) string {
	var names []string
	seen, sum, cores := 0, 0.0, 0
	for _, s := range samples {
		taken := s.strangersCores()
		if taken == 0 {
			continue
		}
		for _, f := range s.ForeignCPU {
			names = addName(names, fmt.Sprintf("pid %d (%s)", f.PID, f.Name))
		}
		for _, c := range s.Crowd {
			if c.Processes > 1 && c.Cores >= taken/10 {
				names = addName(names, fmt.Sprintf("many named %s", c.Name))
			}
		}
		seen++
		sum += taken
		cores = s.Cores
	}
	if !lasting(seen, len(samples)) {
		return ""
	}
	if names == nil {
		names = []string{"none of them had half a core"}
	}
	return fmt.Sprintf("all of the %d cores were busy and other processes took %.1f of them in %d of %d samples: %s",
		cores, sum/float64(seen), seen, len(samples), strings.Join(names, ", "))
}

// strangersCores is what others took of cores of which there were none to spare, 0 when that was too little to matter.
func (s GuardSample) strangersCores() float64 {
	if s.Cores <= 0 || s.BusyCores < cpuShort*float64(s.Cores) {
		return 0
	}
	named := 0.0
	for _, f := range s.ForeignCPU {
		named += f.Cores
	}
	switch {
	case s.OtherCores > named && s.OtherCores >= cpuCrowdCores*float64(s.Cores):
		return s.OtherCores
	case named >= cpuStrangerCores*float64(s.Cores):
		return named
	}
	return 0
}

// CacheStrangers says that others used the disks so much that pages of the trial were dropped from memory and had to be
// read again while the samples were taken, "" when they did not for long enough.
func CacheStrangers(samples []GuardSample) string {
	seen, faults, disk := 0, 0.0, 0.0
	for _, s := range samples {
		if s.Faults >= cacheFaults && s.OtherDisk >= cacheDisk {
			seen, faults, disk = seen+1, faults+s.Faults, disk+s.OtherDisk
		}
	}
	if !lasting(seen, len(samples)) {
		return ""
	}
	return fmt.Sprintf("page cache was short in %d of %d samples: the server had to read %.0f pages a second again while other processes moved %.0f MB/s to and from the disks",
		seen, len(samples), faults/float64(seen), disk/float64(seen)/1e6)
}

// MemoryStranger names the process of somebody else that took half or more of the memory that the trial could have had
// before its guard ended it, "" when there was none. What several took together is not added up: they may share it.
func MemoryStranger(samples []GuardSample, v GuardVerdict) string {
	free, _ := v.Before.free()
	room := free - v.MinFree
	if v.Reason != GuardMemory || room <= 0 {
		return ""
	}
	for i := len(samples) - 1; i >= 0; i-- {
		if list := samples[i].ForeignMemory; len(list) > 0 && list[0].Memory >= room/2 {
			return fmt.Sprintf("pid %d (%s) took %.1f of the %.1f GB of memory that were free", list[0].PID, list[0].Name, float64(list[0].Memory)/1e9, float64(free)/1e9)
		}
	}
	return ""
}

// lasting reports whether something was seen in enough of the samples.
func lasting(seen, samples int) bool {
	return seen >= strangerSamples && float64(seen) >= strangerShare*float64(samples)
}

// addName adds a name once; a few are enough.
func addName(names []string, name string) []string {
	if slices.Contains(names, name) || len(names) == 5 {
		return names
	}
	return append(names, name)
}
