package host

import (
	"fmt"
	"slices"
	"strings"
)

// A measurement counts as disturbed from so many samples on; a sample is a second. A stranger on a GPU is unmistakable.
// One on the CPU matters only where there was none to spare.
const (
	gpuStrangerSamples = 2
	cpuStrangerSamples = 5
	cpuStrangerShare   = 0.2 // of the samples
	cpuShort           = 0.9 // of all cores were busy
	cpuStrangerCores   = 0.1 // of all cores were the strangers'
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
		if s.Cores <= 0 || s.BusyCores < cpuShort*float64(s.Cores) {
			continue
		}
		taken := 0.0
		for _, f := range s.ForeignCPU {
			taken += f.Cores
		}
		if taken < cpuStrangerCores*float64(s.Cores) {
			continue
		}
		for _, f := range s.ForeignCPU {
			names = addName(names, fmt.Sprintf("pid %d (%s)", f.PID, f.Name))
		}
		seen++
		sum += taken
		cores = s.Cores
	}
	if seen < cpuStrangerSamples || float64(seen) < cpuStrangerShare*float64(len(samples)) {
		return ""
	}
	return fmt.Sprintf("all of the %d cores were busy and other processes took %.1f of them in %d of %d samples: %s",
		cores, sum/float64(seen), seen, len(samples), strings.Join(names, ", "))
}

// addName adds a name once; a few are enough.
func addName(names []string, name string) []string {
	if slices.Contains(names, name) || len(names) == 5 {
		return names
	}
	return append(names, name)
}
