package trial

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"sgtune/host"
)

// failureLooks is how far back before its failure a trial is looked at for strangers on its GPUs.
const failureLooks = time.Minute

// memoryLooks is how far from the guard's decision its samples tell who had the memory.
const memoryLooks = 5 * time.Second

// contaminated is the void mark of a trial during which somebody else used what it needs, by the guard's samples: a
// level that was measured beside others, or a failure for which the configuration would be blamed with a stranger on
// its GPUs. "" for none, and where that is not known.
func (a *attempt) contaminated(v Verdict) string {
	if a.guarded == nil || a.baseline == nil || a.sleptSince(a.awake) { // the guard's clock stood still while ours was put right
		return ""
	}
	all := a.guardSamples()
	if a.t.State == Failed {
		if v.Blames == BlameNo {
			return ""
		}
		end := a.launched.Add(a.reachedAfter)
		if who := host.GPUStrangers(between(all, end.Add(-failureLooks), end), a.baseline.GPUs); who != "" {
			return "before it failed " + who
		}
		if who := host.MemoryStranger(between(all, end.Add(-memoryLooks), end.Add(memoryLooks)), *a.guarded); who != "" {
			return "before the guard had to end it " + who
		}
		return ""
	}
	for _, level := range a.t.Levels {
		samples := between(all, level.StartedAt, level.EndedAt)
		who := host.GPUStrangers(samples, a.baseline.GPUs)
		if who == "" {
			who = host.CPUStrangers(samples)
		}
		if who == "" {
			who = host.CacheStrangers(samples)
		}
		if who != "" {
			return fmt.Sprintf("while %d clients were measured %s", level.Concurrency, who)
		}
	}
	return ""
}

// guardSamples are what the guard sampled, with times by our clock: the guard's may be that of another machine, so they
// are counted from its first look.
func (a *attempt) guardSamples() []host.GuardSample {
	b, err := os.ReadFile(a.guardEvidence())
	if err != nil {
		return nil // readGuard has said so
	}
	var list []host.GuardSample
	for line := range bytes.Lines(b) {
		var s host.GuardSample
		if json.Unmarshal(line, &s) != nil {
			continue // cut off by a crash
		}
		if !a.watchedFrom.IsZero() { // an adopted server's guard is on this machine, and has its clock
			s.At = a.watchedFrom.Add(s.At.Sub(a.guarded.Started))
		}
		list = append(list, s)
	}
	return list
}

func between(all []host.GuardSample, from, to time.Time) []host.GuardSample {
	var list []host.GuardSample
	for _, s := range all {
		if !s.At.Before(from) && !s.At.After(to) {
			list = append(list, s)
		}
	}
	return list
}
