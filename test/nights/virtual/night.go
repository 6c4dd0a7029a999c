package virtual

import (
	"context"
	"fmt"
	"time"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// Options are one night's.
type Options struct {
	Seed    int64  // of sampler and machine
	Sampler string // "" = the study's
	Noise   Noise
	Trials  int         // baseline and search launches, 0 = the study's budget; the study's wall time does not hold
	Store   tuner.Store // nil = one in memory; Night.Events are empty with another
}

// Night is what a night ended with.
type Night struct {
	Verdict *tuner.Verdict
	Config  sglang.Config // what the person is told to run: the confirmed one, or what runs today
	Trials  tuner.History
	Events  []tuner.Event
	Hours   float64       // host time of all trials
	Took    time.Duration // real time
}

// Run runs the whole study: hand over, baseline, search, confirmation, verdict.
func (j *Judge) Run(ctx context.Context, o Options) (*Night, error) {
	s := *j.study
	s.Seed, s.Host.Seed = o.Seed, o.Seed
	s.Budget.Wall, s.Budget.Until = 0, ""
	if o.Trials > 0 {
		s.Budget.Trials = o.Trials
	}
	if o.Sampler != "" {
		s.Sampler = o.Sampler
	}
	sampler, err := tuner.NewSampler(s.Sampler)
	if err != nil {
		return nil, err
	}
	host, err := machineOf(&s)
	if err != nil {
		return nil, err
	}
	store, memory, clock, began := o.Store, newMemory(), newClock(), time.Now()
	if store == nil {
		store = memory
	}
	loop := &tuner.Loop{
		Study: &s, Store: store, Host: host, Clock: clock, Sampler: sampler, Workload: j.rows.w,
		Poll: time.Hour, // nobody sends commands
	}
	loop.Runner = &runner{
		study: &s, rows: j.rows, store: store, clock: clock, noise: o.Noise, seed: o.Seed,
		prune: loop.Prune, hopeless: loop.Hopeless, more: loop.More,
	}
	verdict, err := loop.Run(ctx)
	if err != nil {
		return nil, fmt.Errorf("night %d of %s: %w", o.Seed, s.Name, err)
	}
	trials, err := store.Trials(ctx, s.Name)
	if err != nil {
		return nil, err
	}
	n := &Night{Verdict: verdict, Config: s.Baseline, Trials: trials, Events: memory.events, Took: time.Since(began)}
	if verdict.Answer == benchmark.AnswerBetter {
		n.Config = verdict.Config
	}
	for _, t := range trials {
		n.Hours += t.EndedAt.Sub(t.StartedAt).Hours()
	}
	return n, nil
}

// Kept reports whether the night's answer is to keep what runs.
func (n *Night) Kept() bool { return n.Verdict.Answer != benchmark.AnswerBetter }

// Crashes are the launches that ended by the configuration's fault, the host's memory left out.
func (n *Night) Crashes() int {
	return n.count(func(t *trial.Trial) bool { return t.State == trial.Failed && t.Verdict.Outcome != trial.HostOOM })
}

// HostOOMs are the launches that ran out of host memory or were refused for it.
func (n *Night) HostOOMs() int {
	return n.count(func(t *trial.Trial) bool { return t.Verdict.Outcome == trial.HostOOM })
}

func (n *Night) count(what func(*trial.Trial) bool) int {
	sum := 0
	for _, t := range n.Trials {
		if what(t) {
			sum++
		}
	}
	return sum
}

// Trace lists the trials as a person would want to see them.
func (n *Night) Trace() []string {
	var lines []string
	for _, t := range n.Trials {
		value := 0.0
		if t.Value != nil {
			value = *t.Value
		}
		lines = append(lines, fmt.Sprintf("%2d %-8s %-8s %-9s %7.1f @%-3d low %5.2f free %5.2f %-18s %v | %s", t.Number, t.Role, t.Sampler, t.State, value,
			t.Best, float64(t.LowWater)/(1<<30), t.Memory.AfterGraphGiB, t.Verdict.Cause, t.Config.Key(), t.Why))
	}
	return append(lines, n.Verdict.Text)
}
