package tuner_test

import (
	"fmt"
	"testing"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// longNight is a history of n trials of the founding case's shape, one in a few of them out of GPU memory. All
// configurations differ, as long as the space has so many.
func longNight(n int) (*tuner.Study, tuner.History) { return longNightOf(n, kimiSpace()) }

func longNightOf(n int, space tuner.Space) (*tuner.Study, tuner.History) {
	s := newStudy()
	s.Space = space
	points := s.Space.Size()
	var all []sglang.Config
	for c := range s.Space.All() {
		all = append(all, c)
	}
	var h tuner.History
	for i := range n {
		c := sglang.Merge(s.SearchBase(), all[(i*1009+17)%points])
		state := trial.Complete
		if observe(c).AfterGraphGiB < need(c) {
			state = trial.Failed
		}
		t := finished(i, c, state, speed(c))
		t.Memory, t.OwnRAM, t.MinRAM, t.Startup = observe(c), 9e9, -1, loadTime
		h = append(h, t)
	}
	h[0] = finished(0, s.Baseline, trial.Complete, speed(s.Baseline))
	h[0].Role, h[0].Memory, h[0].OwnRAM, h[0].MinRAM, h[0].Startup = trial.RoleBaseline, observe(s.Baseline), 9e9, -1, loadTime
	return s, h
}

// longRows are requests about as long as the founding case's.
var longRows = func() *benchmark.Workload {
	rows := make([]benchmark.Row, 200)
	for i := range rows {
		rows[i] = benchmark.Row{InputTokens: 1000 + i, OutputTokens: 3100 - i}
	}
	return benchmark.NewWorkload(rows, 500)
}()

// asked is the problem of an ask after a history.
func asked(s *tuner.Study, h tuner.History) tuner.Problem {
	p := tuner.StudyProblem(s, h, kimiHost, longRows)
	p.Admit = tuner.NewAdmission(s, h, kimiHost, tuner.NewFrontier(h).Check).Admit
	p.Remaining = 10
	return p
}

var nightLengths = []int{30, 120, 300, 1000}

// BenchmarkAsk is the proposal after one more trial, as a running study asks for it.
func BenchmarkAsk(b *testing.B) {
	for _, n := range nightLengths {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			const turns = 10
			s, h := longNight(n + turns)
			var sampler tuner.Sampler
			for i := 0; b.Loop(); i++ {
				if i%turns == 0 {
					b.StopTimer()
					sampler = newPhysics(b)
					propose(b, sampler, asked(s, h[:n-1]))
					b.StartTimer()
				}
				propose(b, sampler, asked(s, h[:n+i%turns]))
			}
		})
	}
}

// BenchmarkFresh is one proposal by a sampler that has seen nothing yet, as after a restart.
func BenchmarkFresh(b *testing.B) {
	for _, n := range nightLengths {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, h := longNight(n)
			for b.Loop() {
				propose(b, newPhysics(b), asked(s, h))
			}
		})
	}
}

// BenchmarkLearn is one look at a history for people, as `sgtune show` and a page take it.
func BenchmarkLearn(b *testing.B) {
	for _, n := range nightLengths {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, h := longNight(n)
			p := tuner.StudyProblem(s, h, kimiHost, nil)
			for b.Loop() {
				if l := tuner.Learn(p); l.Limit == nil || len(l.Importances) == 0 {
					b.Fatalf("%+v", l)
				}
			}
		})
	}
}

func newPhysics(tb testing.TB) tuner.Sampler {
	tb.Helper()
	sampler, err := tuner.NewSampler("physics")
	if err != nil {
		tb.Fatal(err)
	}
	return sampler
}

func propose(tb testing.TB, sampler tuner.Sampler, p tuner.Problem) tuner.Proposal {
	tb.Helper()
	proposal, err := sampler.Sample(tb.Context(), p)
	if err != nil {
		tb.Fatal(err)
	}
	return proposal
}
