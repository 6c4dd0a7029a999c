package tuner_test

import (
	"math"
	"testing"
	"time"

	"sgtune/sglang"
	"sgtune/tuner"
)

// rig is a study with everything it needs.
type rig struct {
	study  *tuner.Study
	store  *memStore
	clock  *fakeClock
	host   *fakeHost
	runner *fakeRunner
	loop   *tuner.Loop
}

func grid(lo, hi, step float64) []any {
	var out []any
	for v := lo; v < hi+step/2; v += step {
		out = append(out, math.Round(v*1000)/1000)
	}
	return out
}

func kimiSpace() tuner.Space {
	return tuner.Space{
		{Name: "mem-fraction-static", Kind: tuner.Numeric, Values: grid(0.80, 0.93, 0.005)},
		{Name: "hicache-size", Kind: tuner.Numeric, Values: []any{0.0, 16.0, 24.0, 32.0, 40.0, 48.0}},
		{Name: "chunked-prefill-size", Kind: tuner.Numeric, Values: []any{4096.0, 8192.0, 16384.0}},
		{Name: "schedule-conservativeness", Kind: tuner.Numeric, Values: grid(0.3, 1.3, 0.1)},
	}
}

func newStudy() *tuner.Study {
	return &tuner.Study{
		Name: "night", Server: sglang.Server{Command: []string{"sim"}, Flags: sglang.Config{"tp-size": 8.0}},
		Baseline: sglang.Config{"mem-fraction-static": 0.85}, Passed: sglang.Config{"kv-cache-dtype": "bf16"},
		Space: kimiSpace(), Workload: tuner.WorkloadSpec{Concurrency: []int{120}},
		Objective: tuner.Objective{Metric: "output_tok_s"}, Quality: "bf16-only", Seed: 1,
		Budget: tuner.Budget{Trials: 19}, Confirm: 3, Simulated: true,
		Before: []string{"stop-service"}, After: []string{"start-service"},
	}
}

func newRig(t *testing.T, s *tuner.Study) *rig {
	t.Helper()
	store, clock := newStore(), newClock()
	r := &rig{study: s, store: store, clock: clock, host: newHost(store), runner: newRunner(store, clock, uint64(s.Seed))}
	r.restart(t)
	return r
}

// restart is a new run of the program on the same database.
func (r *rig) restart(t *testing.T) {
	t.Helper()
	sampler, err := tuner.NewSampler(r.study.Sampler)
	if err != nil {
		t.Fatal(err)
	}
	r.loop = &tuner.Loop{
		Study: r.study, Record: r.store.Record(), Store: r.store, Runner: r.runner, Host: r.host,
		Clock: r.clock, Sampler: sampler, Poll: time.Millisecond,
	}
}

func (r *rig) trials(t *testing.T) tuner.History {
	t.Helper()
	h, err := r.store.Trials(t.Context(), r.study.Name)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// runUntilKilled runs the study; killed says that the store ended the program.
func (r *rig) runUntilKilled(t *testing.T) (v *tuner.Verdict, killed bool, err error) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			if p != any(errKilled) {
				panic(p)
			}
			killed = true
		}
	}()
	v, err = r.loop.Run(t.Context())
	return v, false, err
}
