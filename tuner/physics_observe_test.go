package tuner

import (
	"math"
	"testing"
	"time"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner/physics"
)

// kinds of endings by what the search may learn from them: only what blames the configuration counts.
func TestStatusOfTrial(t *testing.T) {
	t.Parallel()
	value, zero := 100.0, 0.0
	failed := func(outcome trial.Outcome, cause string, phase sglang.Phase, blames trial.Blame) *trial.Trial {
		return &trial.Trial{State: trial.Failed, Verdict: trial.Verdict{Outcome: outcome, Cause: cause, Phase: phase, Blames: blames}}
	}
	level := []trial.Level{{Concurrency: 40, Report: &benchmark.Report{Valid: true}}}
	tests := []struct {
		name  string
		trial *trial.Trial
		want  physics.Status
		ok    bool
	}{
		{"measured", &trial.Trial{State: trial.Complete, Value: &value}, physics.OK, true},
		{"measured and degraded by its own settings", &trial.Trial{State: trial.Complete, Value: &value, Verdict: trial.Verdict{Outcome: trial.Degraded, Cause: "retraction_storm", Blames: trial.BlameYes}}, physics.OK, true},
		{"throttled", &trial.Trial{State: trial.Complete, Value: &value, Verdict: trial.Verdict{Outcome: trial.Degraded, Cause: "throttled", Blames: trial.BlameNo}}, 0, false},
		{"void", &trial.Trial{State: trial.Complete, Value: &value, Void: "contaminated"}, 0, false},
		{"running", &trial.Trial{State: trial.Running}, 0, false},
		{"cancelled", &trial.Trial{State: trial.Cancelled, Value: &value}, 0, false},
		{"pruned", &trial.Trial{State: trial.Pruned, Value: &value}, physics.Pruned, true},
		{"pruned before any level", &trial.Trial{State: trial.Pruned}, physics.Started, true},
		{"no level meets the SLO", &trial.Trial{State: trial.Complete, Levels: level}, physics.Worthless, true},
		{"goodput of 0", &trial.Trial{State: trial.Complete, Levels: level, Value: &zero}, physics.Worthless, true},
		{"no room for the pool", failed(trial.GPUOOM, "kv_pool_nonpositive", sglang.PhaseKVPool, trial.BlameYes), physics.StartOOM, true},
		{"graphs", failed(trial.GPUOOM, "graph_capture_oom", sglang.PhaseGraphCapture, trial.BlameYes), physics.StartOOM, true},
		{"prefill", failed(trial.GPUOOM, "prefill_activation", sglang.PhasePrefill, trial.BlameYes), physics.LoadOOM, true},
		{"prefill of the warm-up request", failed(trial.GPUOOM, "prefill_activation", sglang.PhaseWarmup, trial.BlameYes), physics.StartOOM, true},
		{"somebody else's memory", failed(trial.GPUOOM, "prefill_activation", sglang.PhasePrefill, trial.BlameNo), 0, false},
		{"host", failed(trial.HostOOM, "cgroup_limit", sglang.PhaseHostPool, trial.BlameYes), physics.HostOOM, true},
		{"refused flag", failed(trial.ConfigRejected, "unsupported_combination", sglang.PhaseLaunch, trial.BlameYes), physics.Crashed, true},
		{"crash", failed(trial.Crashed, "python_exception", sglang.PhaseWeightLoad, trial.BlameYes), physics.Crashed, true},
		{"crash by the machine", failed(trial.Crashed, "nccl_error", sglang.PhaseDistInit, trial.BlameNo), 0, false},
		{"stuck once", failed(trial.Stuck, "no_progress", sglang.PhaseDecode, trial.BlamePartly), 0, false},
		{"answers too bad", failed(trial.QualityRejected, "lossy_kv", sglang.PhaseBench, trial.BlameYes), physics.Worthless, true},
		{"aborted", failed(trial.Aborted, "operator_signal", sglang.PhaseDecode, trial.BlameNo), 0, false},
	}
	for _, tt := range tests {
		got, ok := statusOf(Problem{}, tt.trial)
		if ok != tt.ok || ok && got != tt.want {
			t.Errorf("%s: status %d, %v; want %d, %v", tt.name, got, ok, tt.want, tt.ok)
		}
	}
}

