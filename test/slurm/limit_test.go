package slurm

import (
	"testing"
	"time"

	"sgtune/host"
	"sgtune/internal/hosttest"
)

// The time limit of the job is told apart from a crash. Slurm counts in minutes and comes late: the wait for it is spent beside
// the studies, on a node of its own, as one of them loses one.
func TestTimeLimit(t *testing.T) {
	t.Parallel()
	s := trial(t, func(o *host.SlurmOptions) {
		o.Request.TimeLimit, o.Request.Gres, o.Patience = time.Minute, "gpu:h200:8", 5*time.Minute
	})
	p := shell(t, s, "trap 'exit 5' TERM; echo up; while :; do sleep 0.1; done")
	hosttest.FirstLine(t, p)
	select {
	case <-p.Done():
	case <-time.After(3 * time.Minute):
		t.Fatal("no end")
	}
	eventually(t, "the job is seen to have ended", time.Minute, func() bool { return s.Job().Cause() != "" })
	if e := p.Exit(); e.Code != 5 || s.Job().Cause() != host.SlurmTimeLimit {
		t.Errorf("%+v, %+v", e, s.Job())
	}
}
