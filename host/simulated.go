package host

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// claimsEnv tells sim-server, and fakenvml, the folder of the simulated host's claims.
const claimsEnv = "FAKENVML_CLAIMS"

// The machine of the founding case, which a Simulated host is by default.
const (
	simGPUs        = 8
	simGPUTotalMiB = 97871 // as a 96 GB card reports
	simGPUIdleMiB  = 600   // in use on an idle card
	simRAMTotal    = 449_000_000_000
	simRAMSystem   = 9_000_000_000 // what the system itself takes
)

// SimulatedOptions are the settings of a Simulated host. Only Dir is needed.
type SimulatedOptions struct {
	Dir               string // folder of the claims and the lease; two hosts with one Dir are one host
	GPUs              int    // 0 = 8
	GPUTotalMiB       int64  // per GPU, 0 = 97,871
	RAMTotalBytes     int64  // 0 = 449e9
	RAMAvailableBytes int64  // when idle, 0 = RAMTotalBytes − 9e9
	Clock             *Clock // nil = real time
	BootIDFile        string // as LocalOptions.BootIDFile
}

// Simulated is a pretended GPU machine. Its processes are real local ones (sim-server); its GPUs
// and its memory are what those processes claim in files in the folder Dir, which they find in the
// environment variable FAKENVML_CLAIMS:
//
//	GPU-PID    "MIB [live|sticky|ghost]": memory of one GPU (the same format as fakenvml's).
//	           live (default) ends with the process; sticky stays, and stays listed, until the
//	           file is removed; ghost stays too and is used but not listed
//	ram-PID    "MIB": host memory, ends with the process
//	oom_kills  how often the pretended kernel killed for lack of memory, a decimal number
//
// Write a file under another name first and rename it, so that no reader sees half of it.
type Simulated struct {
	*Local
	opts SimulatedOptions
}

var _ Host = (*Simulated)(nil)

// NewSimulated returns the simulated host that lives in opts.Dir.
func NewSimulated(opts SimulatedOptions) *Simulated {
	if dir, err := filepath.Abs(opts.Dir); err == nil { // fails only without a working directory
		opts.Dir = dir
	}
	if opts.GPUs == 0 {
		opts.GPUs = simGPUs
	}
	if opts.GPUTotalMiB == 0 {
		opts.GPUTotalMiB = simGPUTotalMiB
	}
	if opts.RAMTotalBytes == 0 {
		opts.RAMTotalBytes = simRAMTotal
	}
	if opts.RAMAvailableBytes == 0 {
		opts.RAMAvailableBytes = max(0, opts.RAMTotalBytes-simRAMSystem)
	}
	s := &Simulated{opts: opts, Local: NewLocal(LocalOptions{
		StateDir: opts.Dir, LeaseName: "simulated", Clock: opts.Clock, BootIDFile: opts.BootIDFile,
	})}
	s.simulated = opts.Dir
	s.env = map[string]string{claimsEnv: opts.Dir, simulatedEnv: opts.Dir}
	s.counters = func() counters { return counters{kernel: s.oomKills(), cgroup: -1} }
	return s
}

// Start starts c as a local process that knows the folder of this host; see Host.
func (s *Simulated) Start(ctx context.Context, c Command) (Process, error) {
	if err := os.MkdirAll(s.opts.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("start on the simulated host: %w", err)
	}
	return s.Local.Start(ctx, c)
}

