package trial

import (
	"fmt"
	"maps"
	"time"

	"sgtune/host"
	"sgtune/sglang"
)

// Ending is what ended a trial's work, before anything was stopped. The empty Ending means that it
// is not known: a log is judged on its own.
type Ending string

// Endings.
const (
	EndUnknown    Ending = ""
	EndDone       Ending = "done"        // all steps were taken
	EndPruned     Ending = "pruned"      // stopped early as hopeless
	EndDied       Ending = "died"        // the server ended by itself
	EndTimeout    Ending = "timeout"     // ready_timeout, while advancing
	EndStuck      Ending = "stuck"       // no progress and no death
	EndPerson     Ending = "person"      // a person stopped the study
	EndDeadline   Ending = "deadline"    // the study's time was over
	EndOutside    Ending = "outside"     // a signal from outside sgtune
	EndVoid       Ending = "void"        // contaminated
	EndPort       Ending = "port"        // the port was taken before the launch
	EndNotStarted Ending = "not_started" // the command could not be executed
	EndHost       Ending = "host"        // the host could not be read
	EndUnguarded  Ending = "unguarded"   // the server's guard was lost for good
	EndGPU        Ending = "gpu"         // the driver reported a fault of a GPU
	EndReplay     Ending = "replay"      // the server lives and could not be measured
	EndSgtune     Ending = "sgtune"      // a bug or a full disk of ours
)

// Probe is what a readiness probe saw, so many times.
type Probe struct {
	Path    string
	Status  int    // HTTP status, 0 = refused or timed out
	Body    int    // bytes of the body; SGLang's own answers have none
	Word    string // "refused" or "timeout" where Status is 0, "" not known
	Count   int    // how often
	Refusal string // what another monitor made of a 200, "" when nobody disagreed
	From    string // where the probe ran, in words; "" not known
}

// Facts is everything a verdict depends on. The zero value of a field means not known, except where
// it says otherwise.
type Facts struct {
	Log         sglang.LogFacts         // as it was when work ended
	First, Last map[string]sglang.Event // first and last log event of each kind
	Flags       sglang.Config           // flags of this launch
	Ending      Ending
	Reason      string // words of what ended it
	Exit        Exit
	Dead        bool // the process is known to be gone, also where its exit status is not
	Ready       bool // the readiness rule was met
	Probes      []Probe
	Elapsed     time.Duration // since the launch
	Timeout     time.Duration // ready_timeout
	Silent      time.Duration // since the log last moved
	UnderLoad   time.Duration // since the first request
	KernelOOM   int64         // rise of the kernel's kill counter, -1 unknown
	CgroupOOM   int64         // rise of the cgroup's, -1 unknown
	HostRAM     int64         // bytes, 0 unknown
	Ranks       int           // ranks on this host, 0 = tp-size of the log
	Levels      []Level
	Port        int
	Holder      string // who holds the port
	Findings    []Finding
	GPUFault    *host.GPUFault        // what the driver reported, nil for nothing
	Throttle    host.ThrottleWindow   // readings under load
	Guard       *host.GuardVerdict    // of the guard that ended the server, nil when none did
	Job         *host.SlurmJob        // of the trial, where it ended before sgtune ended anything; nil otherwise
	Waited      *host.SlurmQueueError // a wait for a node that was too long, nil otherwise
	Context     *Context              // facts from outside when a log is judged on its own, nil in a trial of sgtune's
}

// Classify says why a trial ended. It is pure: the same facts give the same verdict. The first rule
// that fits decides (rules.go); when none does the verdict is unknown, never a guess.
func Classify(f Facts) Verdict {
	v := undecided(&f)
	for _, r := range rules {
		if found, ok := r.judge(&f); ok {
			v = found
			break
		}
	}
	if v.Phase == "" {
		v.Phase = furthest(&f)
	}
	all := numbers(&f)
	maps.Copy(all, v.Numbers)
	if rank := all["host_request_gb_per_rank"]; all["host_request_gb_total"] == 0 && rank > 0 { // refused before it was allocated
		all["host_request_gb_total"] = rank * float64(ranks(&f))
	}
	v.Numbers = all
	v.Also = alsoProves(&f, v)
	v.Findings = append(append(append(v.Findings, remarks(&f)...), capFinding(&f)...), f.Findings...)
	return v
}

// undecided is the verdict when no rule fits, with what would be needed to decide.
func undecided(f *Facts) Verdict {
	v := Verdict{Outcome: Unknown, Phase: furthest(f), Cause: causeUnknown, Blames: BlameNo, Advice: []string{adviceRerun}}
	quote(&v, lastEvent(f))
	switch {
	case f.Log.Lines == 0:
		v.Text = "the log is empty, and nothing else says what became of the server; look whether its output went somewhere else"
	case f.Exit.Alive:
		v.Text = fmt.Sprintf("the server was still starting (%s) and no limit was reached; wait, or say how long it has been silent and what the limit is", v.Phase)
	case f.Dead || f.Exit.Known:
		v.Text = fmt.Sprintf("the server ended in %s and nothing it printed or the host counted says why; look at the end of server.log and at the kernel's log", v.Phase)
	default:
		v.Text = fmt.Sprintf("the log ends in %s without a failure, and whether the server still lives is not known; say so with --context", v.Phase)
	}
	return v
}

// ownDecodes is more decode lines than the server's own first request can cause: it asks for a few
// tokens, a line stands for 40 steps.
const ownDecodes = 4

// furthest is the furthest phase the log reached. Live, readiness is the rule of design 5 and does
// not need the log line.
func furthest(f *Facts) sglang.Phase {
	phase := f.Log.Phase
	if phase == "" {
		phase = sglang.PhaseLaunch
	}
	if f.Ready && sglang.PhaseReady.After(phase) {
		phase = sglang.PhaseReady
	}
	if phase == sglang.PhaseWarmup && f.Log.Decodes >= ownDecodes { // the log begins after the start
		phase = sglang.PhaseDecode
	}
	return phase
}

// dirty turns a verdict into dirty_host when something of the trial is still held; the trial's own
// verdict stays as a finding.
func dirty(v Verdict, r released) Verdict {
	if r.Release != ReleaseDirty {
		return v
	}
	own := Finding{Name: string(v.Outcome), Text: string(v.Outcome) + " / " + string(v.Phase) + " / " + v.Cause + ": " + v.Text}
	advice := []string{adviceFreeGPU}
	if r.Cause == causePortHeld {
		advice = []string{adviceFreePort}
	}
	return Verdict{
		Outcome: DirtyHost, Phase: sglang.PhaseShutdown, Cause: r.Cause, Blames: v.Blames, Numbers: v.Numbers,
		Findings: append([]Finding{own}, v.Findings...), Evidence: v.Evidence, Line: v.Line, Offset: v.Offset, Advice: advice,
		Also: v.Also, FailingRanks: v.FailingRanks, RejectedFlags: v.RejectedFlags,
		Text: "the host is not clean: " + r.Text + "; free it (sgtune reclaim), then run sgtune tune again",
	}
}
