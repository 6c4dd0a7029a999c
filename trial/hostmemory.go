package trial

import (
	"fmt"
	"strings"

	"sgtune/sglang"
)

// Verdicts about host memory.

// reserveGB is what SGLang keeps back of host memory before a host pool: 10 GiB in GB.
const reserveGB = 10.74

func hostRefused(f *Facts, e sglang.Event) Verdict {
	v := Verdict{Outcome: HostOOM, Phase: sglang.PhaseHostPool, Cause: "hicache_check_refused", Blames: BlameYes, Advice: []string{adviceLowerHicache}}
	v.Text = "SGLang refused the host pool: there is not enough host memory; lower hicache-size"
	want, ok := e.Values["host_request_gb_per_rank"]
	if !ok {
		return v
	}
	free := e.Values["host_free_gb"]
	v.Text = fmt.Sprintf("SGLang refused a host pool of %.2f GB per rank with %.2f GB free; lower hicache-size below that", want, free)
	if want < free { // versions that print what they keep back as free
		v.Text = fmt.Sprintf("SGLang refused a host pool of %.2f GB per rank with %.2f GB free, because it keeps %.2f GB of that back; lower hicache-size below %.0f",
			want, free, reserveGB, free-reserveGB)
	}
	if n := ranks(f); n > 1 {
		v.Text += fmt.Sprintf(" (hicache-size is per rank: %d ranks want %.0f GB in all)", n, want*float64(n))
	}
	return v
}

// hostPinning: host memory was there and could not be pinned.
func hostPinning(f *Facts, e sglang.Event) Verdict {
	v := Verdict{Outcome: HostOOM, Phase: sglang.PhaseHostPool, Cause: "hicache_check_refused", Blames: BlameYes, Advice: []string{adviceLowerHicache, adviceContainerRAM}}
	if f.oversubscribed() {
		v.Cause = "hicache_oversubscribed"
	}
	v.Text = "the host pool could not be pinned: " + e.Text + "; lower hicache-size, or raise the limit of locked memory (ulimit -l, docker --ulimit memlock=-1)"
	return v
}

// hostAlloc: malloc or mmap said no.
func hostAlloc(f *Facts, e sglang.Event) Verdict {
	v := Verdict{Outcome: HostOOM, Phase: e.Phase, Blames: BlameYes}
	if f.ready() && !f.hicache() {
		v.Phase = furthest(f)
	}
	nameHostLimit(f, &v)
	v.Text = "the host had no memory left for an allocation in " + string(v.Phase) + " (" + e.Text + "); " + hostRemedy(f)
	return v
}

func kernelOOM(f *Facts, e sglang.Event) Verdict {
	v := Verdict{Outcome: HostOOM, Phase: e.Phase, Blames: BlameYes}
	if v.Phase == sglang.PhaseShutdown {
		v.Phase = furthest(f)
	}
	nameHostLimit(f, &v)
	if child, killed := deadChild(f.Log.Fatal); killed {
		quote(&v, child)
		v.Numbers, v.FailingRanks = map[string]float64{"child_exit_code": -9}, deadRank(f, child)
	} else if told, seen := f.killLine(); seen {
		quote(&v, told)
	}
	switch where := strings.ToLower(e.Words["where"]); {
	case strings.Contains(where, "cgroup"), strings.Contains(where, "memcg"), strings.Contains(where, "job memory"), strings.Contains(where, "oomkilled"),
		v.Cause != "hicache_oversubscribed" && (strings.Contains(e.Text, "slurmstepd") || strings.Contains(e.Text, "srun: ")):
		cgroupLimit(f, &v) // Slurm says the same of its own limit and of the host's end
	}
	return v
}

// killLine is the kernel's line that names the process it killed.
func (f *Facts) killLine() (sglang.Event, bool) {
	for _, e := range f.Log.Fatal {
		if e.Kind == kindKernelOOM && strings.Contains(e.Text, "Killed process") {
			return e, true
		}
	}
	return sglang.Event{}, false
}

// memoryKill reports whether a counter, or how little memory was left, says that the kernel killed for memory.
func (f *Facts) memoryKill() bool {
	return f.KernelOOM > 0 || f.CgroupOOM > 0 || f.Exit.OOMKilled || f.KernelOOM < 0 && f.CgroupOOM < 0 && f.starved()
}