// Usage adds up the claims; see Host.
func (s *Simulated) Usage(ctx context.Context) (Usage, error) {
	marked, err := s.everyMarked(ctx)
	if err != nil {
		return Usage{}, err
	}
	u := Usage{
		GPUs:     make([]GPU, s.opts.GPUs),
		MemTotal: s.opts.RAMTotalBytes, MemAvailable: s.opts.RAMAvailableBytes,
		CgroupHeadroom: -1, OOMKills: s.oomKills(), CgroupOOMKills: -1, Processes: len(marked), DiskRead: diskRead(marked),
		BootID: s.boot,
	}
	for i := range u.GPUs {
		u.GPUs[i] = GPU{
			Index: i, UUID: fmt.Sprintf("GPU-51300000-0000-0000-0000-%012d", i), Name: fmt.Sprintf("SIMULATED %.0f GB GPU", float64(s.opts.GPUTotalMiB)/1024),
			Total: s.opts.GPUTotalMiB << 20, Used: simGPUIdleMiB << 20,
		}
	}
	claims, err := s.claims()
	if err != nil {
		return Usage{}, err
	}
	for _, c := range claims {
		switch {
		case c.gpu == ramClaim:
			u.MemAvailable = max(0, u.MemAvailable-c.bytes)
		case c.gpu < len(u.GPUs):
			u.GPUs[c.gpu].hold(c)
		}
	}
	u.At = s.clock.Now()
	return u, context.Cause(ctx)
}

func (g *GPU) hold(c claim) {
	g.Used = min(g.Total, g.Used+c.bytes)
	if c.mode != "ghost" {
		g.Processes = append(g.Processes, GPUProcess{PID: c.pid, Used: c.bytes, Name: commandName(c.pid)})
	}
}

// ramClaim is the claim.gpu of host memory.
const ramClaim = -1

// claim is one file of the folder.
type claim struct {
	gpu   int // ramClaim for host memory
	pid   int
	bytes int64
	mode  string // live, sticky, ghost
}

// claims reads the folder. A live claim whose process is gone holds nothing; its file is removed, so
// that a later process with the same pid does not inherit it.
func (s *Simulated) claims() ([]claim, error) {
	files, err := os.ReadDir(s.opts.Dir)
	if os.IsNotExist(err) {
		return nil, nil // nothing was started yet
	}
	if err != nil {
		return nil, fmt.Errorf("read simulated memory: %w", err)
	}
	var list []claim
	for _, file := range files {
		path := filepath.Join(s.opts.Dir, file.Name())
		gpu, pid, ok := parseClaimName(file.Name())
		if !ok {
			continue
		}
		b, err := os.ReadFile(path)
		if err != nil {
			continue // removed since the folder was listed
		}
		c, ok := parseClaim(string(b))
		if !ok {
			continue
		}
		c.gpu, c.pid = gpu, pid
		if stat, err := readStat(pid); c.mode == "live" && (err != nil || stat.gone()) {
			_ = os.Remove(path) // if it stays, the next reading tries again
			continue
		}
		list = append(list, c)
	}
	slices.SortStableFunc(list, func(a, b claim) int { return a.pid - b.pid })
	return list, nil
}

// parseClaimName reads "GPU-PID" and "ram-PID"; any other name is not a claim.
func parseClaimName(name string) (gpu, pid int, ok bool) {
	left, right, ok := strings.Cut(name, "-")
	if !ok {
		return 0, 0, false
	}
	pid, err := strconv.Atoi(right)
	if err != nil || pid <= 0 {
		return 0, 0, false
	}
	if left == "ram" {
		return ramClaim, pid, true
	}
	gpu, err = strconv.Atoi(left)
	return gpu, pid, err == nil && gpu >= 0
}

// parseClaim reads "MIB [live|sticky|ghost]".
func parseClaim(text string) (claim, bool) {
	f := strings.Fields(text)
	if len(f) == 0 {
		return claim{}, false
	}
	mib, err := strconv.ParseFloat(f[0], 64)
	if err != nil || !(mib >= 0 && mib < math.MaxInt32) {
		return claim{}, false
	}
	c := claim{bytes: int64(mib * (1 << 20)), mode: "live"}
	if len(f) > 1 {
		c.mode = f[1]
	}
	return c, c.mode == "live" || c.mode == "sticky" || c.mode == "ghost"
}

// oomKills reads the pretended kernel's counter; no file is no kill.
func (s *Simulated) oomKills() int64 {
	b, err := os.ReadFile(filepath.Join(s.opts.Dir, "oom_kills"))
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
