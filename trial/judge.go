package trial

import (
	"context"
	"errors"
	"strings"

	"sgtune/sglang"
)

// endings maps what ended work to the classifier's word for it.
var endings = []struct {
	err error
	end Ending
}{
	{ErrPruned, EndPruned},
	{ErrDeadline, EndDeadline},
	{ErrVoid, EndVoid},
	{ErrStopped, EndPerson},
	{errDied, EndDied},
	{errDying, EndDied},
	{errTimeout, EndTimeout},
	{errStuck, EndStuck},
	{errPortTaken, EndPort},
	{errNotStarted, EndNotStarted},
	{errHostLost, EndHost},
	{errUnguarded, EndUnguarded},
	{errGPUFault, EndGPU},
	{errFlush, EndReplay},
	{errPalette, EndReplay},
	{context.Canceled, EndPerson},
	{context.DeadlineExceeded, EndDeadline},
}

func endingOf(err error) Ending {
	var unsaved *storeError
	var bug *panicError
	switch {
	case err == nil:
		return EndDone
	case errors.As(err, &unsaved), errors.As(err, &bug):
		return EndSgtune
	}
	for _, e := range endings {
		if errors.Is(err, e.err) {
			return e.end
		}
	}
	return EndReplay
}

// judge turns what ended work and everything seen into state, verdict, value and release of the row.
func (a *attempt) judge(err error) {
	t, end := a.t, endingOf(err)
	if stack := asPanic(err); stack != "" {
		a.notice("bug", "trial: "+err.Error()+"\n"+stack)
	}
	if a.watch != nil && a.watch.failed != nil {
		a.find("evidence_incomplete", "server.log is incomplete: "+a.watch.failed.Error())
	}
	f := a.gather(end, err)
	v := Classify(f)
	t.State = stateOf(end, v)
	if t.Void = voidOf(t.Void, end, err); t.Void == "" {
		t.Void = a.overslept(v)
	}
	if t.Void == "" {
		t.Void = a.contaminated(v)
	}
	t.Release = a.released.Release
	if a.released.Release == ReleaseUnverified {
		v.Findings = append(v.Findings, Finding{"release_not_verified", a.released.Text})
	}
	t.Verdict, t.Void = a.hiddenVerdict(dirty(v, a.released)), a.hidden(t.Void)
	t.Value, t.Best = nil, 0
	if a.Score != nil && (t.State == Complete || t.State == Pruned) {
		if value, best, ok := a.Score(t.Levels); ok {
			t.Value, t.Best = &value, best
		}
	}
	if t.State != Complete {
		a.final = a.reached
	}
}

// stateOf: the cause that ended work picks the state; a trial that ran to its end without a usable
// number has failed.
func stateOf(end Ending, v Verdict) State {
	switch {
	case end == EndPerson:
		return Cancelled
	case end == EndPruned && v.Outcome != BenchInvalid && v.Outcome != EnvFault: // a load generator that fell behind, or a broken GPU, makes any server look hopeless
		return Pruned
	case end == EndDone && (v.Outcome == OK || v.Outcome == Degraded):
		return Complete
	}
	return Failed
}

// voidOf keeps a mark that is there already.
func voidOf(mark string, end Ending, err error) string {
	if mark != "" || end != EndVoid {
		return mark
	}
	return strings.TrimSpace(err.Error())
}

// gather collects the facts of this trial.
func (a *attempt) gather(end Ending, err error) Facts {
	f := Facts{
		Log: a.log, First: a.first, Last: a.last, Flags: sglang.Merge(a.Server.Flags, a.t.Config), Ending: end, Exit: a.exit,
		Ready: a.ready, Elapsed: a.reachedAfter, Timeout: a.ReadyTimeout, Silent: a.silent, KernelOOM: -1, CgroupOOM: -1,
		Levels: a.t.Levels, Port: a.t.Port, Holder: a.holder, Findings: append(adoptions(a.t), a.findings...),
	}
	if err != nil {
		f.Reason = err.Error()
	}
	if a.guarded != nil && a.guarded.Reason.Killed() && !a.exit.Alive {
		f.Guard = a.guarded
	}
	f.Job, f.Waited = a.job, waitedInVain(err)
	if !a.loaded.IsZero() {
		f.UnderLoad = a.t.StartedAt.Add(a.reachedAfter).Sub(a.loaded)
	}
	f.Probes = a.probes.list()
	f.GPUFault, f.Throttle = a.gpuHealth()
	if a.lineless != "" && !a.log.Ready {
		f.Findings = append(f.Findings, Finding{"monitor_wrong", a.lineless})
	}
	if a.watch != nil {
		m := a.watch.usage()
		f.Findings = append(f.Findings, a.watch.remarks()...)
		f.KernelOOM, f.CgroupOOM, f.HostRAM = m.kernelRise, m.cgroupRise, m.total
	}
	return f
}
