package trial_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"sgtune/host"
	"sgtune/trial"
)

// fakeSites is a login node with a node for each trial.
type fakeSites struct {
	*fakeHost
	refuses error

	mu     sync.Mutex
	nodes  map[int]*fakeNode // by trial
	others []string          // studies asked for
}

func newFakeSites(t *testing.T, s script, numbers ...int) *fakeSites {
	t.Helper()
	f := &fakeSites{fakeHost: newFakeHost(t, script{}), nodes: map[int]*fakeNode{}}
	for _, n := range numbers {
		node := &fakeNode{fakeHost: newFakeHost(t, s)}
		node.clock = f.clock
		f.nodes[n] = node
	}
	return f
}

func (f *fakeSites) Site(_ context.Context, t *trial.Trial, existing bool) (trial.Site, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refuses != nil {
		return trial.Site{}, f.refuses
	}
	n := f.nodes[t.Number]
	n.existing = existing
	return trial.Site{Host: n, End: func(context.Context) error { n.given++; return n.kept }}, nil
}

func (f *fakeSites) Others(_ context.Context, study string) error {
	f.others = append(f.others, study)
	return nil
}

// fakeNode is the node of a job, which can end with its server.
type fakeNode struct {
	*fakeHost
	fate     *host.SlurmJob // of the job once its server has died, nil = it goes on
	kept     error          // End fails
	existing bool
	given    int // calls of End
}

// over reports whether the job has ended.
func (n *fakeNode) over() bool {
	return n.fate != nil && n.alive() == 0 && strings.Contains(strings.Join(n.happened(), "\n"), "start")
}

func (n *fakeNode) Fate(context.Context) (host.SlurmJob, bool) {
	if n.over() {
		return *n.fate, true
	}
	return host.SlurmJob{State: "RUNNING"}, false
}

func (n *fakeNode) Usage(ctx context.Context) (host.Usage, error) {
	if n.over() {
		return host.Usage{}, &host.SlurmEndError{Job: *n.fate}
	}
	return n.fakeHost.Usage(ctx)
}

func (n *fakeNode) Reach(ctx context.Context, port int) (host.Endpoint, error) {
	if n.over() {
		return host.Endpoint{}, &host.SlurmEndError{Job: *n.fate}
	}
	return n.fakeHost.Reach(ctx, port)
}

func (n *fakeNode) Find(ctx context.Context, marker string) ([]host.Process, error) {
	if n.over() && n.fate.Cause() == host.SlurmNodeLost {
		return nil, &host.SlurmEndError{Job: *n.fate}
	}
	return n.fakeHost.Find(ctx, marker)
}

// TestTrialsOnNodesOfTheirOwn: one Runner runs two trials at once, each on its own machine, which is given back.
func TestTrialsOnNodesOfTheirOwn(t *testing.T) {
	t.Parallel()
	sites, store := newFakeSites(t, script{log: startLog, load: 20 * time.Millisecond}, 1, 2), &fakeStore{}
	r := newRunner(t, sites.fakeHost, store)
	r.Host = sites
	var both sync.WaitGroup
	for number := range sites.nodes {
		both.Go(func() {
			tr := newTrial(2)
			tr.Number = number
			if err := r.Run(t.Context(), tr); err != nil || tr.Release != trial.ReleaseVerified || len(tr.Levels) != 1 {
				t.Errorf("trial %d: %v, %s, %+v", number, err, tr.Release, tr.Verdict)
			}
		})
	}
	both.Wait()
	for number, n := range sites.nodes {
		if n.given != 1 || n.existing || n.alive() != 0 || len(n.happened()) == 0 {
			t.Errorf("node of trial %d: given back %d times, %d alive, %q", number, n.given, n.alive(), n.happened())
		}
	}
	if what := sites.happened(); len(what) != 0 {
		t.Errorf("on the login node: %q", what)
	}
}

