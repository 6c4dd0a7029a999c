package host

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	bigForeign    = 0.5 // cores
	bigMemory     = 1e9 // bytes
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
	before machineLook       // the last one
	last   time.Time
	strays time.Time // when the environments were last read
	stray  map[procKey]bool
	had    map[procKey]int64 // bytes of memory of those that were there at the first look
}

type procKey struct {
	pid   int
	start uint64
}

// look fills in who took the machine's CPUs and storage since the last look: others that took half a core or more,
// biggest first, and how much the rest had.
func (w *procWatch) look(ctx context.Context, now time.Time, s *GuardSample) {
	s.OtherCores, s.Faults, s.OtherDisk, s.OurProcesses = -1, -1, -1, -1
	all, err := scan()
	if err != nil {
		return
	}
	is := machineLook{processes: make(map[procKey]labour, len(all)), busy: processTicks(rootFS), storage: storageBytes(rootFS)}
	w.findStrays(ctx, now, all)
	seconds := now.Sub(w.last).Seconds()
	side := w.sides(all)
	s.OurProcesses = 0
	for pid, p := range all {
		key := procKey{pid, p.startTicks}
		old, known := w.before.processes[key]
		l := labour{
			side: side(p), name: p.comm, parent: p.ppid, ticks: p.ticks, childTicks: p.childTicks, faults: p.faults, childFaults: p.childFaults,
		}
		if l.side == sideTrial {
			w.ours[pid] = now
			l.storage = processStorage(pid)
			if !p.gone() {
				s.OurProcesses++
			}
		}
		is.processes[key] = l
		cores := float64(l.ticks-old.ticks) / ticksASecond / seconds
		if known && seconds > 0 && l.side == sideOther && cores >= bigForeign {
			s.ForeignCPU = append(s.ForeignCPU, GuardForeign{PID: pid, Name: p.comm, GPU: -1, Cores: cores})
		}
	}
	s.ForeignMemory = w.grown(all, is)
	for pid, at := range w.ours {
		if now.Sub(at) > rememberOurs {
			delete(w.ours, pid)
		}
	}
	part := is.since(w.before, seconds)
	s.OtherCores, s.Crowd, s.Faults, s.OtherDisk = part.others, part.crowd, part.faults, part.storage
	w.before, w.last = is, now
	slices.SortFunc(s.ForeignCPU, func(a, b GuardForeign) int { return cmp.Or(cmp.Compare(b.Cores, a.Cores), cmp.Compare(a.PID, b.PID)) })
	s.ForeignCPU = s.ForeignCPU[:min(len(s.ForeignCPU), mostForeign)]
}

// grown lists the others that have taken much memory since the first look, the biggest first.
func (w *procWatch) grown(all map[int]procStat, now machineLook) []GuardForeign {
	first := w.had == nil
	if first {
		w.had = map[procKey]int64{}
	}
	var list []GuardForeign
	for pid, p := range all {
		key, has := procKey{pid, p.startTicks}, p.resident*int64(os.Getpagesize())
		if first {
			w.had[key] = has
		}
		if more := has - w.had[key]; more >= bigMemory && now.processes[key].side == sideOther {
			list = append(list, GuardForeign{PID: pid, Name: p.comm, GPU: -1, Memory: more})
		}
	}
	slices.SortFunc(list, func(a, b GuardForeign) int { return cmp.Or(cmp.Compare(b.Memory, a.Memory), cmp.Compare(a.PID, b.PID)) })
	return list[:min(len(list), mostForeign)]
}

// findStrays finds the trial's processes outside its group now and then: reading every environment costs most of a sample.
func (w *procWatch) findStrays(ctx context.Context, now time.Time, all map[int]procStat) {
	if w.ours == nil {
		w.ours = map[int]time.Time{}
	}
	if now.Sub(w.strays) < strayInterval || w.id.Marker == "" {
		return
	}
	w.strays, w.stray = now, map[procKey]bool{}
	for _, c := range w.host.marked(ctx, all, w.id.Marker) {
		w.stray[procKey{c.pid, c.startTicks}] = true
	}
}

// sides tells whose each of the processes is. What runs in the trial's container is the trial's, also where nobody here
// may read its environment.
func (w *procWatch) sides(all map[int]procStat) func(procStat) side {
	line, self := lineage(all), executable(os.Getpid())
	box := 0
	if w.host != nil {
		box = w.host.containerPID(w.id.Marker)
	}
	within := func(s procStat) bool { // of the trial's container
		for n := 0; box > 0 && s.pid > 1 && n < len(all); n++ {
			if s.pid == box {
				return true
			}
			s = all[s.ppid]
		}
		return false
	}
	return func(s procStat) side {
		key := procKey{s.pid, s.startTicks}
		switch {
		case s.pgrp == w.id.PGID || s.session == w.id.PGID || w.stray[key] || within(s):
			return sideTrial
		case s.flags&kernelThread != 0 || line[s.pid]:
			return sideSystem
		case strings.HasPrefix(s.comm, "sshd") || w.before.processes[key].side == sideOwn:
			return sideOwn
		case s.ticks != w.before.processes[key].ticks && executable(s.pid) == self: // the load generator is this very program
			return sideOwn
		}
		return sideOther
	}
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
