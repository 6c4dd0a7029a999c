package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"
)

// GuardOptions say what a Guard watches and when it kills. ID is needed; a limit of 0 is off, but for MinFree.
type GuardOptions struct {
	ID ID // the trial's main process; with StartTicks 0 the one that has the pid now

	MinFree    int64         // bytes that must stay free in the machine and under each cgroup limit; 0 = DefaultGuardLine, < 0 = no watch
	SwapGrowth int64         // bytes of swap that may be taken after the start
	TimeLimit  time.Duration // from the guard's start, host time
	Absence    time.Duration // how long the heartbeat may be silent, host time
	Grace      time.Duration // from SIGTERM to SIGKILL after TimeLimit or Absence; memory has no time for it

	Heartbeat   string // file that the tuner touches with TouchHeartbeat; needed by Absence
	Verdict     string // file of the GuardVerdict, "" = none
	First       string // folder for what a guard that takes over from a dead one must know, "" = none does
	Evidence    string // file of the GuardSamples, one JSON object a line, one a second; "" = none
	MaxEvidence int64  // bytes of that file, 0 = 8 MiB; a full one is thinned to half its density
	GPUs        GPUReader
	Clock       *Clock // nil = real time; the intervals of the looks are in its time, too
}

// defaultEvidence is the size of an evidence file when no other is given.
const defaultEvidence = 8 << 20

// DefaultGuardLine is the line for a machine or container with this many bytes: 5%, at least 1 GiB and at most 4 GiB.
// Eight ranks that fill fresh pages at 2 GB/s each take 250 ms for 4 GiB.
func DefaultGuardLine(total int64) int64 { return min(max(total/20, 1<<30), 4<<30) }

// Guard watches one trial on the machine it runs on, and kills it before the kernel has to choose whom to kill. It
// needs nothing of the tuner but the heartbeat, so it also ends the trial of a tuner that is gone. Make it with NewGuard.
type Guard struct {
	opts   GuardOptions
	clock  guardClock
	memory *memoryWatch
	target guardTarget
	record *guardRecorder

	start     time.Time
	swapStart int64
	beat      time.Time     // modification time of the heartbeat file when last seen
	beatAt    time.Time     // when it last changed, by our clock: the file's own time may be another machine's
	nextLook  time.Time     // of the slow looks: heartbeat, cgroups
	alive     bool          // the main process lived when last seen
	haste     time.Duration // what the verdict may take before a kill for memory, in real time

	usualLine bool // MinFree follows from the memory that there is

	verdict GuardVerdict
	trouble error     // what could not be killed or written
	until   time.Time // end of the grace once the trial was asked to end
}

// guardClock is the part of Clock that a guard needs.
type guardClock interface {
	Now() time.Time
	Sleep(ctx context.Context, d time.Duration) error
}

// guardTarget is the trial as a guard sees it.
type guardTarget interface {
	alive() bool                                 // the main process; cheap
	left(ctx context.Context) (bool, error)      // does anything of the trial live
	terminate() error                            // SIGTERM to the main process alone
	kill(ctx context.Context) error              // SIGKILL to all, until nothing is left or ctx ends
	protect(ctx context.Context, all bool) error // makes the kernel prefer the trial's processes as victims
}

// NewGuard checks the options and finds the process; the error wraps ErrNoProcess when that has ended already. The host
// is the machine this program runs on.
func NewGuard(l *Local, opts GuardOptions) (*Guard, error) {
	if opts.ID.PID <= 1 {
		return nil, fmt.Errorf("guard: %d is no process id of a trial", opts.ID.PID)
	}
	if opts.Absence > 0 && opts.Heartbeat == "" {
		return nil, errors.New("guard: a tuner's absence is noticed by a heartbeat file: name one")
	}
	s, err := readStat(opts.ID.PID)
	if err != nil {
		return nil, fmt.Errorf("guard: %w: pid %d: %w", ErrNoProcess, opts.ID.PID, err)
	}
	if opts.ID.StartTicks == 0 {
		opts.ID.StartTicks = s.startTicks
	}
	if opts.ID.BootID == "" {
		opts.ID.BootID = l.boot
	}
	if s.startTicks != opts.ID.StartTicks || opts.ID.BootID != l.boot {
		return nil, fmt.Errorf("guard: %w: pid %d was given to another", ErrNoProcess, opts.ID.PID)
	}
	if opts.ID.PGID == 0 {
		opts.ID.PGID = s.pgrp
	}
	if own, err := readStat(os.Getpid()); err != nil || own.pgrp == opts.ID.PGID || opts.ID.PGID <= 1 {
		return nil, errors.Join(fmt.Errorf("guard: process group %d is not the trial's own", opts.ID.PGID), err)
	}
	clock := opts.Clock
	if clock == nil {
		clock = NewClock(time.Now(), 1)
	}
	g := newGuard(opts, rootFS, clock, &guardedGroup{process: process{host: l, id: opts.ID}})
	g.record.procs = &procWatch{host: l, id: opts.ID}
	g.memory.main = func() int { return l.containerPID(opts.ID.Marker) }
	return g, nil
}

