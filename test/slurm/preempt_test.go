package slurm

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"sgtune/host"
	"sgtune/internal/hosttest"
)

// A job has to make way for one of a partition that comes first: its server had TERM, and the job says that it was not the
// trial. To be run again by Slurm itself is nothing for a job of ours, also when an administrator asks for it.
func TestPreempted(t *testing.T) {
	s := trial(t, func(o *host.SlurmOptions) { o.Request.Gres = "gpu:h200:8" })
	p := shell(t, s, "trap 'echo got TERM; exit 5' TERM; echo up; while :; do sleep 0.05; done")
	hosttest.FirstLine(t, p)
	if out, err := exec.Command("scontrol", "requeue", s.Job().ID).CombinedOutput(); err == nil {
		t.Errorf("Slurm put a job of ours back into the queue: %s", out)
	}
	urgent := strings.TrimSpace(scontrol(t, "sbatch", "--parsable", "--partition=urgent", "--nodelist="+s.Job().Node, "--gres=gpu:h200:8",
		"--mem=100M", "--output=/dev/null", "--wrap=sleep 60"))
	defer scontrol(t, "scancel", urgent)
	if e := hosttest.Wait(t, p); e.Code != 5 || !e.Known {
		t.Errorf("%+v", e)
	}
	eventually(t, "the job is seen to have ended", time.Minute, func() bool { return s.Job().Cause() != "" })
	if job, over := s.Fate(t.Context()); !over || job.Cause() != host.SlurmPreempted {
		t.Errorf("over %v: %+v", over, job)
	}
}
