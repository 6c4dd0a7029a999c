package trial

import (
	"fmt"
	"strings"
	"time"

	"sgtune/benchmark"
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
	{"before a launch", beforeLaunch},
	{"first fatal line", firstFatal},
	{"killed child", killedChild},
	{"stopped on purpose", stoppedOnPurpose},
	{"limits of a start", limitOfStart},
	{"no progress", noProgressRule},
	{"silent death", silentDeath},
	{"a monitor was wrong", wrongMonitor},
	{"cannot be measured", unmeasured},
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
		v.Text = "the server could not be started: " + f.Reason
	case EndHost:
		v.Text = "the host could not be read: " + f.Reason
	default:
		return v, false
	}
	return v, true
}

// served: the server did what was asked of it as far as it goes.
func served(f *Facts) (Verdict, bool) {
	live := f.Ending == EndDone || f.Ending == EndPruned
	if !live && (f.Ending != EndUnknown || !f.Exit.Alive || !f.Log.Ready) {
		return Verdict{}, false
	}
	if v, bad := invalid(f); bad {
		return v, true
	}
	if storm(f) {
		return retractionStorm(f), true
	}
	v := Verdict{Outcome: OK, Cause: causeNone, Blames: BlameYes, Advice: []string{adviceAccept}}
	quote(&v, f.First[kindFiredUp])
	v.Text = okText(f)
	okFindings(f, &v)
	return v, true
}

func okText(f *Facts) string {
	best := Level{}
	for _, l := range f.Levels {
		if l.Report != nil && l.Report.Valid && (best.Report == nil || l.Report.OutputTokS > best.Report.OutputTokS) {
			best = l
		}
	}
	if best.Report == nil {
		return "the server became ready and served"
	}
	text := fmt.Sprintf("served; best %.0f tok/s at %d clients, %.0f requests ran at once at most", best.Report.OutputTokS, best.Concurrency, f.Log.MaxRunning)
	if f.Ending == EndPruned {
		text += "; stopped early as hopeless"
	}
	return text
}

// okFindings adds what a reader of a good result should know.
func okFindings(f *Facts, v *Verdict) {
	asked := f.First[kindServerArgs].Values["requested_max_running_requests"]
	if own, ok := f.Flags.Float("max-running-requests"); ok {
		asked = own
	}
	if got := float64(f.Log.Memory.MaxRunning); asked > got && got > 0 {
		v.Findings = append(v.Findings, Finding{"concurrency_clamped", fmt.Sprintf("%.0f running requests were asked for, %.0f granted", asked, got)})
		quote(v, f.First[kindCapacity])
		if _, mamba := f.Flags["max-mamba-cache-size"]; mamba {
			v.Advice = append(v.Advice, adviceMambaSlots)
		}
	}
	if m := f.Log.Memory; m.ContextLen > m.Tokens && m.Tokens > 0 {
		v.Findings = append(v.Findings, Finding{kindContextPool, fmt.Sprintf("one request of %d tokens would not fit the KV pool of %d", m.ContextLen, m.Tokens)})
	}
}

// invalid: levels were measured and none of them can be used, or one of them measured a client that stood
// still: it may have been the best level, and the others' value would be taken for the configuration's.
func invalid(f *Facts) (Verdict, bool) {
	var first, hung *Level
	valid := false
	for i := range f.Levels {
		l := &f.Levels[i]
		switch {
		case l.Report == nil:
		case l.Report.Valid:
			valid = true
		case hung == nil && l.Report.Invalid == benchmark.InvalidClientHung:
			hung = l
		case first == nil:
			first = l
		}
	}
	if valid {
		first = nil
	}
	if hung != nil {
		first = hung
	}
	if first == nil {
		return Verdict{}, false
	}
	r := first.Report
	v := Verdict{Outcome: BenchInvalid, Phase: sglang.PhaseBench, Cause: r.Invalid, Blames: BlameNo, Advice: []string{adviceRerunBench}}
	v.Text = fmt.Sprintf("the replay at %d clients cannot be used (%s): %s", first.Concurrency, strings.ReplaceAll(r.Invalid, "_", " "), r.Advice)
	return v, true
}

// A storm: at least ten retractions, and one for every ten decode lines (a line covers 40 steps).
const (
	stormEvents = 10
	stormLines  = 10
)

func storm(f *Facts) bool {
	return f.Log.Retracts >= stormEvents && f.Log.Retracts*stormLines >= f.Log.Decodes
}

func retractionStorm(f *Facts) Verdict {
	v := Verdict{Outcome: Degraded, Phase: sglang.PhaseDecode, Cause: "retraction_storm", Blames: BlameYes, Advice: []string{adviceConservative, adviceLowerRunning, adviceRaiseFraction}}
	quote(&v, f.First[kindRetract])
	v.Findings = []Finding{{"retraction_storm", "requests were taken in too eagerly and computed again"}}
	v.Text = fmt.Sprintf("the KV pool overflowed %d times and %d requests were computed again; the number is real but low", f.Log.Retracts, f.Log.Retracted)
	return v
}

// wrongMonitor: another monitor called a ready server dead.
func wrongMonitor(f *Facts) (Verdict, bool) {
	for _, p := range f.Probes {
		if p.Status == 200 && p.Refusal != "" && f.Log.Ready && f.Exit.Alive {
			v := Verdict{Outcome: MonitorWrong, Phase: sglang.PhaseReady, Cause: "health_body_empty", Blames: BlameNo, Advice: []string{adviceFixProbe, adviceRerun}}
			v.Numbers = map[string]float64{"health_200_count": float64(p.Count)}
			quote(&v, f.First[kindFiredUp])
			v.Text = fmt.Sprintf("the server was ready: %s answered 200 %d times (its body is always empty), and was called dead (%s)", p.Path, p.Count, p.Refusal)
			return v, true
		}
	}
	return Verdict{}, false
}

// unmeasured: the server lives, but flush or prompts failed.
func unmeasured(f *Facts) (Verdict, bool) {
	v := Verdict{Outcome: BenchInvalid, Phase: sglang.PhaseBench, Cause: causeUnknown, Blames: BlameNo, Advice: []string{adviceRerunBench}}
	v.Text = "the server was ready but could not be measured: " + f.Reason
	return v, f.Ending == EndReplay
}

// quote takes an event as evidence.
func quote(v *Verdict, e sglang.Event) {
	if e.Line > 0 {
		v.Evidence, v.Line = e.Text, e.Line
	}
}

// span prints a duration as a person says it: 6m12s, 45s.
func span(d time.Duration) string { return d.Round(time.Second).String() }
