package benchmark

import (
	"runtime"
	"syscall"
	"time"
)

// cpuReading is this process's CPU time at a real time.
type cpuReading struct {
	at   time.Time
	used time.Duration
}

func readCPU() cpuReading {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return cpuReading{at: time.Now()}
	}
	return cpuReading{at: time.Now(), used: time.Duration(u.Utime.Nano() + u.Stime.Nano())}
}

// cpuShare is the share of its cores this process used between two readings: 1 = all of them.
func cpuShare(from, to cpuReading) float64 {
	passed := to.at.Sub(from.at)
	if passed <= 0 {
		return 0
	}
	return float64(to.used-from.used) / float64(passed) / float64(runtime.GOMAXPROCS(0))
}
