package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// Scores of the kernel's OOM killer (/proc/PID/oom_score_adj): with 1000 a process goes before all that have less, with
// -900 after nearly all. Raising is always allowed, lowering needs CAP_SYS_RESOURCE.
const (
	victimScore = 1000
	guardScore  = -900
)

// guardedGroup is a trial's processes: its group, its session and all with its marker.
type guardedGroup struct {
	process
	known map[int]uint64 // start ticks of those that were seen in the group
}

func (t *guardedGroup) alive() bool {
	_, ok := alive(t.id, t.host.boot)
	return ok
}

func (t *guardedGroup) list(ctx context.Context) ([]procStat, error) { return t.seen(ctx, true) }

// seen is members, or without strays the group alone, but for a group whose number may be others' by now: it is ours as long as its leader
// or somebody whom we saw in it is there, a zombie too.
func (t *guardedGroup) seen(ctx context.Context, strays bool) ([]procStat, error) {
	all, err := scan()
	if err != nil {
		return nil, err
	}
	held := false
	for pid, ticks := range t.known {
		if s, ok := all[pid]; ok && s.startTicks == ticks && (s.pgrp == t.id.PGID || s.session == t.id.PGID) {
			held = true
		}
	}
	if s, ok := all[t.id.PID]; ok && s.startTicks == t.id.StartTicks {
		held = true
	}
	if !held {
		t.groupGone.Store(true)
	}
	t.known = map[int]uint64{}
	group := t.group(all)
	for _, s := range group {
		t.known[s.pid] = s.startTicks
	}
	if !strays {
		return group, nil
	}
	return t.members(ctx)
}

func (t *guardedGroup) left(ctx context.Context) (bool, error) {
	list, err := t.list(ctx)
	return len(list) > 0 || t.host.holdsContainer(t.id.Marker), err
}

func (t *guardedGroup) terminate() error { return signal(t.id.PID, t.id.StartTicks, syscall.SIGTERM) }

func (t *guardedGroup) kill(ctx context.Context) error {
	if t.alive() { // the number is ours for certain: the whole group in one go, without a look at anything else
		_ = syscall.Kill(-t.id.PGID, syscall.SIGKILL)
	}
	return errors.Join(end(ctx, t.name(), t.list), t.host.clearContainers(ctx, t.id.Marker))
}

// protect marks the trial's processes as the kernel's first victims. What they start later inherits it, so the first
// call (all) reaches nearly everything; the later ones only look at the group, which is cheap.
func (t *guardedGroup) protect(ctx context.Context, all bool) error {
	var problems []error
	if all {
		if err := setScore(os.Getpid(), guardScore); err != nil {
			problems = append(problems, fmt.Errorf("keep the guard from the kernel's OOM killer: %w", err))
		}
	}
	list, err := t.seen(ctx, all)
	if err != nil {
		return errors.Join(append(problems, err)...)
	}
	for _, s := range list {
		if err := setScore(s.pid, victimScore); err != nil && t.alive() && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
			problems = append(problems, fmt.Errorf("offer process %d to the kernel's OOM killer: %w", s.pid, err))
		}
	}
	return errors.Join(problems...)
}

// setScore sets a score that is not set yet.
func setScore(pid, score int) error {
	path, want := procPath(pid, "oom_score_adj"), strconv.Itoa(score)
	if b, err := os.ReadFile(path); err != nil || string(bytes.TrimSpace(b)) == want {
		return err
	}
	return os.WriteFile(path, []byte(want), 0)
}
