package tuner

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/trial"
)

// levelOf is a measured load level of these windows (output tok/s, 10 s each), steady from a window on.
func levelOf(clients, steady int, windows ...float64) trial.Level {
	r := &benchmark.Report{Valid: true}
	for i, w := range windows {
		r.Windows = append(r.Windows, benchmark.Window{Output: w, Seconds: 10, Steady: i >= steady})
		if i >= steady {
			r.OutputTokS += w / float64(len(windows)-steady)
		}
	}
	r.RequestsS = r.OutputTokS / 100
	return trial.Level{Concurrency: clients, Report: r}
}

// Equal work is paired, not equal time: what is heavy for one is heavy for the other, and a trial that is a
// fifth slower shows 0.8 in every window, wherever the heavy rows are.
func TestPace(t *testing.T) {
	t.Parallel()
	p, ok := progressOf(levelOf(80, 1, 20, 100, 100, 50, 50, 100, 100, 100))
	if !ok {
		t.Fatal("no progress")
	}
	tests := []struct {
		name    string
		windows []float64
		want    []float64
	}{
		{"the same", []float64{20, 100, 100, 50, 50, 100}, []float64{1, 1, 1, 1, 1}},
		{"a fifth slower", []float64{16, 64, 80, 70, 40, 40, 70}, []float64{0.8, 0.8, 0.8, 0.8, 0.8}},
		{"twice as fast, beyond the end", []float64{120, 150, 150, 200, 171.4, 171.4}, []float64{2, 2, 2, 2, 2}},
		{"stands still", []float64{20, 0, 0}, []float64{0, 0}},
		{"never gets through the opening", []float64{1, 1, 1, 1}, []float64{0.05, 0.05}},
		{"nothing yet", nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := p.pace(tt.windows, 10, false)
			if d := cmp.Diff(tt.want, got, cmpopts.EquateApprox(0, 0.001), cmpopts.EquateEmpty()); d != "" {
				t.Errorf("pace (-want +got):\n%s", d)
			}
		})
	}
	if d := cmp.Diff([]float64{1, 0.5}, p.pace([]float64{20, p.rate, p.rate / 2}, 10, true), cmpopts.EquateApprox(0, 1e-9)); d != "" {
		t.Errorf("flat pace (-want +got):\n%s", d)
	}
	for name, l := range map[string]trial.Level{"no report": {}, "one window": levelOf(80, 0, 5), "no output": levelOf(80, 0, 0, 0, 0)} {
		if _, ok := progressOf(l); ok {
			t.Errorf("%s: something to compare with", name)
		}
	}
}

// study is a history of trials whose two levels have the given values; windows vary a little.
func studyOf(values ...[2]float64) History {
	var h History
	for i, v := range values {
		wave := func(mean float64) []float64 {
			out := make([]float64, 10)
			for k := range out {
				out[k] = mean * (1 + 0.01*math.Sin(float64(3*k+i)))
			}
			return out
		}
		busy, calm := levelOf(120, 0, wave(v[0])...), levelOf(80, 0, wave(v[1])...)
		best := math.Max(busy.Report.OutputTokS, calm.Report.OutputTokS)
		h = append(h, &trial.Trial{
			Number: i, Role: trial.RoleSearch, State: trial.Complete, Value: &best, Best: 120, Config: sglang.Config{"knob": float64(i)},
			Plan: []int{120, 80}, Levels: []trial.Level{busy, calm},
		})
	}
	return h
}

func sieveOf(o Objective, h History, below float64) sieve {
	st := standingsOf(h)
	best, _ := st.best()
	return newSieve(o, h, best, st.noise, below)
}

func times(v float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = v
	}
	return out
}

func TestSieve(t *testing.T) {
	t.Parallel()
	h := studyOf([2]float64{800, 780}, [2]float64{900, 880}, [2]float64{1000, 980}, [2]float64{950, 930})
	output := Objective{Metric: "output_tok_s"}
	tests := []struct {
		name      string
		objective Objective
		history   History
		below     float64
		clients   int
		windows   []float64
		want      bool
	}{
		{"far below", output, h, 0, 120, times(700, 8), true},
		{"a single window", output, h, 0, 120, times(100, 1), false},
		{"just below", output, h, 0, 120, times(930, 8), false},
		{"as good", output, h, 0, 120, times(1000, 8), false},
		{"better", output, h, 0, 120, times(1200, 8), false},
		{"clients that were never measured", output, h, 0, 160, times(100, 8), false},
		{"nothing to compare with", output, nil, 0, 120, times(100, 8), false},
		{"the sampler's limit is lower: the loop's counts", output, h, 500, 120, times(700, 8), true},
		{"the sampler's limit is higher", output, h, 990, 120, times(900, 8), true},
		{"the sampler's limit is above the best: the best counts", output, h, 5000, 120, times(1000, 8), false},
		{"requests", Objective{Metric: "requests_s"}, h, 0, 120, times(700, 8), true},
		{"clients within the SLO: windows say nothing", Objective{Metric: "concurrency"}, h, 0, 120, times(1, 8), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.objective.Metric == "requests_s" {
				for _, row := range tt.history {
					v := *row.Value / 100
					row := *row
					row.Value = &v
				}
			}
			s := sieveOf(tt.objective, tt.history, tt.below)
			if tt.objective.Metric == "requests_s" {
				s.goal /= 100 // the rows' values are in tok/s
			}
			if got := s.hopeless(tt.clients, tt.windows); got != tt.want {
				t.Errorf("hopeless %v, goal %g", got, s.goal)
			}
		})
	}
}