// A fault that may be the configuration's counts once it has happened twice.
func TestPartlyBlamedTwice(t *testing.T) {
	t.Parallel()
	p := codedProblem()
	stuck := func(n int) *trial.Trial {
		return &trial.Trial{Number: n, Config: p.config(sglang.Config{pageSize: 64.0}), State: trial.Failed, LowWater: -1, Verdict: trial.Verdict{Outcome: trial.Stuck, Blames: trial.BlamePartly}}
	}
	p.History = []*trial.Trial{stuck(1), stuck(2)}
	if _, ok := statusOf(p, p.History[0]); ok {
		t.Error("the first time was learnt from")
	}
	if status, ok := statusOf(p, p.History[1]); !ok || status != physics.Crashed {
		t.Errorf("the second time: %v %v, want crashed", status, ok)
	}
}

func TestObservationOfTrial(t *testing.T) {
	t.Parallel()
	p := codedProblem()
	base := baselineTrial(p)
	v := 120.0
	mean := 37.5
	tr := &trial.Trial{
		Number: 1, Role: trial.RoleSearch, State: trial.Complete, Value: &v, Best: 120, Plan: []int{160, 120}, LowWater: 3 << 30, MaxRunning: 41,
		Config:  p.config(sglang.Config{memFraction: 0.88, hicacheSize: 0.0, chunkedSize: 8192.0, "enable-mixed-chunk": true, "env.NCCL_ALGO": "Tree", maxRunning: 64.0, pageSize: 16.0}),
		Memory:  sglang.Observation{Fraction: 0.88, BeforeLoadGiB: 94.04, AfterLoadGiB: 21.71, KVGiB: 10.42, Tokens: 159277, AfterPoolGiB: 11.3, AvailableGiB: 5.47},
		Startup: 3 * time.Minute, StartedAt: time.Unix(0, 0), EndedAt: time.Unix(1200, 0), Verdict: trial.Verdict{Outcome: trial.OK, Blames: trial.BlameYes},
		Levels: []trial.Level{
			{Concurrency: 160, Report: &benchmark.Report{OutputTokS: 110, Valid: true}},
			{Concurrency: 120, Report: &benchmark.Report{OutputTokS: 120, OutputLow: 117.648, OutputHigh: 122.352, CacheHitRatio: 0.4, Valid: true, Server: &benchmark.ServerView{RunningMean: &mean}}},
		},
	}
	tr.Levels[1].Report.Tokens.Prompt = 1000
	p.History = []*trial.Trial{base, tr}
	s := newCodedSpace(p)
	o, ok := s.observe(p, tr)
	if !ok || o.Status != physics.OK || o.Value != 120 || math.Abs(o.RelSD-0.01) > 1e-6 || o.Frac != 1 || o.Running != 37.5 || o.HitRatio != 0.4 {
		t.Errorf("measurement %+v, %v", o, ok)
	}
	if o.Tokens != 159277 || o.AfterGraphGiB != 5.47 || o.LowWaterGiB != 3 || o.StartupMin != 3 || o.CostMin != 20 || o.AfterKVGiB != 11.3 {
		t.Errorf("memory %+v", o)
	}
	if !o.Point.Equal(s.coded.Mask(o.Point, s.start)) {
		t.Errorf("a dead knob stands at %v, not where today has it", o.Point)
	}
	tr.Memory.MaxTotalTokens = 159277
	if o, _ := s.observe(p, tr); !math.IsNaN(o.Tokens) || !math.IsNaN(o.AfterGraphGiB) {
		t.Error("a pool that the user capped was taken for what the memory gives")
	}
	enqueued := *tr
	enqueued.Config = sglang.Merge(tr.Config, sglang.Config{"disable-overlap-schedule": true})
	if o, ok := s.observe(p, &enqueued); !ok || o.RelSD < foreignSD {
		t.Errorf("flags outside of the space: %v %v, want it blurred", o.RelSD, ok)
	}
	lossy := *tr
	lossy.Memory.KVDtype = "torch.float8_e4m3fn"
	if _, ok := s.observe(p, &lossy); ok {
		t.Error("the search takes bf16, and an fp8 launch was learnt from")
	}
	early := *tr
	early.State, early.Levels = trial.Pruned, []trial.Level{{Concurrency: 160, Report: &benchmark.Report{Seconds: 60}}}
	for _, l := range tr.Levels {
		l.Report.Seconds = 300
	}
	if o, _ := s.observe(p, &early); o.Frac != 0.1 || o.Status != physics.Pruned {
		t.Errorf("a minute of ten: %+v", o)
	}
}

