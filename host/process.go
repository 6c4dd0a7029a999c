package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// process is one that this sgtune started, or adopted.
type process struct {
	host    *Local
	id      ID
	cmd     *exec.Cmd // nil for an adopted one, whose parent is gone
	logPath string
	logBase int64 // size of the log before the start: Log's offset 0

	guarding sync.Mutex
	guard    *guardProcess // nil = none; changes with KeepGuarded

	before    counters    // out-of-memory kills before the start
	stopped   atomic.Bool // we sent SIGKILL: its death is no evidence of anything
	groupGone atomic.Bool // the group was empty once, so its number may belong to others now
	done      chan struct{}
	exit      Exit // valid once done is closed
}

// ID is the identity taken at the start.
func (p *process) ID() ID { return p.id }

// Done is closed by the one goroutine that waits for the process. It ends with the process and
// needs no other end: whoever needs it to be over waits for this channel, as Stop does.
func (p *process) Done() <-chan struct{} { return p.done }

// Exit is how it ended, the zero Exit while it lives.
func (p *process) Exit() Exit {
	select {
	case <-p.done:
		return p.exit
	default:
		return Exit{}
	}
}

// Log reads what this process wrote; what the file held before its start is not part of it.
func (p *process) Log(ctx context.Context, offset int64, limit int) ([]byte, error) {
	if p.logPath == "" || limit <= 0 {
		return nil, ctx.Err()
	}
	f, err := os.Open(p.logPath)
	if err != nil {
		return nil, fmt.Errorf("read log of pid %d: %w", p.id.PID, err)
	}
	defer func() { _ = f.Close() }()
	b := make([]byte, limit)
	n, err := f.ReadAt(b, p.logBase+offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read log of pid %d at %d: %w", p.id.PID, offset, err)
	}
	return b[:n], nil
}

// Stop ends the process and everything it started; see Process.
func (p *process) Stop(ctx context.Context, grace time.Duration) error {
	p.host.noteMarked(context.WithoutCancel(ctx), p.id.Marker)
	if grace > 0 && ctx.Err() == nil { // without time to wait there is no point in asking
		p.terminate(ctx, grace)
	}
	p.killGroup()
	if err := end(ctx, p.name(), p.members); err != nil {
		return err
	}
	if err := p.host.clearContainers(ctx, p.id.Marker); err != nil {
		return err
	}
	select { // the status of a dead child is collected within microseconds
	case <-p.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop %s: exit status not collected: %w", p.name(), context.Cause(ctx))
	}
}

// killGroup ends a whole living group in one go, so that no parent has time to report the death of
// its child in the log. What is left of the group of a dead leader, and who left it, is for end.
func (p *process) killGroup() {
	select {
	case <-p.done: // collected: the number is no longer ours for certain
	default:
		p.stopped.Store(true)
		_ = syscall.Kill(-p.id.PGID, syscall.SIGKILL) // fails if there is nobody left, which end finds out
	}
}

// terminate asks the main process alone to end and waits for it, at most grace.
func (p *process) terminate(ctx context.Context, grace time.Duration) {
	select {
	case <-p.done:
		return
	default:
	}
	if signal(p.id.PID, p.id.StartTicks, syscall.SIGTERM) != nil {
		return // it cannot be asked, so it is killed
	}
	t := time.NewTimer(p.host.grace(grace))
	defer t.Stop()
	select {
	case <-p.done:
	case <-ctx.Done():
	case <-t.C:
	}
}

// members lists what lives of the group: same process group, same session, or same marker.
func (p *process) members(ctx context.Context) ([]procStat, error) {
	all, err := scan()
	if err != nil {
		return nil, err
	}
	line := lineage(all)
	var list []procStat
	seen := map[int]bool{}
	for _, s := range p.group(all) {
		if !line[s.pid] {
			list, seen[s.pid] = append(list, s), true
		}
	}
	if p.id.Marker == "" {
		return list, nil
	}
	for _, m := range p.host.marked(ctx, all, p.id.Marker) {
		if !seen[m.pid] {
			list = append(list, m.procStat)
		}
	}
	return list, nil
}

// group lists the living members of the process group and session. The kernel gives no process a
// number that is still in use for a group or session, so the number is ours until the group has
// been empty; from then on it is not looked at again.
func (p *process) group(all map[int]procStat) []procStat {
	if p.groupGone.Load() {
		return nil
	}
	if s, ok := all[p.id.PID]; ok && s.startTicks != p.id.StartTicks {
		p.groupGone.Store(true)
		return nil
	}
	var list []procStat
	for _, s := range all {
		if (s.pgrp == p.id.PGID || s.session == p.id.PGID) && !s.gone() {
			list = append(list, s)
		}
	}
	return list
}

// reap waits for the process, records how it ended and closes done.
func (p *process) reap() {
	defer close(p.done)
	err := p.cmd.Wait()
	e := Exit{Code: -1, At: p.host.clock.Now()}
	var failed *exec.ExitError
	if err == nil || errors.As(err, &failed) {
		status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
		e.Known = ok
		switch {
		case ok && status.Signaled():
			e.Signal = int(status.Signal())
		case ok:
			e.Code = status.ExitStatus()
		}
	}
	e.OOMKilled = !p.stopped.Load() && e.killed() && p.host.counters().rose(p.before)
	p.exit = p.host.containedExit(p.id.Marker, e)
	if all, err := scan(); err == nil && len(p.group(all)) == 0 {
		p.groupGone.Store(true)
	}
}

// killed reports a death by SIGKILL, also one that a shell or SGLang's main process passes on as
// status 128 + 9 after its child was killed.
func (e Exit) killed() bool {
	return e.Signal == int(syscall.SIGKILL) || e.Code == 128+int(syscall.SIGKILL)
}

func (p *process) name() string {
	if p.id.Marker == "" {
		return fmt.Sprintf("process group %d", p.id.PGID)
	}
	return fmt.Sprintf("process group %d (%s=%s)", p.id.PGID, MarkerEnv, p.id.Marker)
}