// A hopeless level ends the trial only where the levels left cannot make up for it: by how much they differed
// in other trials, and how sure that is.
func TestAllHopeless(t *testing.T) {
	t.Parallel()
	alike := studyOf([2]float64{800, 785}, [2]float64{900, 880}, [2]float64{1000, 985}, [2]float64{950, 930}, [2]float64{700, 690}, [2]float64{880, 865})
	apart := studyOf([2]float64{600, 900}, [2]float64{900, 880}, [2]float64{500, 985}, [2]float64{950, 630})
	once := studyOf([2]float64{1000, 980})
	output := Objective{Metric: "output_tok_s"}
	tests := []struct {
		name string
		h    History
		last trial.Level
		left []int
		want bool
	}{
		{"the last level", alike, levelOf(120, 0, times(700, 6)...), nil, true},
		{"the lower level was always about the same", alike, levelOf(120, 0, times(600, 6)...), []int{80}, true},
		{"it was often far better", apart, levelOf(120, 0, times(600, 6)...), []int{80}, false},
		{"one trial is little to go by", once, levelOf(120, 0, times(800, 6)...), []int{80}, false},
		{"one trial, but far below", once, levelOf(120, 0, times(400, 6)...), []int{80}, true},
		{"a level that was never measured", alike, levelOf(120, 0, times(400, 6)...), []int{40}, false},
		{"nothing measured", alike, trial.Level{Concurrency: 120}, []int{80}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := sieveOf(output, tt.h, 0).allHopeless(tt.last, tt.left); got != tt.want {
				t.Errorf("hopeless %v", got)
			}
		})
	}
}

// A search trial whose levels all missed the SLO gets the next lower one, unless nothing can come of it.
func TestMoreLevels(t *testing.T) {
	t.Parallel()
	h := studyOf([2]float64{800, 785}, [2]float64{900, 880}, [2]float64{1000, 985}, [2]float64{950, 930}, [2]float64{700, 690}, [2]float64{880, 865})
	late := func(l trial.Level) trial.Level { l.Report.TTFTms = &benchmark.Distribution{P95: 9000}; return l }
	prompt := func(l trial.Level) trial.Level { l.Report.TTFTms = &benchmark.Distribution{P95: 100}; return l }
	cut := func(l trial.Level) trial.Level { l.Report.Pruned = true; return l }
	fast, slow := levelOf(120, 0, times(1000, 6)...), levelOf(120, 0, times(500, 6)...)
	limited := Objective{Metric: "output_tok_s", SLO: SLO{TTFTP95: time.Second}}
	tests := []struct {
		name      string
		objective Objective
		role      trial.Role
		levels    []trial.Level
		want      int // 0 = none
	}{
		{"missed", limited, trial.RoleSearch, []trial.Level{late(fast)}, 80},
		{"met", limited, trial.RoleSearch, []trial.Level{prompt(levelOf(120, 0, times(1000, 6)...))}, 0},
		{"missed twice", limited, trial.RoleSearch, []trial.Level{late(fast), late(levelOf(80, 0, times(990, 6)...))}, 40},
		{"missed everywhere", limited, trial.RoleSearch, []trial.Level{late(levelOf(40, 0, times(990, 6)...))}, 0},
		{"too slow to come to anything", limited, trial.RoleSearch, []trial.Level{late(slow)}, 0},
		{"stopped early", limited, trial.RoleSearch, []trial.Level{cut(late(levelOf(120, 0, times(500, 6)...)))}, 0},
		{"no SLO", Objective{Metric: "output_tok_s"}, trial.RoleSearch, []trial.Level{late(fast)}, 0},
		{"the baseline measures all levels anyway", limited, trial.RoleBaseline, []trial.Level{late(fast)}, 0},
		{"nothing measured", limited, trial.RoleSearch, nil, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := &Loop{Study: &Study{Objective: tt.objective, Workload: WorkloadSpec{Concurrency: []int{40, 80, 120}}}}
			l.running.of = map[int]*inFlight{7: {best: sieveOf(Objective{Metric: "output_tok_s"}, h, 0)}}
			got, ok := l.More(&trial.Trial{Number: 7, Role: tt.role, Levels: tt.levels})
			if ok != (tt.want > 0) || ok && got != tt.want {
				t.Errorf("%d, %v, want %d", got, ok, tt.want)
			}
		})
	}
}

// The value of a trial that was given up is a bound: its SLO does not matter. Beside a level in full a bound
// counts for nothing.
func TestScoreOfPrunedLevels(t *testing.T) {
	t.Parallel()
	o := Objective{Metric: "output_tok_s", SLO: SLO{TTFTP95: time.Second}}
	level := func(clients int, tokS, ttft float64, pruned bool) trial.Level {
		l := levelOf(clients, 0, times(tokS, 6)...)
		l.Report.TTFTms, l.Report.Pruned = &benchmark.Distribution{P95: ttft}, pruned
		return l
	}
	for _, tt := range []struct {
		name   string
		levels []trial.Level
		value  float64
		best   int
	}{
		{"all given up", []trial.Level{level(120, 500, 9000, true), level(80, 510, 9000, true)}, 510, 80},
		{"one in full", []trial.Level{level(120, 900, 100, true), level(80, 510, 100, false)}, 510, 80},
		{"one in full that missed the SLO", []trial.Level{level(120, 900, 100, true), level(80, 510, 9000, false)}, 0, 0},
	} {
		value, best, ok := o.Score(tt.levels)
		if value != tt.value || best != tt.best || ok != (tt.best > 0) {
			t.Errorf("%s: %g at %d, %v", tt.name, value, best, ok)
		}
	}
}