// Other objectives are scaled to tokens for the engine, and back for people.
func TestObjectivesAreScaled(t *testing.T) {
	t.Parallel()
	p := codedProblem()
	p.Objective = Objective{Metric: "requests_s"}
	base := baselineTrial(p)
	v := 0.5
	base.Value, base.Best, base.Levels = &v, 40, []trial.Level{{Concurrency: 40, Report: &benchmark.Report{OutputTokS: 500}}}
	p.History = []*trial.Trial{base}
	m := newModel(p)
	if o, _ := m.code.observe(p, base); o.Value != 500 {
		t.Errorf("0.5 requests/s are told as %v", o.Value)
	}
	got, ok := (&view{m}).of(base.Config)
	if !ok || got.Mean < 0.3 || got.Mean > 0.8 {
		t.Errorf("expected %v requests/s, want about 0.5", got.Mean)
	}
}

func TestLoadOf(t *testing.T) {
	t.Parallel()
	rows := []benchmark.Row{
		{InputTokens: 1000, OutputTokens: 100, HashIDs: []int64{1, 2}}, {InputTokens: 1000, OutputTokens: 300, HashIDs: []int64{1, 3}},
	}
	p := Problem{Workload: benchmark.NewWorkload(rows, 500), Levels: []int{40, 160, 80}}
	if l := loadOf(p); l != (physics.Load{Clients: 160, InputTokens: 1000, OutputTokens: 200, SharedTokens: 250}) {
		t.Errorf("of the file: %+v", l)
	}
	tr := baselineTrial(codedProblem())
	r := &benchmark.Report{Valid: true}
	r.Requests.OK, r.Tokens.Prompt, r.Tokens.Got, r.Tokens.Cached = 10, 5000, 1000, 1000
	tr.Levels = []trial.Level{{Concurrency: 40, Report: r}}
	p = Problem{Levels: []int{40}, History: []*trial.Trial{tr}}
	if l := loadOf(p); l != (physics.Load{Clients: 40, InputTokens: 500, OutputTokens: 100, SharedTokens: 100}) {
		t.Errorf("of the trials: %+v", l)
	}
}

// A value in whole load levels is no better known than their distance.
func TestLevelSD(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		levels []int
		want   float64
	}{
		{nil, 0}, {[]int{48}, 0}, {[]int{40, 80}, 0.2001}, {[]int{40, 80, 160}, 0.2001}, {[]int{100, 110, 121}, 0.0275},
	} {
		if got := levelSD(tt.levels); math.Abs(got-tt.want) > 1e-4 {
			t.Errorf("levels %v: %.4f, want %.4f", tt.levels, got, tt.want)
		}
	}
	p := codedProblem()
	tr := baselineTrial(p)
	p.History, p.Levels, p.Objective = []*trial.Trial{tr}, []int{40, 80}, Objective{Metric: "concurrency"}
	if o, ok := newCodedSpace(p).observe(p, tr); !ok || math.Abs(o.RelSD-0.2001) > 1e-4 {
		t.Errorf("observed with a relative error of %g, %v", o.RelSD, ok)
	}
}
