package benchmark

import (
	"runtime"
	"sync"
	"syscall"
	"time"
)

// CPUMeter measures this process's CPU against the cores it may use. GOMAXPROCS may change on the way: what
// there was of it is summed up at each call of Read or Sample. It is safe for concurrent use.
type CPUMeter struct {
	mu    sync.Mutex
	last  time.Time
	cores int           // GOMAXPROCS since last
	given time.Duration // sum of cores · time up to last
}

// NewCPUMeter starts one.
func NewCPUMeter() *CPUMeter {
	return &CPUMeter{last: time.Now(), cores: runtime.GOMAXPROCS(0)}
}

// CPUReading is what a process has used and could have used by a time. All of it is real time.
type CPUReading struct {
	At    time.Time
	Used  time.Duration // user and system time of the process since it started
	Given time.Duration // GOMAXPROCS · time since the meter started
}

// Sample notes the present GOMAXPROCS. Whoever changes it often enough to matter calls this often.
func (m *CPUMeter) Sample() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sample()
}

func (m *CPUMeter) sample() {
	now := time.Now()
	m.given += time.Duration(m.cores) * now.Sub(m.last)
	m.last, m.cores = now, runtime.GOMAXPROCS(0)
}

// Read tells where the process is.
func (m *CPUMeter) Read() CPUReading {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sample()
	r := CPUReading{At: m.last, Given: m.given}
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) == nil {
		r.Used = time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return r
}

// ShareSince is the share of its cores that the process used since an earlier reading of the same meter: 1 =
// all of them.
func (r CPUReading) ShareSince(earlier CPUReading) float64 {
	if given := r.Given - earlier.Given; given > 0 {
		return float64(r.Used-earlier.Used) / float64(given)
	}
	return 0
}

// CoresSince is the mean GOMAXPROCS since an earlier reading.
func (r CPUReading) CoresSince(earlier CPUReading) float64 {
	if passed := r.At.Sub(earlier.At); passed > 0 {
		return float64(r.Given-earlier.Given) / float64(passed)
	}
	return 0
}
