package tuner

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/trial"
)

// anyTrial is a row as a night may leave it, odd ones included: no report, no windows, values of nothing, times
// that stand still, clients that hung.
func anyTrial(r *rand.Rand, n int) *trial.Trial {
	pick := func(values ...float64) float64 { return values[r.IntN(len(values))] }
	t := &trial.Trial{
		Number: n, Role: []trial.Role{trial.RoleBaseline, trial.RoleSearch, trial.RoleSearch, trial.RoleConfirm}[r.IntN(4)],
		State:  []trial.State{trial.Complete, trial.Complete, trial.Complete, trial.Pruned, trial.Failed, trial.Cancelled, trial.Running}[r.IntN(7)],
		Config: sglang.Config{memFraction: pick(0.8, 0.85, 0.9), hicacheSize: pick(0, 48)}, Plan: []int{120, 80}, Best: int(pick(80, 120, 0)),
	}
	if r.IntN(3) > 0 {
		t.EndedAt = nightBegins.Add(time.Duration(r.IntN(10)) * time.Hour)
	}
	if r.IntN(8) == 0 {
		t.Void = "somebody compiled a kernel"
	}
	for range r.IntN(3) {
		l := trial.Level{Concurrency: int(pick(80, 120, 120))}
		if r.IntN(5) > 0 {
			l.Report = &benchmark.Report{Valid: r.IntN(4) > 0, Pruned: r.IntN(4) == 0, OutputTokS: pick(0, 1e-9, 800, 900, 1e12), RequestsS: pick(0, 3)}
			l.Report.OutputHigh = l.Report.OutputTokS * pick(0, 1, 1.1)
			l.Report.OutputLow = l.Report.OutputTokS * pick(0, 0.9)
			for range r.IntN(12) {
				l.Report.Windows = append(l.Report.Windows, benchmark.Window{Output: pick(0, 700, 800, 900), Seconds: pick(0, 10, 30, 30), Steady: r.IntN(2) == 0})
			}
		}
		t.Levels = append(t.Levels, l)
	}
	if v := pick(0, 1e-12, 700, 800, 900, 1e15); r.IntN(3) > 0 {
		t.Value = &v
	}
	return t
}

// Whatever a night leaves behind, nothing that is judged by it is no number, and nothing panics.
func TestJudgementsOfAnyHistory(t *testing.T) {
	t.Parallel()
	runs := 3000
	if testing.Short() {
		runs = 500
	}
	for seed := range runs {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		var h History
		for n := range r.IntN(14) {
			h = append(h, anyTrial(r, n))
		}
		s := standingsOf(h)
		figures := []float64{
			s.noise.Launch, s.noise.Windows, s.noise.Between(), s.drift.Slope, s.drift.Low, s.drift.High, s.drift.PerHour, s.drift.SD,
		}
		for _, e := range s.of {
			figures = append(figures, e.Mean, e.SD, e.worth())
			if e.SD < 0 {
				t.Fatalf("seed %d: %+v", seed, e)
			}
		}
		base := sglang.Config{memFraction: 0.85}
		c := candidate(h, base, nil, s)
		figures = append(figures, c.gain, c.chance)
		if n := pairsFor(0, s.noise, c, Plan{}); n < leastPairs || n > mostPairs {
			t.Fatalf("seed %d: %d launches each", seed, n)
		}
		for _, metric := range []string{"output_tok_s", "requests_s", "goodput", "concurrency"} {
			o := Objective{Metric: metric, SLO: SLO{TTFTP95: time.Second}}
			best, _ := s.best()
			v := newSieve(o, h, best, s.noise, []float64{0, 850, math.MaxFloat64}[r.IntN(3)])
			figures = append(figures, v.goal, v.slack, v.noise.sd, v.noise.wide)
			v.hopeless(120, []float64{0, 700, 800, 1e9})
			v.hopeless(80, nil)
			v.allHopeless(trial.Level{Concurrency: 120, Report: &benchmark.Report{OutputTokS: 800, RequestsS: 3}}, []int{80, 40})
			value, _, ok := o.Score(h.levels())
			if ok {
				figures = append(figures, value)
			}
		}
		for i, f := range figures {
			if math.IsNaN(f) || math.IsInf(f, 0) && i < 8 {
				t.Fatalf("seed %d: figure %d is %g", seed, i, f)
			}
		}
	}
}

func (h History) levels() []trial.Level {
	var all []trial.Level
	for _, t := range h {
		all = append(all, t.Levels...)
	}
	return all
}
