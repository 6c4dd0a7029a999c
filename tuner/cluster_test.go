package tuner_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// cluster runs several trials at the same time in virtual time. The clock moves to the next end of one once as many
// run as may, or when for a moment nothing was added to those that run.
type cluster struct {
	clock *fakeClock
	store *memStore
	loop  func() *tuner.Loop
	takes func(t *trial.Trial) time.Duration              // nil = some seconds more than the one before it
	each  func(ctx context.Context, t *trial.Trial) error // at the end of a trial's work; nil or nil error = it ran

	mu     sync.Mutex
	active map[int]trial.Role
	most   int
	beside []string // trials that ran beside one that must be alone
	begun  int      // changes with each begin and end, and each proposal
	asking bool     // the sampler is at work, which takes real time
}

// patient is a sampler for whose answers a cluster's clock waits.
type patient struct {
	tuner.Sampler
	c *cluster
}

// Sample implements tuner.Sampler.
func (s patient) Sample(ctx context.Context, p tuner.Problem) (tuner.Proposal, error) {
	s.c.asks(true)
	defer s.c.asks(false)
	return s.Sampler.Sample(ctx, p)
}

func (c *cluster) asks(now bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking, c.begun = now, c.begun+1
}

// hand has a rig's loop run its trials on the cluster.
func (c *cluster) hand(r *rig) { r.loop.Runner, r.loop.Sampler = c, patient{r.loop.Sampler, c} }

// settled is real time in which nothing was launched, after which the clock moves though more might be.
const settled = 60 * time.Millisecond

// newCluster is a study on a cluster of three hosts, and the rig that runs it.
func newCluster(t *testing.T, s *tuner.Study) (*rig, *cluster) {
	t.Helper()
	s.Host.Kind, s.Host.Slurm.Parallel = tuner.HostSlurm, 3
	if s.Sampler == "" {
		s.Sampler = "random"
	}
	r := newRig(t, s)
	c := &cluster{clock: r.clock, store: r.store, active: map[int]trial.Role{}, loop: func() *tuner.Loop { return r.loop }}
	c.hand(r)
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		c.drive(stop, 3)
	}()
	t.Cleanup(func() { close(stop); <-ended })
	return r, c
}

// takeOver puts what a killed program left in the store, and its time, into a new one's hands.
func (c *cluster) takeOver(t *testing.T, r, killed *rig) {
	t.Helper()
	killed.store.mu.Lock()
	defer killed.store.mu.Unlock()
	maps.Copy(r.store.rows, killed.store.rows)
	r.store.record = killed.store.record
	r.clock.advance(killed.clock.Now().Sub(r.clock.Now()))
	r.restart(t)
	c.hand(r)
}

// drive moves the clock.
func (c *cluster) drive(stop chan struct{}, most int) {
	last, since := 0, time.Now()
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Millisecond):
		}
		c.mu.Lock()
		running, begun, asking := len(c.active), c.begun, c.asking
		c.mu.Unlock()
		if begun != last {
			last, since = begun, time.Now()
		}
		if running == most || running > 0 && !asking && time.Since(since) > settled {
			c.clock.advance(time.Second)
		}
	}
}

func (c *cluster) enter(t *trial.Trial) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.active[t.Number] = t.Role
	c.most, c.begun = max(c.most, len(c.active)), c.begun+1
	if len(c.active) > 1 {
		for n, role := range c.active {
			if role != trial.RoleSearch {
				c.beside = append(c.beside, fmt.Sprintf("trial %d (%s) ran beside others", n, role))
			}
		}
	}
}

func (c *cluster) leave(t *trial.Trial) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.active, t.Number)
	c.begun++
}

// running are the numbers of the trials that run.
func (c *cluster) running() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []int
	for n := range c.active {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// Run implements tuner.TrialRunner. Each trial takes some seconds more than the one before it, so that their order
// of ends is known.
func (c *cluster) Run(ctx context.Context, t *trial.Trial) error {
	c.enter(t)
	defer c.leave(t)
	if row := rowOf(c.store, t.Number); row == nil || row.State != trial.Waiting {
		return fmt.Errorf("trial %d was not stored as waiting before its launch: %+v", t.Number, row)
	}
	t.State, t.StartedAt = trial.Running, c.clock.Now()
	if err := c.store.SaveTrial(context.WithoutCancel(ctx), t); err != nil {
		return err
	}
	long := 30*time.Second + time.Duration(t.Number%5)*7*time.Second
	if c.takes != nil {
		long = c.takes(t)
	}
	select {
	case <-c.clock.After(long):
	case <-ctx.Done():
	}
	t.Memory, t.EndedAt = observe(t.Config), c.clock.Now()
	err := c.judge(ctx, t)
	if saved := c.store.SaveTrial(context.WithoutCancel(ctx), t); saved != nil {
		return saved
	}
	return err
}

func (c *cluster) judge(ctx context.Context, t *trial.Trial) error {
	if ctx.Err() != nil {
		r := &fakeRunner{}
		t.Verdict = *r.verdict(ctx, t)
		if t.State == trial.Running {
			t.State = trial.Failed
		}
		return nil
	}
	if c.each != nil {
		if err := c.each(ctx, t); err != nil {
			t.State, t.Verdict = trial.Failed, trial.Verdict{Outcome: trial.DirtyHost, Cause: "memory_held", Blames: trial.BlameNo, Text: err.Error()}
			t.Release = trial.ReleaseDirty
			return err
		}
	}
	t.Release = trial.ReleaseVerified
	if t.Memory.AfterGraphGiB < need(t.Config) {
		t.State = trial.Failed
		t.Verdict = trial.Verdict{Outcome: trial.GPUOOM, Phase: sglang.PhasePrefill, Cause: "prefill_activation", Blames: trial.BlameYes, Text: "out of GPU memory in prefill"}
		return nil
	}
	t.State, t.Startup = trial.Complete, loadTime
	t.Verdict = trial.Verdict{Outcome: trial.OK, Phase: sglang.PhaseDecode, Cause: "none", Blames: trial.BlameYes, Text: "ran"}
	for _, n := range t.Plan {
		v := speed(t.Config) * (1 + 0.002*float64(t.Number%3))
		rep := &benchmark.Report{OutputTokS: v, OutputLow: v * 0.99, OutputHigh: v * 1.01, Valid: true}
		for range 6 {
			rep.Windows = append(rep.Windows, benchmark.Window{Output: v, Seconds: 10})
		}
		rep.Requests.Sent, rep.Requests.OK, rep.Tokens.Got = 100, 100, 30000
		t.Levels = append(t.Levels, trial.Level{Concurrency: n, Report: rep})
		t.Value, t.Best = &v, n
	}
	return nil
}

func rowOf(s *memStore, number int) *trial.Trial {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rows[number]
}
