package trial

import (
	"context"

	"sgtune/host"
	"sgtune/sglang"
)

// diskMoves is how much a start must read from storage to count as progress: less is somebody writing to a log.
const diskMoves = 8 << 20

// memoryFacts is what the host's memory did while a trial ran, in bytes; -1 = not known.
type memoryFacts struct {
	lowWater int64 // least free memory of any GPU under load
	minRAM   int64 // least MemAvailable
	ownRAM   int64 // largest fall of MemAvailable before the host pool
	before   int64 // MemAvailable before the launch

	kernelBase, cgroupBase int64 // kill counters before the launch
	kernelRise, cgroupRise int64
	total                  int64 // MemTotal
	used                   int64 // memory in use (GPUs, host) when it last counted as progress
	read                   int64 // bytes read from storage when that last counted
}

func newMemoryFacts(before *host.Usage) memoryFacts {
	m := memoryFacts{lowWater: -1, minRAM: -1, ownRAM: -1, before: -1, kernelBase: -1, cgroupBase: -1, kernelRise: -1, cgroupRise: -1, total: -1}
	if before != nil {
		m.before, m.total = before.MemAvailable, before.MemTotal
		m.kernelBase, m.cgroupBase = before.OOMKills, before.CgroupOOMKills
		m.count(*before)
		m.read = before.DiskRead
	}
	return m
}

// count books the kill counters.
func (m *memoryFacts) count(u host.Usage) {
	if m.kernelBase >= 0 && u.OOMKills >= 0 {
		m.kernelRise = max(m.kernelRise, u.OOMKills-m.kernelBase)
	}
	if m.cgroupBase >= 0 && u.CgroupOOMKills >= 0 {
		m.cgroupRise = max(m.cgroupRise, u.CgroupOOMKills-m.cgroupBase)
	}
}

// lowest books the least free GPU memory of a reading.
func (m *memoryFacts) lowest(u host.Usage) {
	for _, g := range u.GPUs {
		if free := g.Total - g.Used; g.Total > 0 && (m.lowWater < 0 || free < m.lowWater) {
			m.lowWater = free
		}
	}
}

// moved reports whether memory in use has changed, or enough has been read from storage, to be progress, and
// remembers it. A start that reads its weights from a cold disk may do that in silence.
func (m *memoryFacts) moved(u host.Usage) bool {
	return m.memoryMoved(u) || m.hasRead(u)
}

// hasRead: the figure adds up the server's processes and falls when one of them ends.
func (m *memoryFacts) hasRead(u host.Usage) bool {
	if u.DiskRead < m.read {
		m.read = u.DiskRead
	}
	if u.DiskRead-m.read < diskMoves {
		return false
	}
	m.read = u.DiskRead
	return true
}

func (m *memoryFacts) memoryMoved(u host.Usage) bool {
	used := u.MemTotal - u.MemAvailable
	for _, g := range u.GPUs {
		used += g.Used
	}
	if change := used - m.used; change > memoryMoves || -change > memoryMoves {
		m.used = used
		return true
	}
	return false
}

// sample reads the host once a second of its time, at most five times a second of ours.
func (w *watch) sample(ctx context.Context) {
	for {
		w.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-w.a.Clock.After(w.a.floor(usagePoll, usagePollMin)):
		}
	}
}

// look takes one reading. A host that cannot be read now is read again later.
func (w *watch) look(ctx context.Context) {
	u, err := w.a.Host.Usage(ctx)
	if err != nil {
		return
	}
	// The log is read after the memory: when it still names no host pool, the reading is from before
	// the pool, however late lines are seen.
	w.drain(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	m := &w.memory
	m.count(u)
	w.health(u)
	if m.moved(u) && !w.underLoad {
		w.progress = w.a.Clock.Now()
	}
	if w.underLoad {
		m.lowest(u)
	}
	if u.MemAvailable < 0 {
		return
	}
	if m.minRAM < 0 || u.MemAvailable < m.minRAM {
		m.minRAM = u.MemAvailable
	}
	if m.before >= 0 && w.beforeHostPool() {
		m.ownRAM = max(m.ownRAM, m.before-u.MemAvailable, 0)
	}
}

// recount reads the kill counters and the GPUs' state once more: a server killed by the kernel, or by its GPU, is
// gone before the next reading.
func (w *watch) recount(ctx context.Context) {
	u, err := w.a.Host.Usage(ctx)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.memory.count(u)
	w.health(u)
}

// beforeHostPool reports whether the log has reached neither the host pool nor readiness; mu is held.
func (w *watch) beforeHostPool() bool {
	facts := w.reader.Facts()
	for _, kind := range []string{kindHostPool, kindFiredUp, kindUvicorn} {
		if _, seen := facts.First[kind]; seen {
			return false
		}
	}
	switch facts.Phase {
	case sglang.PhaseHostPool, sglang.PhaseHTTPStart, sglang.PhaseWarmup, sglang.PhaseReady, sglang.PhasePrefill, sglang.PhaseDecode:
		return false
	default:
		return true
	}
}

// remarks are the watch's own findings.
func (w *watch) remarks() []Finding {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.findings
}

// usage returns the memory facts so far.
func (w *watch) usage() memoryFacts {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.memory
}

// absorb copies what the watch knows into the row.
func (a *attempt) absorb() {
	if a.watch == nil {
		return
	}
	log, _ := a.watch.facts()
	m := a.watch.usage()
	a.t.Memory, a.t.MaxRunning = log.Memory, log.MaxRunning
	a.t.LowWater, a.t.MinRAM, a.t.OwnRAM = m.lowWater, m.minRAM, m.ownRAM
}