// TestJobEndsUnderATrial: the job's end is the verdict, the trial is innocent, and the study may go on.
func TestJobEndsUnderATrial(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		state, want string
		blames      trial.Blame
		release     string
	}{
		{"TIMEOUT", "aborted / job_time_limit", trial.BlameNo, "reached its time limit"},
		{"CANCELLED", "aborted / operator_signal", trial.BlameNo, "was cancelled"},
		{"NODE_FAIL", "aborted / unknown", trial.BlameNo, "lost its node"},
		{"OUT_OF_MEMORY", "host_oom / cgroup_limit", trial.BlameYes, "limit of its memory"},
	} {
		t.Run(c.state, func(t *testing.T) {
			t.Parallel()
			sites, store := newFakeSites(t, script{log: startLog, dies: "bye\n", exit: host.Exit{Code: -1, Signal: 15, Known: true}}, 7), &fakeStore{}
			node := sites.nodes[7]
			node.fate, node.kept = &host.SlurmJob{ID: "12", State: c.state, Node: "n1"}, errors.New("Slurm gives no answer")
			r := newRunner(t, sites.fakeHost, store)
			r.Host = sites
			var told []string
			r.Notice = func(_, text string) { told = append(told, text) }
			tr := newTrial(2)
			if err := r.Run(t.Context(), tr); err != nil {
				t.Error(err)
			}
			v := tr.Verdict
			if got := string(v.Outcome) + " / " + v.Cause; got != c.want || v.Blames != c.blames || tr.State != trial.Failed || !strings.Contains(v.Text, "Slurm job 12 is "+c.state) {
				t.Errorf("%s %s, blames %s: %s", tr.State, got, v.Blames, v.Text)
			}
			released := ""
			for _, f := range v.Findings {
				if f.Name == "release_not_verified" {
					released = f.Text
				}
			}
			if tr.Release != trial.ReleaseUnverified || !strings.Contains(released, c.release) {
				t.Errorf("release %s: %q", tr.Release, released)
			}
			if node.given != 1 || !strings.Contains(strings.Join(told, "\n"), "was not given back") {
				t.Errorf("given back %d times, told %q", node.given, told)
			}
		})
	}
}

// TestNoNode: a trial that gets no node has not failed, and nothing is started.
func TestNoNode(t *testing.T) {
	t.Parallel()
	sites, store := newFakeSites(t, script{}, 7), &fakeStore{}
	sites.refuses = &host.SlurmQueueError{Job: host.SlurmJob{ID: "9", State: "PENDING", Reason: "Resources"}, Limit: time.Hour}
	r := newRunner(t, sites.fakeHost, store)
	r.Host = sites
	tr := newTrial(2)
	if err := r.Run(t.Context(), tr); err != nil {
		t.Error(err)
	}
	v := tr.Verdict
	if v.Outcome != trial.Aborted || v.Blames != trial.BlameNo || !strings.Contains(v.Text, "no node within 1h0m0s: Slurm job 9 waits in the queue (reason Resources)") {
		t.Errorf("%+v", v)
	}
	if len(sites.happened()) != 0 {
		t.Errorf("%q", sites.happened())
	}
}

// TestRecoverGivesNodesBack: also that of a trial which was killed before it had stored its marker, while its job waited.
func TestRecoverGivesNodesBack(t *testing.T) {
	t.Parallel()
	sites, store := newFakeSites(t, script{}, 7), &fakeStore{}
	row := newTrial(2)
	row.State, row.Step = trial.Running, trial.StepAdmit
	got, err := trial.Recover(t.Context(), sites, sites.clock, "night", []*trial.Trial{row}, store)
	node := sites.nodes[7]
	if err != nil || len(got) != 1 || row.State != trial.Failed || !node.existing || node.given != 1 {
		t.Errorf("%v, %d recovered, row %s, node %+v", err, len(got), row.State, node)
	}
	if len(sites.others) != 1 || sites.others[0] != "night" {
		t.Errorf("others of %q", sites.others)
	}
	// Slurm does not answer: the row stays as it is, for another time.
	again := newTrial(2)
	again.State, again.Step = trial.Running, trial.StepWait
	sites.refuses = host.ErrSlurmUnclear
	got, err = trial.Recover(t.Context(), sites, sites.clock, "night", []*trial.Trial{again}, store)
	if !errors.Is(err, host.ErrSlurmUnclear) || len(got) != 0 || again.State != trial.Running {
		t.Errorf("%v, %d recovered, row %s", err, len(got), again.State)
	}
}
