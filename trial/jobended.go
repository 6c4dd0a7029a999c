package trial

import (
	"errors"
	"fmt"

	"sgtune/host"
)

// endedByJob: the trial's Slurm job ended, or never began, and not by the server's doing. Only the limit of its memory
// speaks against the configuration.
func endedByJob(f *Facts) (Verdict, bool) {
	v := Verdict{Outcome: Aborted, Cause: causeUnknown, Blames: BlameNo, Advice: []string{adviceRerun}, Phase: furthest(f)}
	if f.Waited != nil {
		v.Text = fmt.Sprintf("%s; the configuration was not tried: raise host.queue_limit, or ask for less", f.Waited)
		return v, true
	}
	if f.Job == nil || f.Guard != nil {
		return v, false
	}
	quote(&v, lastEvent(f))
	innocent := "; nothing failed: the same configuration is run again"
	switch f.Job.Cause() {
	case host.SlurmMemory:
		v = Verdict{Outcome: HostOOM, Blames: BlameYes, Phase: furthest(f)}
		quote(&v, lastEvent(f))
		nameHostLimit(f, &v)
		if v.Cause != "hicache_oversubscribed" {
			v.Cause = "cgroup_limit"
		}
		v.Text = f.Job.Why() + "; " + hostRemedy(f)
		return v, true
	case host.SlurmTimeLimit:
		v.Cause, v.Advice = "job_time_limit", []string{adviceJobTime, adviceRerun}
	case host.SlurmCancelled, host.SlurmPreempted:
		v.Cause = "operator_signal"
	case host.SlurmDone:
		v.Text = fmt.Sprintf("Slurm job %s ended itself because no sgtune was heard on its node%s", f.Job.ID, innocent)
		return v, true
	}
	v.Text = f.Job.Why() + innocent
	return v, true
}

// waitedInVain is the wait for a node that was too long, nil when err tells of none.
func waitedInVain(err error) *host.SlurmQueueError {
	var waited *host.SlurmQueueError
	if errors.As(err, &waited) {
		return waited
	}
	return nil
}
