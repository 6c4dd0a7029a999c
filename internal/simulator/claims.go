package simulator

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// claims tells the rest of the simulated machine what this server holds, in fakenvml's format: one file
// GPU-PID per rank with "MIB mode", ram-PID with MiB of host memory, oom_kills with the kernel's
// counter. PID is the scheduler child, so memory is held exactly as long as that process lives. Without
// FAKENVML_CLAIMS nothing is written.
type claims struct {
	dir  string
	pid  int
	mode string
	gpu  []int // MiB last written for each rank
	ram  int
	at   time.Time // of the last change of gpu
}

func openClaims(pid, ranks int, f *Faults) *claims {
	c := &claims{dir: os.Getenv("FAKENVML_CLAIMS"), pid: pid, mode: "live", gpu: make([]int, ranks)}
	switch {
	case f.Sticky:
		c.mode = "sticky"
	case f.Ghost:
		c.mode = "ghost"
	}
	return c
}

// setGPU books the free memory of the smallest rank; steps below 8 MiB are not worth a file.
func (c *claims) setGPU(p *Profile, b *Budget, freeGiB float64) {
	if c.dir == "" {
		return
	}
	c.at = time.Now()
	for rank := range c.gpu {
		mib := p.GPUTotalMiB - int(math.Round((freeGiB+b.SpreadGiB[rank])*1024))
		if d := mib - c.gpu[rank]; d > -8 && d < 8 {
			continue
		}
		c.gpu[rank] = mib
		c.write(fmt.Sprintf("%d-%d", rank, c.pid), fmt.Sprintf("%d %s", mib, c.mode))
	}
}

// stale tells whether a progress bar's reading is worth writing: not more than 40 a second.
func (c *claims) stale() bool { return time.Since(c.at) > 25*time.Millisecond }

// setRAM books host memory, bytes.
func (c *claims) setRAM(bytes float64) {
	c.ram = int(bytes / (1 << 20))
	c.write("ram-"+strconv.Itoa(c.pid), strconv.Itoa(c.ram))
}

// oomKill raises the kernel's counter.
func (c *claims) oomKill() {
	if c.dir == "" {
		return
	}
	n := 0
	if b, err := os.ReadFile(filepath.Join(c.dir, "oom_kills")); err == nil {
		n, _ = strconv.Atoi(strings.TrimSpace(string(b)))
	}
	c.write("oom_kills", strconv.Itoa(n+1))
}

// clear removes the files of a process that ended, except what a fault keeps held.
func (c *claims) clear() {
	if c.dir == "" {
		return
	}
	_ = os.Remove(filepath.Join(c.dir, "ram-"+strconv.Itoa(c.pid)))
	if c.mode != "live" {
		return
	}
	for rank := range c.gpu {
		_ = os.Remove(filepath.Join(c.dir, fmt.Sprintf("%d-%d", rank, c.pid)))
	}
}

// othersRAM is the host memory that living processes other than ours claim, bytes.
func (c *claims) othersRAM() float64 {
	if c.dir == "" {
		return 0
	}
	files, _ := filepath.Glob(filepath.Join(c.dir, "ram-*"))
	total := 0
	for _, f := range files {
		pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(f), "ram-"))
		if err != nil || pid == c.pid || !alive(pid) {
			continue
		}
		if b, err := os.ReadFile(f); err == nil {
			mib, _ := strconv.Atoi(strings.TrimSpace(string(b)))
			total += mib
		}
	}
	return float64(total) * (1 << 20)
}

// write replaces a file in one step: a reader never sees half of it. A full disk only loses the reading.
func (c *claims) write(name, text string) {
	if c.dir == "" {
		return
	}
	tmp := filepath.Join(c.dir, "."+name+".tmp")
	if os.WriteFile(tmp, []byte(text+"\n"), 0o644) == nil {
		_ = os.Rename(tmp, filepath.Join(c.dir, name))
	}
}

// alive tells whether a process exists and is not a zombie.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	after := string(b[strings.LastIndexByte(string(b), ')')+1:])
	return !strings.HasPrefix(strings.TrimSpace(after), "Z")
}