// starved reports whether next to no host memory was left.
func (f *Facts) starved() bool {
	if f.Context == nil {
		return false
	}
	const leastGB, leastShare = 2.0, 0.01
	for _, left := range []*float64{f.Context.AvailableMinGB, f.Context.AvailableLastGB} {
		if left != nil && (*left < leastGB || *left < leastShare*float64(f.HostRAM)/1e9) {
			return true
		}
	}
	return false
}

// killedChild: somebody sent SIGKILL to a rank or to all. SGLang kills its own tree after any
// failure, so the main process's own -9 says nothing; a child's, or a counter, does.
func killedChild(f *Facts) (Verdict, bool) {
	if f.finished() || f.lives() || f.Ending != EndDied && f.Ending != EndUnknown {
		return Verdict{}, false
	}
	child, found := deadChild(f.Log.Fatal)
	bare := causeless(f) && !f.otherDeath() && (f.Exit.Signal == 9 || f.Exit.OOMKilled || f.childrenDead())
	stopped := f.First[kindSigterm].Line > 0 || f.endedBySigterm()
	if !found && (!bare || stopped && !f.memoryKill()) {
		return Verdict{}, false
	}
	v := Verdict{Outcome: HostOOM, Blames: BlameYes, Numbers: copyNumbers(child.Values), Phase: furthest(f)}
	delete(v.Numbers, "pid")
	delete(v.Numbers, "child_rank")
	quote(&v, child)
	v.FailingRanks = deadRank(f, child)
	if v.Line == 0 {
		quote(&v, lastEvent(f))
	}
	who := "the server"
	if found {
		who = "a rank"
	}
	switch known := f.KernelOOM >= 0 || f.CgroupOOM >= 0; {
	case f.memoryKill():
		nameHostLimit(f, &v)
	case known:
		v.Outcome, v.Cause, v.Blames, v.Advice = Crashed, "silent_exit", BlamePartly, []string{adviceRerun}
		v.Text = who + " was killed (-9), and not by the kernel for want of memory: its counter did not move; run it once more"
	case v.Phase == sglang.PhaseHostPool || v.Phase == sglang.PhaseWeightLoad:
		nameHostLimit(f, &v)
		if v.Cause != "hicache_oversubscribed" {
			v.Text = fmt.Sprintf("%s was killed (-9) while %s was taking host memory; most likely the kernel ran out of it: %s", who, v.Phase, hostRemedy(f))
		}
	default:
		v.Outcome, v.Cause, v.Blames, v.Advice = Unknown, causeUnknown, BlameNo, []string{adviceRerun}
		v.Text = who + " was killed (-9); the kernel's counter of memory kills cannot be read here, so by whom is not known; look at dmesg"
	}
	return v, true
}

// otherDeath reports whether a child is known to have ended in another way than by SIGKILL.
func (f *Facts) otherDeath() bool {
	for _, e := range f.Log.Fatal {
		if code, told := e.Values["child_exit_code"]; told && weightOf(e) == consequence && code != -sigkill && code != 0 {
			return true
		}
	}
	return false
}

// causeless reports whether no fatal line says more than that processes ended.
func causeless(f *Facts) bool {
	for _, e := range f.Log.Fatal {
		if weightOf(e) > symptom && !survived(f, e) {
			return false
		}
	}
	return true
}

// deadChild is the first event that tells of a child killed with -9.
func deadChild(events []sglang.Event) (sglang.Event, bool) {
	for _, e := range events {
		if weightOf(e) == consequence && e.Values["child_exit_code"] == -sigkill {
			return e, true
		}
	}
	return sglang.Event{}, false
}

// Signals that a child may die of.
const (
	sigbus  = 7
	sigkill = 9
	sigterm = 15
)

