package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// ErrNotProven is wrapped by the error of Adopt: the process is not, or not any more, the one that was started.
var ErrNotProven = errors.New("its identity is not proven")

// Adopt takes over a process that an earlier sgtune started on this machine, in no container, with this LogPath and
// these limits for its guard (nil = none): its log is read on, Stop ends its whole group, and its guard hears the
// heartbeat again. Boot id, pid, start ticks, group and marker must be those of id, and the guard must live and have
// decided nothing; else the error wraps ErrNotProven or ErrUnguarded, and nothing was touched but the heartbeat. The Argv of the returned
// process's ID is what the kernel has of it: the caller compares it, for only he knows what is masked. How the process
// ends cannot be known, so its Exit has Known false.
func (l *Local) Adopt(ctx context.Context, id ID, logPath string, limits *GuardLimits) (Process, error) {
	if err := l.prove(ctx, id); err != nil {
		return nil, err
	}
	log, err := filepath.Abs(logPath)
	if err != nil {
		return nil, fmt.Errorf("adopt pid %d: %w", id.PID, err)
	}
	if _, err := os.Stat(log); err != nil {
		return nil, fmt.Errorf("%w: its log is not where it was: %w", ErrNotProven, err)
	}
	var g *guardProcess
	if limits != nil {
		if g, err = l.livingGuard(guardFolder(log), *limits); err != nil {
			return nil, err
		}
	}
	id.Argv = readArgv(id.PID)
	p := &process{host: l, id: id, logPath: log, before: l.counters(), guard: g, done: make(chan struct{})}
	go p.outlast()
	if g != nil {
		go g.outlast()
		go g.hear(p.done)
	}
	return p, nil
}

// prove compares what can be known of a living process with its stored identity.
func (l *Local) prove(ctx context.Context, id ID) error {
	no := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrNotProven, fmt.Sprintf(format, args...))
	}
	switch {
	case id.PID <= 1 || id.StartTicks == 0 || id.BootID == "" || id.Marker == "":
		return no("the identity of the process was not stored in full")
	case id.BootID != l.boot:
		return no("the machine was started anew since then")
	}
	s, err := readStat(id.PID)
	if err != nil || s.gone() {
		return no("pid %d is gone", id.PID)
	}
	env := readEnviron(ctx, id.PID)
	marker, _ := envValue(env, MarkerEnv)
	folder, _ := envValue(env, simulatedEnv)
	switch {
	case s.startTicks != id.StartTicks:
		return no("pid %d was given to another process since then", id.PID)
	case s.pgrp != id.PGID || s.session != id.PGID:
		return no("pid %d is in another process group or session than it was started in", id.PID)
	case marker != id.Marker:
		return no("pid %d does not carry the trial's marker", id.PID)
	case folder != l.simulated:
		return no("pid %d is a process of another host", id.PID)
	}
	return nil
}

// livingGuard is the guard in a folder that an earlier sgtune started, as long as it lives and has decided nothing. The
// heartbeat is touched first: a guard that is about to give the tuner up hears it in time, or has written why not.
func (l *Local) livingGuard(f runFolder, limits GuardLimits) (*guardProcess, error) {
	if !f.has(guardBeat) {
		return nil, fmt.Errorf("%w: none was started", ErrUnguarded)
	}
	if err := TouchHeartbeat(f.path(guardBeat)); err != nil {
		return nil, err
	}
	v, err := f.verdict()
	switch {
	case err != nil:
		return nil, fmt.Errorf("read what the guard decided: %w", err)
	case v != nil:
		return nil, fmt.Errorf("%w: it has ended its watch: %s", ErrUnguarded, v.Detail)
	case !f.kept():
		return nil, fmt.Errorf("%w: it is gone", ErrUnguarded)
	}
	return &guardProcess{folder: f, beat: l.beatEvery(limits), ended: make(chan struct{})}, nil
}

// outlast closes ended once the guard, which is not our child, is gone.
func (g *guardProcess) outlast() {
	defer close(g.ended)
	for g.folder.kept() {
		pause(context.Background(), slowLook)
	}
}

// outlast is reap for a process that is not our child.
func (p *process) outlast() {
	defer close(p.done)
	for {
		if _, ok := alive(p.id, p.host.boot); !ok {
			break
		}
		pause(context.Background(), lastPoll)
	}
	p.exit = Exit{Code: -1, At: p.host.clock.Now()}
	if all, err := scan(); err == nil && len(p.group(all)) == 0 {
		p.groupGone.Store(true)
	}
}

// beatEvery is the real time between two touches of a guard's heartbeat.
func (l *Local) beatEvery(limits GuardLimits) time.Duration {
	if limits.Absence <= 0 {
		return longestBeat
	}
	return max(min(longestBeat, l.clock.real(limits.Absence)/6), 10*time.Millisecond)
}
