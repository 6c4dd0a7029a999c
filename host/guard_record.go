package host

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"
)

// guardRecorder takes the samples beside the watch, which must never wait for a driver, a disk or a long list of processes.
type guardRecorder struct {
	file  *evidenceFile // nil = none wanted
	root  fs.FS
	clock guardClock
	gpus  GPUReader
	procs *procWatch // nil = none is looked at
	pid   int
	busy  int64
	busyT time.Time

	mu      sync.Mutex // for what follows
	lowest  int64      // since the last sample
	reading []GPU
	note    string
	readAt  time.Time
	failed  error
}

func newRecorder(opts GuardOptions, root fs.FS, clock guardClock) *guardRecorder {
	r := &guardRecorder{root: root, clock: clock, gpus: opts.GPUs, pid: opts.ID.PID, lowest: -1, busy: -1}
	if opts.Evidence != "" {
		limit := opts.MaxEvidence
		if limit <= 0 {
			limit = defaultEvidence
		}
		r.file = &evidenceFile{path: opts.Evidence, limit: limit}
	}
	return r
}

// saw is told of every look.
func (r *guardRecorder) saw(m GuardMemoryReading) {
	free, _ := m.free()
	if free < 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lowest < 0 || free < r.lowest {
		r.lowest = free
	}
}

// readGPUs reads the GPUs each second, or as fast as their driver answers.
func (r *guardRecorder) readGPUs(ctx context.Context) {
	if r.gpus == nil || r.file == nil {
		return
	}
	for {
		gpus, note := r.gpus(ctx)
		if ctx.Err() != nil {
			return
		}
		r.mu.Lock()
		r.reading, r.note, r.readAt = gpus, note, r.clock.Now()
		r.mu.Unlock()
		if r.clock.Sleep(ctx, slowLook) != nil {
			return
		}
	}
}

// run writes a sample each second until ctx ends, and then a last one.
func (r *guardRecorder) run(ctx context.Context) {
	if r.file == nil {
		return
	}
	memory := &memoryWatch{root: r.root, pid: r.pid}
	for {
		err := r.file.add(r.sample(context.WithoutCancel(ctx), memory))
		over := ctx.Err() != nil
		if over {
			err = errors.Join(err, r.file.close())
		}
		if err != nil {
			r.mu.Lock()
			if r.failed == nil {
				r.failed = err
			}
			r.mu.Unlock()
		}
		if over {
			return
		}
		_ = r.clock.Sleep(ctx, slowLook) // that ctx ended is seen above, after a last sample
	}
}

func (r *guardRecorder) sample(ctx context.Context, memory *memoryWatch) GuardSample {
	now := r.clock.Now()
	s := GuardSample{At: now, BusyCores: -1, Cores: coreCount(r.root)}
	memory.refresh()
	s.Memory, _ = memory.read(exactly) // all unknown where it cannot be read
	s.GroupKills = memory.kills()
	s.readSystem(r.root)
	busy := busyTicks(r.root)
	if seconds := now.Sub(r.busyT).Seconds(); busy >= 0 && r.busy >= 0 && seconds > 0 {
		s.BusyCores = float64(busy-r.busy) / ticksASecond / seconds
	}
	r.busy, r.busyT = busy, now
	if r.procs != nil {
		r.procs.look(ctx, now, &s)
	}
	r.mu.Lock()
	s.Lowest, r.lowest = r.lowest, -1
	s.GPUs, s.GPUNote, s.GPUAt = r.reading, r.note, r.readAt
	r.mu.Unlock()
	if r.procs != nil {
		s.ForeignGPU = r.procs.holders(s.GPUs)
	}
	return s
}

// problem is why the evidence is not whole, "" when it is.
func (r *guardRecorder) problem() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		return ""
	}
	return r.failed.Error()
}