// crashedChild: a rank ended by itself, of a signal or with a status, and nothing in the log says why.
func crashedChild(f *Facts) (Verdict, bool) {
	if f.finished() || f.lives() && !f.ready() || f.Ending != EndDied && f.Ending != EndUnknown || !causeless(f) {
		return Verdict{}, false
	}
	for _, e := range f.Log.Fatal {
		code, told := e.Values["child_exit_code"]
		if weightOf(e) != consequence || !told || code == 0 || code == -sigterm || survived(f, e) {
			continue
		}
		if code == -sigbus {
			v := smallShm(f, e)
			v.Phase, v.Numbers, v.FailingRanks = furthest(f), map[string]float64{"child_exit_code": code}, deadRank(f, e)
			quote(&v, e)
			return v, true
		}
		v := Verdict{Outcome: Crashed, Cause: "silent_exit", Blames: BlamePartly, Advice: []string{adviceRerun, adviceReport}, Phase: furthest(f)}
		v.Numbers, v.FailingRanks = map[string]float64{"child_exit_code": code}, deadRank(f, e)
		quote(&v, e)
		v.Text = fmt.Sprintf("a rank ended with exit code %.0f in %s and printed no reason; run it once more, and read the kernel's log before blaming the configuration", code, v.Phase)
		return v, true
	}
	return Verdict{}, false
}

// nameHostLimit says which limit killed: the cgroup's, all ranks' host pools together, or the host's.
func nameHostLimit(f *Facts, v *Verdict) {
	total := hostPoolTotal(f)
	inPool := v.Phase == sglang.PhaseHostPool
	switch {
	case f.CgroupOOM > 0, f.Exit.OOMKilled, inPool && f.cgroupLimit() > 0 && total > f.cgroupLimit():
		cgroupLimit(f, v)
	case inPool && f.oversubscribed():
		v.Cause, v.Advice = "hicache_oversubscribed", []string{adviceLowerHicache}
		v.Text = fmt.Sprintf("the host pools of all ranks together want %.0f GB (%d x %.0f)", total, ranks(f), f.Log.Memory.HostPoolGB)
		if f.HostRAM > 0 {
			v.Text += fmt.Sprintf(", the host has %.0f GB", float64(f.HostRAM)/1e9)
		}
		v.Text += ", and the kernel killed a rank; --hicache-size is per rank: lower it"
	default:
		v.Cause = "kernel_oom_kill"
		v.Advice = []string{adviceContainerRAM, adviceSmallerOrMore}
		if f.hicache() {
			v.Advice = []string{adviceLowerHicache, adviceNoHicache}
		}
		v.Text = fmt.Sprintf("the host ran out of memory in %s and the kernel killed a rank; %s", v.Phase, hostRemedy(f))
	}
}

func cgroupLimit(f *Facts, v *Verdict) {
	v.Cause, v.Advice = "cgroup_limit", []string{adviceContainerRAM}
	limit := "the memory limit"
	if gb := f.cgroupLimit(); gb > 0 {
		limit = fmt.Sprintf("the limit of %.0f GB", gb)
	}
	v.Text = limit + " of this container, job or cgroup was reached and the kernel killed a rank; raise that limit"
	if f.hicache() {
		v.Advice = append(v.Advice, adviceLowerHicache)
		v.Text += " or lower hicache-size"
	}
}

func (f *Facts) cgroupLimit() float64 {
	if f.Context == nil || f.Context.CgroupLimitGB == nil {
		return 0
	}
	return *f.Context.CgroupLimitGB
}

// oversubscribed reports whether the host pools of all ranks together were more than the host has to give,
// while each alone was not refused.
func (f *Facts) oversubscribed() bool {
	total := hostPoolTotal(f)
	if total == 0 || ranks(f) < 2 {
		return total > 0 && f.HostRAM > 0 && total*1e9 > float64(f.HostRAM)
	}
	return f.HostRAM > 0 && (total+reserveGB)*1e9 > float64(f.HostRAM)
}

// hicache reports whether the hierarchical cache was on.
func (f *Facts) hicache() bool {
	if f.Log.Memory.HostPoolGB > 0 {
		return true
	}
	args := f.First[kindServerArgs]
	on, _ := f.Flags["enable-hierarchical-cache"].(bool)
	return on || args.Words["enable_hierarchical_cache"] == "True" || strings.Contains(args.Text, "enable_hierarchical_cache=True")
}

func hostRemedy(f *Facts) string {
	if f.hicache() {
		return "lower hicache-size (it is per rank) or switch the hierarchical cache off"
	}
	return "give the host or container more memory, or look what else takes it"
}
