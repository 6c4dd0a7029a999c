package trial

import (
	"fmt"
	"strings"

	"sgtune/sglang"
)

// The rules about a server that was ended, or that did not get on.

func stoppedOnPurpose(f *Facts) (Verdict, bool) {
	v := Verdict{Outcome: Aborted, Cause: "operator_signal", Blames: BlameNo, Advice: []string{adviceRerun}}
	term, signalled := f.First[kindSigterm]
	switch f.Ending {
	case EndPerson:
		v.Text = "stopped by a person; the configuration is innocent"
	case EndDeadline:
		v.Cause, v.Advice = "job_time_limit", []string{adviceRerun}
		v.Text = "the study's time was over before this trial was finished; the configuration is innocent"
	case EndVoid:
		v.Cause, v.Text = causeUnknown, "the trial was contaminated: "+f.Reason
	case EndSgtune:
		v.Cause, v.Advice = causeUnknown, []string{adviceReport}
		v.Text = "sgtune could not go on, through no fault of the configuration: " + f.Reason
	case EndOutside, EndDied, EndUnknown:
		signalled = signalled || f.Ending == EndOutside || f.Exit.Signal == 15 || f.Exit.Signal == 2
		if !signalled || f.Exit.Alive {
			return v, false
		}
		v.Phase = sglang.PhaseShutdown
		quote(&v, term)
		v.Text = "the server was told to stop from outside sgtune before the trial was finished; nothing failed"
	default:
		return v, false
	}
	for _, e := range f.Log.Notes {
		if e.Kind == kindChild && e.Values["child_exit_code"] == -15 {
			v.Findings = append(v.Findings, Finding{"misleading_crash_line", "\"crashed with exit code -15\" is how SGLang reports an ordinary SIGTERM"})
			v.Numbers = map[string]float64{"child_exit_code": -15}
			break
		}
	}
	return v, true
}

// limitOfStart: the time limit came while the start was still advancing.
func limitOfStart(f *Facts) (Verdict, bool) {
	over := f.Ending == EndTimeout || f.Ending == EndUnknown && f.Exit.Alive && !f.Log.Ready && f.Timeout > 0 && f.Elapsed >= f.Timeout
	if !over {
		return Verdict{}, false
	}
	v := Verdict{Outcome: StartupTimeout, Cause: causeUnknown, Blames: BlameNo, Advice: []string{adviceReadyTimeout}}
	v.Text = fmt.Sprintf("not ready after %s, and still advancing; raise server.ready_timeout", span(f.Elapsed))
	switch f.Log.Phase {
	case sglang.PhaseWeightLoad:
		v.Cause, v.Advice = "slow_weight_load", []string{adviceReadyTimeout, advicePrewarm}
		shards := f.Last[kindShards]
		quote(&v, shards)
		v.Numbers = shards.Values
		v.Findings = []Finding{{"still_progressing", "the weights were still being read"}}
		if done, all := shards.Values["load_done"], shards.Values["load_total"]; all > 0 {
			v.Text = fmt.Sprintf("%.0f of %.0f weight files were loaded after %s; raise server.ready_timeout or read the files once beforehand", done, all, span(f.Elapsed))
		}
	case sglang.PhaseGraphCapture:
		v.Cause = "slow_graph_capture"
	default:
	}
	return v, true
}

// noProgressRule: no progress and no death.
func noProgressRule(f *Facts) (Verdict, bool) {
	if f.Ending != EndStuck {
		return Verdict{}, false
	}
	v := Verdict{Outcome: Stuck, Cause: "no_progress", Blames: BlamePartly, Advice: []string{adviceRerun}}
	quote(&v, f.Log.LastBatch)
	v.Text = fmt.Sprintf("the server lived but nothing moved for %s", span(f.Silent))
	if _, why, ok := strings.Cut(f.Reason, errStuck.Error()+": "); ok {
		v.Text += ": " + why
	}
	switch {
	case !f.Ready && f.Log.Ready:
		v.Text = fmt.Sprintf("the server says that it is ready and gives no token: nothing moved for %s", span(f.Silent))
	case !f.Ready:
		v.Text = fmt.Sprintf("the server stopped advancing in %s: nothing moved for %s", furthest(f), span(f.Silent))
	}
	return v, true
}

