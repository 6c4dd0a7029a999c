package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"sgtune/host"
)

// guardedProcess is a process with a guard on its host.
type guardedProcess interface {
	// Guarded is what the guard decided, nil as long as it decided nothing or where there is none.
	Guarded(ctx context.Context) (*host.GuardVerdict, error)
}

// farEvidence is that of a guard on another machine; one on this machine writes into the trial's folder itself.
type farEvidence interface {
	// Evidence writes what the guard sampled, one JSON object a line.
	Evidence(ctx context.Context, w io.Writer) error
}

// guardLimits are those of this launch, nil for no guard.
func (a *attempt) guardLimits() *host.GuardLimits {
	if a.Guard == nil {
		return nil
	}
	limits := *a.Guard
	limits.Evidence = a.guardEvidence()
	return &limits
}

// refuseLittleMemory: where less is free than the guard's line it would end any server at once, and the configuration
// would be blamed.
func (a *attempt) refuseLittleMemory(u host.Usage) error {
	if a.Guard == nil || a.Guard.MinFree < 0 {
		return nil
	}
	free, line := u.MemAvailable, a.Guard.MinFree
	if u.CgroupHeadroom >= 0 && u.CgroupHeadroom < free {
		free = u.CgroupHeadroom
	}
	if line == 0 {
		line = host.DefaultGuardLine(u.MemTotal)
	}
	if free < 0 || free >= line {
		return nil
	}
	return fmt.Errorf("%w: only %.1f GB of host memory is free and the guard ends what leaves less than %.1f GB: free memory on the host", errNotStarted, float64(free)/1e9, float64(line)/1e9)
}

// guardEvidence is the file of the guard's samples (host.GuardSample), one a line.
func (a *attempt) guardEvidence() string { return filepath.Join(a.dir(), "guard.jsonl") }

// readGuard takes over what the guard of the server decided and saw, before the host forgets it.
func (a *attempt) readGuard(ctx context.Context) error {
	p, ok := a.process.(guardedProcess)
	if !ok || a.Guard == nil {
		return nil
	}
	ctx, cancel := a.within(ctx, stopTime, stopTimeReal)
	defer cancel()
	verdict, err := p.Guarded(ctx)
	if err != nil {
		return err
	}
	if a.guarded = verdict; verdict != nil {
		a.guardProblems(verdict)
	}
	far, ok := a.process.(farEvidence)
	if !ok {
		return nil
	}
	file, err := os.OpenFile(a.guardEvidence(), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write the guard's evidence: %w", err)
	}
	return errors.Join(far.Evidence(ctx, file), file.Close())
}

// guardProblems are what the guard could not do.
func (a *attempt) guardProblems(v *host.GuardVerdict) {
	if v.Reason == host.GuardCancelled {
		a.find("guard_lost", "the guard of the server was ended by somebody else at "+v.At.Format(time.TimeOnly)+"; from then on nobody watched the host's memory")
	}
	if v.KillProblem != "" {
		a.find("stop_failed", "the guard could not end the server: "+v.KillProblem)
	}
	if v.EvidenceProblem != "" {
		a.find("evidence_incomplete", "guard.jsonl is incomplete: "+v.EvidenceProblem)
	}
}

// guardsWords is what the guard of an orphan did, as the end of a sentence, "" where it did nothing. It waits for the
// guard to end, which it does once nothing of the trial lives.
func (r *Runner) guardsWords(ctx context.Context, marker string) string {
	if marker == "" {
		return ""
	}
	ctx, cancel := r.within(ctx, stopTime, stopTimeReal)
	defer cancel()
	v, err := host.LeftGuard(ctx, rawLog(scratch(r.Scratch, marker)))
	switch {
	case err != nil:
		return "; what its guard did is not known: " + err.Error()
	case v == nil || !v.Reason.Killed():
		return ""
	}
	return "; its guard had ended the server: " + v.Detail
}

// endedByGuard: the guard on the host ended the server, and said why before it did.
func endedByGuard(f *Facts) (Verdict, bool) {
	g := f.Guard
	if g == nil {
		return Verdict{}, false
	}
	v := Verdict{Outcome: Aborted, Blames: BlameNo, Advice: []string{adviceRerun}, Phase: furthest(f)}
	switch {
	case g.Reason.OutOfMemory():
		v = Verdict{Outcome: HostOOM, Blames: BlameYes, Phase: furthest(f)}
		nameHostLimit(f, &v)
		if g.Reason == host.GuardCgroup && v.Cause != "hicache_oversubscribed" {
			v.Cause = "cgroup_limit"
		}
		v.Findings = append(v.Findings, Finding{"host_oom_avoided", "the guard ended the server before the kernel chose whom to kill: " + g.Detail})
		v.Text = "host memory ran out and the guard ended the server before the kernel had to: " + g.Detail + "; " + hostRemedy(f)
	case g.Reason == host.GuardTimeLimit:
		v.Cause = "job_time_limit"
		v.Text = "the guard ended the server, whose time was over: " + g.Detail + "; the configuration is innocent"
	default:
		v.Cause = causeUnknown
		v.Text = "the guard ended the server because sgtune was not heard any more: " + g.Detail + "; the configuration is innocent"
	}
	return v, true
}
