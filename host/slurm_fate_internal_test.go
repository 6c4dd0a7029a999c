package host

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// told is a site whose Slurm says of the job what show and queue hold, and whose work folder holds notes.
type told struct {
	mu          sync.Mutex
	show, queue []string // each call takes the next, the last one stays
	notes       map[string]string
	calls       [][]string
}

func next(list *[]string) string {
	if len(*list) == 0 {
		return ""
	}
	text := (*list)[0]
	if len(*list) > 1 {
		*list = (*list)[1:]
	}
	return text
}

func (f *told) RunCommand(_ context.Context, argv []string, _ string) (string, int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, argv)
	switch argv[0] {
	case "sbatch":
		return "7\n", 0, nil
	case "squeue":
		return next(&f.queue), 0, nil
	case "scontrol":
		if text := next(&f.show); text != "" {
			return text, 0, nil
		}
		return "slurm_load_jobs error: Invalid job id specified\n", 1, nil
	case "cat":
		if text, ok := f.notes[path.Base(argv[1])]; ok {
			return text, 0, nil
		}
		return "", 1, nil
	}
	return "", 0, nil
}

func (f *told) StartCommand([]string) (*LinkConn, error) { return nil, errors.New("no steps here") }

func (f *told) called(program string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.calls, func(argv []string) bool { return argv[0] == program })
}

func state(s string) string { return "JobId=7 JobName=sgtune-7 JobState=" + s + " Reason=None\n" }

func TestFate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		show  []string
		notes map[string]string
		over  bool
		want  SlurmCause
	}{
		{"runs", []string{state("RUNNING")}, nil, false, ""},
		{"waits", []string{state("PENDING")}, nil, false, ""},
		{"was killed at its time limit", []string{state("COMPLETING"), state("TIMEOUT")}, nil, true, SlurmTimeLimit},
		{"is told to end, and Slurm shows nothing yet", []string{state("RUNNING"), state("CANCELLED")}, map[string]string{"why": "term\n"}, true, SlurmCancelled},
		{"was told to end with a time of grace", []string{state("COMPLETED")}, map[string]string{"rc": "term 1 2\n"}, true, SlurmCancelled},
		{"ended itself in silence", []string{state("COMPLETED")}, map[string]string{"rc": "silence 1 2\n"}, true, SlurmDone},
		{"is forgotten, and left nothing", []string{""}, nil, true, SlurmGone},
		{"the controller is down, then the node was lost", []string{"Unable to contact slurm controller\n", state("NODE_FAIL")}, nil, true, SlurmNodeLost},
	} {
		s, err := NewSlurm(SlurmOptions{Login: &told{show: c.show, notes: c.notes}, Agent: "/a", Request: SlurmRequest{Name: "sgtune-7", Work: "/w"}})
		if err != nil {
			t.Fatal(err)
		}
		s.saw(SlurmJob{ID: "7", Node: "n1", State: "RUNNING", Code: -1})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		job, over := s.Fate(ctx)
		cancel()
		if over != c.over || over && job.Cause() != c.want {
			t.Errorf("%s: %+v, over %v", c.name, job, over)
		}
	}
}

// Slurm that says nothing within the time is no end.
func TestFateUnknown(t *testing.T) {
	t.Parallel()
	s := fakeSlurmHost(t, fakeLogin{"scontrol": {"Unable to contact slurm controller\n", 1}})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if job, over := s.Fate(ctx); over {
		t.Errorf("%+v", job)
	}
}

// The host of a trial that is over never submits, and never waits for a node.
func TestExistingJob(t *testing.T) {
	t.Parallel()
	const begun = "7 n1 1700000000\n"
	for _, c := range []struct {
		name, queue string
		notes       map[string]string
		find        string // of the error of Find, "" = nothing is left
		usage       string
	}{
		{"never submitted", "", nil, "", "sgtune-7 is not there"},
		{"waits", "sgtune|7|PENDING||sgtune-7|Priority\n", nil, "", "waits in the queue (reason Priority)"},
		{"ended", "sgtune|7|TIMEOUT|n1|sgtune-7|TimeLimit\n", nil, "", "reached its time limit"},
		{"lost its node", "sgtune|7|NODE_FAIL|n1|sgtune-7|NodeDown\n", nil, "processes may be left on n1", "lost its node"},
		{"forgotten after a good end", "", map[string]string{"begun": begun, "rc": "done 1 2"}, "", "is COMPLETED"},
		{"forgotten without a word", "", map[string]string{"begun": begun}, "processes may be left on n1", "has forgotten it"},
	} {
		f := &told{queue: []string{c.queue}, notes: c.notes}
		s, err := NewSlurm(SlurmOptions{Login: f, Agent: "/a", Existing: true, Request: SlurmRequest{Name: "sgtune-7", Work: "/w"}})
		if err != nil {
			t.Fatal(err)
		}
		list, err := s.Find(t.Context(), "m")
		if len(list) != 0 || (err == nil) != (c.find == "") || err != nil && !strings.Contains(err.Error(), c.find) {
			t.Errorf("%s: find: %v, %v", c.name, list, err)
		}
		if _, err := s.Usage(t.Context()); !errors.Is(err, ErrNodeGone) || !strings.Contains(err.Error(), c.usage) {
			t.Errorf("%s: usage: %v", c.name, err)
		}
		if f.called("sbatch") {
			t.Errorf("%s: a job was submitted", c.name)
		}
	}
}

// A wait that is too long ends with the job, and says why it waited.
func TestQueueLimit(t *testing.T) {
	t.Parallel()
	f := &told{show: []string{"JobId=7 JobState=PENDING Reason=Resources\n"}}
	var heard []string
	s, err := NewSlurm(SlurmOptions{
		Login: f, Agent: "/a", QueueLimit: time.Millisecond, Waiting: func(j SlurmJob) { heard = append(heard, j.Reason) },
		Request: SlurmRequest{Name: "sgtune-7", Work: "/w"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var waited *SlurmQueueError
	if _, err := s.Usage(t.Context()); !errors.As(err, &waited) || !errors.Is(err, ErrNodeGone) || waited.Job.Reason != "Resources" {
		t.Errorf("%v", err)
	}
	if !f.called("scancel") || len(heard) == 0 {
		t.Errorf("heard %q, called %q", heard, f.calls)
	}
}