func newGuard(opts GuardOptions, root fs.FS, clock guardClock, target guardTarget) *Guard {
	memory := &memoryWatch{root: root, pid: opts.ID.PID}
	return &Guard{
		opts: opts, clock: clock, memory: memory, target: target, haste: verdictHaste,
		record: newRecorder(opts, root, clock),
	}
}

// Run watches until nothing of the trial lives, and tells why. It returns early only when ctx ends: then nothing is
// killed and the reason is GuardCancelled. An error means that something could not be killed, or that the
// verdict could not be written; the verdict is right in any case.
func (g *Guard) Run(ctx context.Context) (GuardVerdict, error) {
	if err := g.begin(ctx); err != nil {
		return g.verdict, err
	}
	return g.run(ctx)
}

// run is Run after begin.
func (g *Guard) run(ctx context.Context) (GuardVerdict, error) {
	work, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { g.record.readGPUs(work) })
	done.Go(func() { g.record.run(work) })
	err := g.watch(ctx)
	cancel()
	done.Wait()
	g.verdict.EvidenceProblem = g.record.problem()
	g.verdict.Ended = g.clock.Now()
	if g.opts.Verdict != "" {
		err = errors.Join(err, writeVerdict(g.opts.Verdict, g.verdict))
	}
	return g.verdict, err
}

// begin takes what the rest is compared with. When it has succeeded the guard is fit to watch.
func (g *Guard) begin(ctx context.Context) error {
	g.start = g.clock.Now()
	g.beatAt, g.nextLook = g.start, g.start
	g.alive = true
	g.memory.refresh()
	m, err := g.memory.read(exactly)
	if err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	g.swapStart = m.Swap
	if g.opts.MinFree == 0 {
		g.usualLine = true
		g.drawLine(m)
	}
	g.verdict = GuardVerdict{
		PID: g.opts.ID.PID, Marker: g.opts.ID.Marker, Started: g.start, MinFree: g.opts.MinFree, Before: m,
		Lowest: -1, OOMKillsBefore: g.memory.kills(),
	}
	if err := g.resume(); err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	if g.opts.Heartbeat != "" {
		if g.beat, err = heartbeat(g.opts.Heartbeat); err != nil {
			if err := TouchHeartbeat(g.opts.Heartbeat); err != nil {
				return fmt.Errorf("guard: %w", err)
			}
			g.beat, _ = heartbeat(g.opts.Heartbeat)
		}
	}
	if err := g.target.protect(ctx, true); err != nil {
		g.verdict.ProtectProblem = err.Error() // an ordinary user may not lower its own score: no reason to stop
	}
	return nil
}

// drawLine sets the line that follows from the memory there is. It is drawn again when the limits are read again: a
// container comes later than its guard.
func (g *Guard) drawLine(m GuardMemoryReading) {
	if g.usualLine && m.Total > 0 {
		g.opts.MinFree = DefaultGuardLine(g.memory.size(m.Total))
		g.verdict.MinFree = g.opts.MinFree
	}
}

// TouchHeartbeat says that the tuner lives: it sets the file's modification time and creates the file when it
// is missing. Once an existing file is touched no disk space is needed.
func TouchHeartbeat(path string) error {
	now := time.Now()
	err := os.Chtimes(path, now, now)
	if errors.Is(err, fs.ErrNotExist) {
		err = os.WriteFile(path, nil, 0o600)
	}
	if err != nil {
		return fmt.Errorf("touch heartbeat: %w", err)
	}
	return nil
}

func heartbeat(path string) (time.Time, error) {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}
