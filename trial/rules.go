package trial

import (
	"cmp"
	"fmt"
	"time"

	"sgtune/sglang"
)

// rule is one row of the classifier: its judge answers whether it fits, and with what verdict.
type rule struct {
	name  string
	judge func(*Facts) (Verdict, bool)
}

// rules in order; the first that fits decides. What happened before a server of ours lived comes
// first, then the server's own first cause, then what sgtune or a person did, and the result last.
var rules = []rule{
	{"the job ended", endedByJob},
	{"before a launch", beforeLaunch},
	{"the guard ended it", endedByGuard},
	{"the guard was lost", withoutGuard},
	{"the driver's word", faultyGPU},
	{"first fatal line", firstFatal},
	{"killed child", killedChild},
	{"crashed child", crashedChild},
	{"answers below the gate", belowGate},
	{"limits of a start", limitOfStart},
	{"a monitor ended it", endedByMonitor},
	{"stopped on purpose", stoppedOnPurpose},
	{"no route", noRoute},
	{"no progress", noProgressRule},
	{"silent death", silentDeath},
	{"a monitor was wrong", wrongMonitor},
	{"cannot be measured", unmeasured},
	{"throttled", throttled},
	{"served", served},
}

func beforeLaunch(f *Facts) (Verdict, bool) {
	v := Verdict{Outcome: EnvFault, Phase: sglang.PhaseLaunch, Cause: causeUnknown, Blames: BlameNo, Advice: []string{adviceRerun}}
	switch f.Ending {
	case EndPort:
		v.Cause, v.Advice = "port_in_use", []string{adviceFreePort, adviceRerun}
		v.Numbers = map[string]float64{"port": float64(f.Port)}
		v.Text = fmt.Sprintf("port %d is already held by %s; free it or leave the port out of the study file", f.Port, f.Holder)
	case EndNotStarted:
		v.Text = cmp.Or(f.Reason, errNotStarted.Error()) // a reason begins with it
	case EndHost:
		v.Text = "the host could not be read: " + f.Reason
	default:
		return v, false
	}
	return v, true
}

// unmeasured: the server lives, but flush or prompts failed.
func unmeasured(f *Facts) (Verdict, bool) {
	v := Verdict{Outcome: BenchInvalid, Phase: sglang.PhaseBench, Cause: causeUnknown, Blames: BlameNo, Advice: []string{adviceRerunBench}}
	v.Text = "the server was ready but could not be measured: " + f.Reason
	return v, f.Ending == EndReplay
}

// ready reports whether the server ever was: by the rule of design 5, by its own word, or because the
// log begins in the middle of its service.
func (f *Facts) ready() bool {
	if f.Ready || f.Log.Ready {
		return true
	}
	phase := furthest(f)
	if phase == sglang.PhaseShutdown { // a start that fails shuts down too
		return f.Log.Decodes > 0
	}
	return phase.After(sglang.PhaseWarmup)
}

// lives reports whether the server is known to live, ranks and all.
func (f *Facts) lives() bool { return f.Exit.Alive && !f.childrenDead() }

// gone reports whether the server, or a rank of it, is known to have ended.
func (f *Facts) gone() bool {
	return !f.Exit.Alive && (f.Dead || f.Exit.Known || f.Ending == EndDied) || f.childrenDead()
}

// finished reports whether all that was asked of the server was done.
func (f *Facts) finished() bool { return f.Ending == EndDone || f.Ending == EndPruned }

// quote takes an event as evidence.
func quote(v *Verdict, e sglang.Event) {
	if e.Line > 0 {
		v.Evidence, v.Line, v.Offset = e.Text, e.Line, e.Offset
	}
}

// span prints a duration as a person says it: 6m12s, 45s.
func span(d time.Duration) string { return d.Round(time.Second).String() }
