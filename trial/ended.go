package trial

import (
	"fmt"
	"strings"

	"sgtune/sglang"
)

// The rules about a server that was ended, or that did not get on.

func stoppedOnPurpose(f *Facts) (Verdict, bool) {
	v := Verdict{Outcome: Aborted, Cause: "operator_signal", Blames: BlameNo, Advice: []string{adviceRerun}}
	switch f.Ending {
	case EndPerson:
		v.Text = "stopped by a person; the configuration is innocent"
	case EndDeadline:
		v = jobTimeLimit(f)
	case EndVoid:
		v.Cause, v.Text = causeUnknown, "the trial was contaminated: "+f.Reason
	case EndSgtune:
		v.Cause, v.Advice = causeUnknown, []string{adviceReport}
		v.Text = "sgtune could not go on, through no fault of the configuration: " + f.Reason
	case EndOutside, EndDied, EndUnknown:
		if limit, seen := f.First[kindJobLimit]; seen && !f.lives() {
			v = jobTimeLimit(f)
			quote(&v, limit)
			break
		}
		if !f.signalled() || f.lives() {
			return v, false
		}
		quoteStop(f, &v)
		v.Text = "the server was told to stop from outside sgtune before the trial was finished"
		if !f.ready() {
			v.Text += fmt.Sprintf(" (it was still starting, in %s)", furthest(f))
		}
		v.Text += "; nothing failed: run the same again"
	default:
		return v, false
	}
	for _, e := range f.Log.Notes {
		if (e.Kind == kindChild || e.Kind == kindChildExit) && e.Values["child_exit_code"] == -15 {
			v.Findings = append(v.Findings, Finding{"misleading_crash_line", "\"crashed with exit code -15\" is how SGLang reports an ordinary SIGTERM"})
			v.Numbers = map[string]float64{"child_exit_code": -15}
			break
		}
	}
	return v, true
}

// stops are lines about a stop that was asked for, the most telling first.
var stops = []string{kindSigterm, kindGraceful, kindJobCancelled, kindTerminated, kindUvicornDown}

// signalled reports whether the server was told to stop.
func (f *Facts) signalled() bool {
	if f.Ending == EndOutside || f.Exit.Signal == 15 || f.Exit.Signal == 2 || f.Exit.Signal == 1 {
		return true
	}
	for _, kind := range stops {
		if _, seen := f.First[kind]; seen {
			return true
		}
	}
	return f.endedBySigterm() && f.gone()
}

// endedBySigterm reports whether a child died of SIGTERM.
func (f *Facts) endedBySigterm() bool {
	for _, e := range f.Log.Notes {
		if e.Values["child_exit_code"] == -15 {
			return true
		}
	}
	return false
}

// quoteStop quotes the line that tells of the stop, else the last line before it. Being stopped is a phase
// of its own, also for a server that had no handler yet and died where it was.
func quoteStop(f *Facts, v *Verdict) {
	v.Phase = sglang.PhaseShutdown
	for _, kind := range stops {
		if e, seen := f.First[kind]; seen {
			quote(v, e)
			return
		}
	}
	for _, e := range f.Log.Notes {
		if e.Values["child_exit_code"] == -15 {
			quote(v, e)
			return
		}
	}
	quote(v, lastEvent(f))
}

func jobTimeLimit(f *Facts) Verdict {
	v := Verdict{Outcome: Aborted, Cause: "job_time_limit", Blames: BlameNo, Advice: []string{adviceJobTime, adviceRerun}}
	if f.Context == nil { // sgtune's own study
		v.Advice = []string{adviceRerun}
		v.Text = "the study's time was over before this trial was finished; the configuration is innocent"
		return v
	}
	quoteStop(f, &v)
	if told, seen := f.First[kindJobLimit]; seen {
		quote(&v, told)
	}
	v.Text = fmt.Sprintf("the job's time limit ended the server, which had come to %s; nothing failed: ask for more time and run the same again", furthest(f))
	return v
}

// endedByMonitor: whoever stopped the server did so because it took it for dead.
func endedByMonitor(f *Facts) (Verdict, bool) {
	if f.Ending != EndOutside || !f.blamedByMonitor() {
		return Verdict{}, false
	}
	if v, ok := noRoute(f); ok {
		return v, true
	}
	return wrongMonitor(f)
}

// silentDeath: the process is gone and nothing says why.
func silentDeath(f *Facts) (Verdict, bool) {
	if f.finished() || f.Exit.Alive && !f.childrenDead() || !f.Exit.Known && !f.Exit.Alive && (!f.Dead || f.KernelOOM < 0 && f.CgroupOOM < 0) {
		return Verdict{}, false
	}
	if f.Ending != EndDied && f.Ending != EndUnknown || f.Log.Lines == 0 && f.Context != nil {
		return Verdict{}, false
	}
	v := Verdict{Outcome: Crashed, Cause: "silent_exit", Blames: BlamePartly, Advice: []string{adviceRerun}}
	quote(&v, lastEvent(f))
	how := fmt.Sprintf(" with exit status %d", f.Exit.Code)
	switch {
	case f.Exit.Signal != 0:
		how = fmt.Sprintf(" of signal %d", f.Exit.Signal)
	case !f.Exit.Known:
		how = ""
	}
	v.Text = fmt.Sprintf("the server ended in %s%s and printed no reason; run it once more, and read the kernel's log before blaming the configuration", furthest(f), how)
	if f.Exit.Signal == 9 && f.KernelOOM < 0 && f.CgroupOOM < 0 {
		v.Outcome, v.Cause, v.Blames = Unknown, causeUnknown, BlameNo
		v.Text = "the server was killed (-9); the kernel's counter of memory kills cannot be read here, so by whom is not known"
	}
	return v, true
}

// timeLimits are words of whoever ended a job because its time was over.
var timeLimits = []string{"time limit", "time_limit", "timelimit", "walltime", "wall time", "wall clock", "time is over", "deadline"}

// ends tells, by the words of who stopped a server, what kind of end that was: the job's time, sgtune
// after all was done, or anything else from outside.
func endOfStop(who string) Ending {
	who = strings.ToLower(who)
	for _, sign := range timeLimits {
		if strings.Contains(who, sign) && !strings.Contains(who, "ready") {
			return EndDeadline
		}
	}
	done := strings.Contains(who, "after the workload") || strings.Contains(who, "after workload") || strings.Contains(who, "workload finished") ||
		strings.Contains(who, "after the bench") || strings.Contains(who, "after measuring") || strings.Contains(who, "after the measurement") || strings.Contains(who, "after the run")
	if done && !strings.Contains(who, "before") && !strings.Contains(who, "not finished") {
		return EndDone
	}
	return EndOutside
}
