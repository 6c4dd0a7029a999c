package host

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// fakeLogin has Slurm's programs that answer with a text and a status each.
type fakeLogin map[string]struct {
	text   string
	status int
}

func (f fakeLogin) RunCommand(_ context.Context, argv []string, _ string) (string, int, error) {
	return f[argv[0]].text, f[argv[0]].status, nil
}

func (f fakeLogin) StartCommand([]string) (*LinkConn, error) { return nil, errors.New("no steps here") }

func fakeSlurmHost(t *testing.T, f fakeLogin) *Slurm {
	t.Helper()
	s, err := NewSlurm(SlurmOptions{Login: f, Agent: "/a", Request: SlurmRequest{Name: "sgtune-7", Work: "/w"}})
	if err != nil {
		t.Fatal(err)
	}
	s.job = SlurmJob{ID: "7", Name: "sgtune-7", State: "RUNNING", Node: "n1", Code: -1}
	return s
}

// A job that Slurm has forgotten is known by what it wrote itself; without that it is lost.
func TestForgottenJob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, rc string
		status   int
		want     SlurmCause
	}{
		{"not needed any more", "done 10 20\n", 0, SlurmDone},
		{"nobody was connected", "silence 10 20\n", 0, SlurmDone},
		{"TERM", "term 10 20\n", 0, SlurmCancelled},
		{"wrote nothing", "cat: /w/job/sgtune-7/rc: No such file or directory\n", 1, SlurmGone},
		{"wrote half", "ter", 0, SlurmGone},
	} {
		s := fakeSlurmHost(t, fakeLogin{"cat": {c.rc, c.status}})
		job, err := s.forgotten(t.Context())
		if err != nil || job.Cause() != c.want || job.Phase() != SlurmEnded || job.ID != "7" {
			t.Errorf("%s: %+v, %v, want %s", c.name, job, err, c.want)
		}
	}
}

// What the end of the job leaves of its processes: nothing, unless its node or the job was lost.
func TestAfterTheEnd(t *testing.T) {
	t.Parallel()
	for state, dirty := range map[string]bool{"PREEMPTED": false, "TIMEOUT": false, "CANCELLED": false, string(SlurmGone): true, "NODE_FAIL": true} {
		s := fakeSlurmHost(t, nil)
		job := s.Job()
		job.State = state
		var over *SlurmEndError
		if !errors.As(s.close(job), &over) {
			t.Fatal("no error")
		}
		list, err := s.Find(t.Context(), "")
		if (err != nil) != dirty || dirty && !strings.Contains(err.Error(), "n1") || len(list) != 0 {
			t.Errorf("%s: %d found, %v", state, len(list), err)
		}
		if _, err := s.Usage(t.Context()); !errors.As(err, &over) || over.Job.State != state || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: usage %v", state, err)
		}
		if err := s.End(t.Context()); err != nil {
			t.Errorf("%s: end %v", state, err)
		}
	}
}

// Looking for processes asks for no node.
func TestFindSubmitsNothing(t *testing.T) {
	t.Parallel()
	for _, queue := range []string{"", "sgtune|7|PENDING|n/a|sgtune-7|Resources\n", "sgtune|7|FAILED|n1|sgtune-7|None\n"} {
		s := fakeSlurmHost(t, fakeLogin{"squeue": {queue, 0}, "sbatch": {"sbatch must not be called", 1}})
		if list, err := s.Find(t.Context(), "x"); len(list) != 0 || err != nil {
			t.Errorf("%q: %d, %v", queue, len(list), err)
		}
	}
	s := fakeSlurmHost(t, fakeLogin{"squeue": {"Unable to contact slurm controller", 1}})
	if _, err := s.Find(t.Context(), "x"); !errors.Is(err, ErrSlurmUnclear) {
		t.Errorf("a controller that is down: %v", err)
	}
}