// killedChild: somebody sent SIGKILL to a rank or to all. SGLang kills its own tree after any
// failure, so the main process's own -9 says nothing; a child's, or a counter, does.
func killedChild(f *Facts) (Verdict, bool) {
	if f.Ending != EndDied && f.Ending != EndUnknown || f.Exit.Alive {
		return Verdict{}, false
	}
	child, found := deadChild(f.Log.Fatal)
	known := f.KernelOOM >= 0 || f.CgroupOOM >= 0
	rose := f.KernelOOM > 0 || f.CgroupOOM > 0
	bare := len(f.Log.Fatal) == 0 && (f.Exit.Signal == 9 || f.Exit.OOMKilled)
	if !found && (!bare || !rose && !f.Exit.OOMKilled) {
		return Verdict{}, false
	}
	v := Verdict{Outcome: HostOOM, Cause: "kernel_oom_kill", Blames: BlameYes, Numbers: child.Values, Advice: []string{adviceLowerHicache}}
	v.Phase = furthest(f)
	quote(&v, child)
	switch {
	case rose || f.Exit.OOMKilled:
		oomKill(f, &v)
	case known:
		v.Outcome, v.Cause, v.Blames, v.Advice = Crashed, "silent_exit", BlamePartly, []string{adviceRerun}
		v.Text = "a rank was killed (-9), and not by the kernel for want of memory: its counter did not move"
	case v.Phase == sglang.PhaseHostPool || v.Phase == sglang.PhaseWeightLoad:
		v.Text = fmt.Sprintf("a rank was killed (-9) while %s was taking host memory; most likely the kernel ran out of it", v.Phase)
	default:
		v.Outcome, v.Cause, v.Blames, v.Advice = Unknown, causeUnknown, BlameNo, []string{adviceRerun}
		v.Text = "a rank was killed (-9); the kernel's counter of memory kills cannot be read here, so by whom is not known"
	}
	return v, true
}

// deadChild is the first event that tells of a child killed with -9.
func deadChild(events []sglang.Event) (sglang.Event, bool) {
	for _, e := range events {
		switch e.Kind {
		case kindChild, kindChildExit, kindDiedInit:
			if e.Values["child_exit_code"] == -9 {
				return e, true
			}
		}
	}
	return sglang.Event{}, false
}

// oomKill says which limit killed: the cgroup's, all ranks' host pools together, or the host's.
func oomKill(f *Facts, v *Verdict) {
	total := hostPoolTotal(f)
	switch {
	case f.CgroupOOM > 0:
		v.Cause, v.Advice = "cgroup_limit", []string{adviceContainerRAM, adviceLowerHicache}
		v.Text = "the memory limit of this container or cgroup was reached and the kernel killed a rank"
	case v.Phase == sglang.PhaseHostPool && total > 0 && f.HostRAM > 0 && total*1e9 > float64(f.HostRAM):
		v.Cause = "hicache_oversubscribed"
		v.Text = fmt.Sprintf("the host pools of all ranks together want %.0f GB, the host has %.0f GB, and the kernel killed a rank; --hicache-size is per rank", total, float64(f.HostRAM)/1e9)
	default:
		v.Text = fmt.Sprintf("the host ran out of memory in %s and the kernel killed a rank", v.Phase)
	}
}

// silentDeath: the process is gone and nothing says why.
func silentDeath(f *Facts) (Verdict, bool) {
	if f.Ending != EndDied || f.Exit.Alive || !f.Exit.Known {
		return Verdict{}, false
	}
	v := Verdict{Outcome: Crashed, Cause: "silent_exit", Blames: BlamePartly, Advice: []string{adviceRerun}}
	how := fmt.Sprintf("exit status %d", f.Exit.Code)
	if f.Exit.Signal != 0 {
		how = fmt.Sprintf("signal %d", f.Exit.Signal)
	}
	v.Text = fmt.Sprintf("the server ended in %s with %s and printed no reason", furthest(f), how)
	if f.Exit.Signal == 9 && f.KernelOOM < 0 && f.CgroupOOM < 0 {
		v.Outcome, v.Cause, v.Blames = Unknown, causeUnknown, BlameNo
		v.Text = "the server was killed (-9); the kernel's counter of memory kills cannot be read here, so by whom is not known"
	}
	return v, true
}
