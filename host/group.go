package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Poll intervals of end: short first, because most processes are gone within milliseconds.
const (
	firstPoll = 2 * time.Millisecond
	lastPoll  = 200 * time.Millisecond
)

// end sends SIGKILL to what members lists until nothing is listed any more or ctx ends; then the
// error names what is left. The signal is sent at least once, also when ctx is over already.
//
// Nothing twice in a row counts as nothing: a process that forks and dies while /proc is being
// listed could hide its child from one listing. Whoever was sent the signal is waited for by its own entry: a
// dying process has no environment any more, and so no marker, a while before it is gone.
func end(ctx context.Context, what string, members func(context.Context) ([]procStat, error)) error {
	empty, dying := 0, map[int]procStat{}
	for wait := firstPoll; ; wait = min(2*wait, lastPoll) {
		alive, err := members(context.WithoutCancel(ctx))
		if err != nil {
			return fmt.Errorf("stop %s: %w", what, err)
		}
		alive = withDying(alive, dying)
		if len(alive) == 0 {
			if empty++; empty == 2 {
				return nil
			}
			continue
		}
		empty = 0
		var refused error
		for _, s := range alive {
			refused = errors.Join(refused, signal(s.pid, s.startTicks, syscall.SIGKILL))
		}
		if !pause(ctx, wait) {
			return stillAlive(ctx, what, alive, refused)
		}
	}
}

// withDying adds those that were listed before and are not gone yet, and remembers all of them.
func withDying(alive []procStat, dying map[int]procStat) []procStat {
	for _, s := range alive {
		delete(dying, s.pid)
	}
	for pid, was := range dying {
		if s, err := readStat(pid); err != nil || s.startTicks != was.startTicks || s.gone() {
			delete(dying, pid)
			continue
		}
		alive = append(alive, was)
	}
	for _, s := range alive {
		dying[s.pid] = s
	}
	return alive
}

func stillAlive(ctx context.Context, what string, alive []procStat, refused error) error {
	slices.SortFunc(alive, func(a, b procStat) int { return cmp.Compare(a.pid, b.pid) })
	names := make([]string, len(alive))
	for i, s := range alive {
		names[i] = s.String()
	}
	err := fmt.Errorf("stop %s: still alive after SIGKILL: %s: %w", what, strings.Join(names, ", "), context.Cause(ctx))
	return errors.Join(err, refused)
}

// signal sends sig to the process that has this pid and start time. A process that is gone, or
// whose pid now belongs to another one, is left alone without an error.
func signal(pid int, startTicks uint64, sig syscall.Signal) error {
	// The descriptor pins the process first, then its start time is checked: whatever happens to
	// the pid afterwards, the signal cannot reach a stranger.
	fd, pinned := unix.PidfdOpen(pid, 0)
	if pinned == nil {
		defer func() { _ = unix.Close(fd) }()
	} else if errors.Is(pinned, unix.ESRCH) {
		return nil
	}
	s, err := readStat(pid)
	if err != nil || s.startTicks != startTicks {
		return nil // unreadable means it has ended, which is what the caller wants
	}
	if pinned == nil {
		err = unix.PidfdSendSignal(fd, sig, nil, 0)
	} else { // a kernel before 5.3
		err = unix.Kill(pid, sig)
	}
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("send %v to pid %d: %w", sig, pid, err)
	}
	return nil
}

// alive returns the process that id names, if it still is that process and not gone.
func alive(id ID, boot string) (procStat, bool) {
	s, err := readStat(id.PID)
	ok := err == nil && id.BootID == boot && s.startTicks == id.StartTicks && !s.gone()
	return s, ok
}
