package tuner_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// queueing is a host whose latency grows with the clients a server cannot run at once, so that each objective
// has its own best level and configuration. It scores trials as the real runner does.
type queueing struct {
	*fakeRunner
	objective tuner.Objective
}

// slots is how many requests a configuration runs at once.
func slots(c sglang.Config) float64 { return 100 * speed(c) / speed(nil) }

func (q queueing) Run(ctx context.Context, t *trial.Trial) error {
	q.script = func(t *trial.Trial) *trial.Verdict {
		for _, n := range t.Plan {
			t.Levels = append(t.Levels, trial.Level{Concurrency: n, Report: q.level(t.Config, float64(n))})
			q.clock.advance(levelTime)
		}
		t.State, t.Startup, t.Memory = trial.Complete, loadTime, observe(t.Config)
		if v, best, ok := q.objective.Score(t.Levels); ok {
			t.Value, t.Best = &v, best
		}
		// Not OK, so that the fake does not measure by its own model.
		return &trial.Verdict{Outcome: trial.Degraded, Phase: sglang.PhaseDecode, Cause: "none", Blames: trial.BlameYes, Text: "ran"}
	}
	return q.fakeRunner.Run(ctx, t)
}

// level is what n clients see: all slots busy give 10 tok/s each, the others wait.
func (q queueing) level(c sglang.Config, n float64) *benchmark.Report {
	busy, chance := math.Min(n, slots(c)), 1+q.noise*q.rng.NormFloat64()
	ttft, e2e := 500+30_000*math.Max(0, n-busy)/busy, 30_000*n/busy
	r := &benchmark.Report{OutputTokS: 10 * busy * chance, RequestsS: busy * chance / 30, Valid: true}
	r.GoodputS = r.RequestsS * math.Exp(-math.Max(0, n-busy)/20)
	r.OutputLow, r.OutputHigh = r.OutputTokS*0.99, r.OutputTokS*1.01
	r.TTFTms, r.TPOTms = &benchmark.Distribution{P95: ttft}, &benchmark.Distribution{P95: 100}
	r.E2Ems = &benchmark.Distribution{P95: e2e}
	r.Requests.Sent, r.Requests.OK, r.Tokens.Got = 100, 100, 30_000
	return r
}

// Every objective and limit goes through a whole night: the value is the objective's at its best level that
// meets the limits, the verdict names the unit, and the hours of the whole job are said.
func TestObjectivesThroughTheNight(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		objective tuner.Objective
		unit      string
		level     int // of the winner
	}{
		{"output", tuner.Objective{Metric: "output_tok_s"}, "output tok/s at 160 clients", 160},
		{"output within TTFT", tuner.Objective{Metric: "output_tok_s", SLO: tuner.SLO{TTFTP95: 2 * time.Second}}, "output tok/s at 120 clients", 120},
		{"output within E2E", tuner.Objective{Metric: "output_tok_s", SLO: tuner.SLO{E2EP95: 31 * time.Second}}, "output tok/s at 120 clients", 120},
		{"requests", tuner.Objective{Metric: "requests_s"}, "requests/s at 160 clients", 160},
		{"goodput", tuner.Objective{Metric: "goodput", SLO: tuner.SLO{TTFTP95: time.Hour}}, "requests/s within the SLO at 120 clients", 120},
		{"clients", tuner.Objective{Metric: "concurrency", SLO: tuner.SLO{TTFTP95: 2 * time.Second}}, "makes 120 clients against the baseline's 80 clients", 120},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := smallStudy()
			s.Objective = tt.objective
			s.Workload = tuner.WorkloadSpec{Concurrency: []int{40, 80, 120, 160}, Total: 88_000}
			r := newRig(t, s)
			r.loop.Runner = queueing{r.runner, s.Objective}
			var last tuner.Status
			r.loop.Show = func(s tuner.Status) { last = s }
			v, err := r.loop.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if v.Answer != "better" || v.Level != tt.level || !strings.Contains(v.Text, tt.unit) {
				t.Errorf("%s at %d clients: %s", v.Answer, v.Level, v.Text)
			}
			checkPlans(t, r.trials(t), v.Level)
			if v.Total != 88_000 || v.Hours <= 0 || v.Hours >= v.BaselineHours || !strings.Contains(v.Text, "all 88,000 requests in ") || !strings.Contains(v.Text, " h instead of ") {
				t.Errorf("hours %g, now %g: %s", v.Hours, v.BaselineHours, v.Text)
			}
			if last.JobNow <= 0 || last.JobBest <= 0 || last.JobBest >= last.JobNow {
				t.Errorf("status: the whole job takes %g h now, %g h with the best", last.JobNow, last.JobBest)
			}
		})
	}
}

// checkPlans: baseline and confirmation measure all levels, the search the best so far and its upper neighbour,
// always the busiest first.
func checkPlans(t *testing.T, h tuner.History, best int) {
	t.Helper()
	for _, row := range h {
		if row.Role != trial.RoleSearch && len(row.Plan) != 4 || row.Role == trial.RoleSearch && len(row.Plan) > 2 {
			t.Errorf("trial %d (%s) measures %v", row.Number, row.Role, row.Plan)
		}
		for i := 1; i < len(row.Plan); i++ {
			if row.Plan[i] > row.Plan[i-1] {
				t.Errorf("trial %d measures %v: the busiest level comes first", row.Number, row.Plan)
			}
		}
	}
	if last := h.Role(trial.RoleSearch); last[len(last)-1].Plan[len(last[len(last)-1].Plan)-1] > best {
		t.Errorf("the last search trial measures %v, the best level is %d", last[len(last)-1].Plan, best)
	}
}

// A night in which nothing meets the limits says so and does not call anything better.
func TestNothingMeetsTheSLO(t *testing.T) {
	t.Parallel()
	s := smallStudy()
	s.Objective = tuner.Objective{Metric: "output_tok_s", SLO: tuner.SLO{TTFTP95: time.Millisecond}}
	r := newRig(t, s)
	r.loop.Runner = queueing{r.runner, s.Objective}
	v, err := r.loop.Run(t.Context())
	if err != nil || v.Answer != "not confirmed" || !strings.Contains(v.Text, "met the SLO at no load level") {
		t.Errorf("%+v, %v", v, err)
	}
}
