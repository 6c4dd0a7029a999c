package tuner_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"sgtune/benchmark"
	"sgtune/host"
	"sgtune/trial"
	"sgtune/tuner"
)

// History implements tuner.HistoryReader: every night of these tests is decided by what the database reads of trials
// that ended (store.DB.History), and none of the rows it gives out can be saved.
func (s *memStore) History(ctx context.Context, study string) ([]*trial.Trial, error) {
	all, err := s.Trials(ctx, study)
	for _, t := range all {
		if t.State.Finished() {
			shorten(t)
		}
	}
	return all, err
}

func shorten(t *trial.Trial) {
	t.Argv, t.Process, t.GPUBaseline, t.Cache, t.Reason, t.Adoptions = nil, host.ID{}, nil, trial.Cache{Note: "left out"}, nil, nil
	if t.Role != trial.RoleBaseline {
		t.Steps = nil
	}
	v := &t.Verdict
	v.Numbers, v.Findings, v.Evidence, v.Also, v.Advice, v.FailingRanks, v.RejectedFlags = nil, nil, "", nil, nil, nil, nil
	for i, l := range t.Levels {
		if l.Report == nil {
			continue
		}
		r := *l.Report // the store's own otherwise
		r.Buckets, r.Series, r.ITLms, r.Arrivals, r.Client, r.SLO = nil, nil, nil, nil, benchmark.ClientReport{}, nil
		r.Setup, r.Workload, r.Energy, r.Flags, r.Errors, r.Advice = nil, nil, nil, nil, nil, ""
		t.Levels[i].Report = &r
	}
}

// mostOfEnded is what a trial that ended may hold in a sampler between two asks, beside the history it is asked with: what
// physics learnt of it, which grows no more from 100 trials on.
const mostOfEnded = 8 << 10

// No sampler keeps the trials that it was shown: the next ask brings them again, and both would lie in memory. Not
// parallel: others would count.
func TestSamplersKeepNoTrials(t *testing.T) {
	const padding = 32 << 10
	for _, name := range []string{"physics", "tpe", "random"} {
		t.Run(name, func(t *testing.T) {
			sampler, err := tuner.NewSampler(name)
			if err != nil {
				t.Fatal(err)
			}
			ask := func(n int) {
				s, h := longNightOf(n, kimiSpace()[:2])
				for _, row := range h {
					row.Argv = []string{fmt.Sprintf("%0*d", padding, row.Number)}
				}
				propose(t, sampler, asked(s, h))
			}
			ask(1)
			before := heap()
			const n = 16
			ask(n)
			held := (heap() - before) / n
			runtime.KeepAlive(sampler)
			t.Logf("%d bytes a trial", held)
			if held > mostOfEnded {
				t.Errorf("each of %d trials that ended holds %d bytes, want at most %d", n, held, mostOfEnded)
			}
		})
	}
}

// heap is the memory that is held now.
func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what pools kept through the first
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
