package host

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"slices"
	"strconv"
	"time"
)

const (
	bigForeign    = 0.5 // cores
	mostForeign   = 10  // listed in one sample
	ticksASecond  = 100 // USER_HZ of every Linux
	strayInterval = 5 * time.Second
	rememberOurs  = time.Minute
)

// procWatch tells the trial's processes from others, once a second.
type procWatch struct {
	host *Local
	id   ID

	ours   map[int]time.Time // when each of ours was last seen: the GPU reading may be older than it
	ticks  map[procKey]int64 // CPU time at the last look
	last   time.Time
	strays time.Time // when the environments were last read
	stray  map[procKey]bool
}

type procKey struct {
	pid   int
	start uint64
}

// look lists the foreign users of CPU, biggest first, and counts ours.
func (w *procWatch) look(ctx context.Context, now time.Time) (foreign []GuardForeign, ours int) {
	all, err := scan()
	if err != nil {
		return nil, -1
	}
	if w.ours == nil {
		w.ours = map[int]time.Time{}
	}
	if now.Sub(w.strays) >= strayInterval && w.id.Marker != "" { // reading every environment costs most of a sample
		w.strays, w.stray = now, map[procKey]bool{}
		for _, c := range w.host.marked(ctx, all, w.id.Marker) {
			w.stray[procKey{c.pid, c.startTicks}] = true
		}
	}
	self := executable(os.Getpid())
	line := lineage(all)
	ticks := map[procKey]int64{}
	seconds := now.Sub(w.last).Seconds()
	for pid, s := range all {
		key := procKey{pid, s.startTicks}
		if s.pgrp == w.id.PGID || s.session == w.id.PGID || w.stray[key] {
			w.ours[pid] = now
			if !s.gone() {
				ours++
			}
			continue
		}
		if s.flags&kernelThread != 0 || line[pid] {
			continue
		}
		used := cpuTicks(pid)
		before, known := w.ticks[key]
		if ticks[key] = used; !known || w.last.IsZero() || seconds <= 0 {
			continue
		}
		cores := float64(used-before) / ticksASecond / seconds
		if cores >= bigForeign && executable(pid) != self { // the load generator is this very program
			foreign = append(foreign, GuardForeign{PID: pid, Name: s.comm, GPU: -1, Cores: cores})
		}
	}
	for pid, at := range w.ours {
		if now.Sub(at) > rememberOurs {
			delete(w.ours, pid)
		}
	}
	w.ticks, w.last = ticks, now
	slices.SortFunc(foreign, func(a, b GuardForeign) int { return cmp.Or(cmp.Compare(b.Cores, a.Cores), cmp.Compare(a.PID, b.PID)) })
	return foreign[:min(len(foreign), mostForeign)], ours
}

// holders lists the holders of GPU memory that are none of ours.
func (w *procWatch) holders(gpus []GPU) []GuardForeign {
	var list []GuardForeign
	for _, g := range gpus {
		for _, p := range g.Processes {
			if _, own := w.ours[p.PID]; !own && len(list) < mostForeign {
				list = append(list, GuardForeign{PID: p.PID, Name: p.Name, GPU: g.Index, Memory: p.Used})
			}
		}
	}
	return list
}

func executable(pid int) string {
	path, err := os.Readlink(procPath(pid, "exe"))
	if err != nil {
		return "" // not readable for us, so not our program
	}
	return path
}

// cpuTicks is the CPU time of a process (fields 14 and 15 of /proc/PID/stat), 0 when it is gone.
func cpuTicks(pid int) int64 {
	b, err := os.ReadFile(procPath(pid, "stat"))
	if err != nil {
		return 0
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < 13 {
		return 0
	}
	user, err1 := strconv.ParseInt(string(f[11]), 10, 64)
	system, err2 := strconv.ParseInt(string(f[12]), 10, 64)
	if err1 != nil || err2 != nil {
		return 0
	}
	return user + system
}
