package webbed

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/store"
	"sgtune/trial"
	"sgtune/tuner"
)

// Start is when every night begins.
var Start = time.Date(2026, 11, 28, 22, 0, 0, 0, time.UTC)

// source is the study file of a night: the space that its trials are from.
const source = `study: %s
server:
  model: /models/Kimi-K2.5
  flags: {tp-size: 8}
  baseline: {mem-fraction-static: 0.85}
host: {kind: simulated, profile: kimi-8x96, ram_budget: 400GB}
space:
  mem-fraction-static: {min: 0.80, max: 0.95, step: 0.01}
  hicache-size: {values: [0, 8, 16, 24, 32, 40, 48]}
  chunked-prefill-size: {values: [2048, 4096, 8192, 16384]}
  max-running-requests: {values: [64, 96, 128, 192, 256]}
  cuda-graph-max-bs: {values: [64, 128, 256]}
  schedule-conservativeness: {min: 0.3, max: 1.3, step: 0.1}
  schedule-policy: {values: [fcfs, lpm]}
  hicache-write-policy: {values: [write_through, write_back]}
workload:
  file: trace.jsonl
  load: {concurrency: [30, 60, 120]}
budget: {trials: %d}
`

// Night is a study with its trials.
type Night struct {
	Record *tuner.Record
	Trials []*trial.Trial
	Events []tuner.Event
}

// Make makes a finished night of n search trials and, after more than 20, a confirmation and its verdict.
func Make(name string, n int, seed uint64) Night {
	g := &generator{rng: rand.New(rand.NewPCG(seed, 0)), now: Start, name: name} //nolint:gosec // a test's random numbers
	r := &tuner.Record{
		Name: name, State: tuner.StudyComplete, Simulated: true, Host: "simulated kimi-8x96", Source: fmt.Sprintf(source, name, n),
		BaselineConfig: sglang.Config{"mem-fraction-static": 0.85}, Objective: "output_tok_s", CreatedAt: Start, StartedAt: Start,
		Server: sglang.Server{Model: "/models/Kimi-K2.5", Flags: sglang.Config{"tp-size": 8.0}}, Releases: "clean",
	}
	night := Night{Record: r}
	if n > 0 {
		night.Trials = append(night.Trials, g.trial(trial.RoleBaseline, r.BaselineConfig))
	}
	for range n {
		night.Trials = append(night.Trials, g.trial(trial.RoleSearch, g.config()))
	}
	if n > 20 {
		g.confirm(&night)
	}
	r.EndedAt = g.now
	night.Events = g.events
	return night
}

// Fill stores a night.
func Fill(ctx context.Context, db *store.DB, night Night) error {
	if err := db.SaveStudy(ctx, night.Record); err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	for _, t := range night.Trials {
		if err := db.SaveTrial(ctx, t); err != nil {
			return fmt.Errorf("fill: %w", err)
		}
	}
	for _, e := range night.Events {
		if err := db.AddEvent(ctx, night.Record.Name, e); err != nil {
			return fmt.Errorf("fill: %w", err)
		}
	}
	return nil
}

type generator struct {
	rng    *rand.Rand
	now    time.Time
	name   string
	number int
	events []tuner.Event
}

func pick[T any](g *generator, values ...T) T { return values[g.rng.IntN(len(values))] }

// config is a point of the space, nearer to the good end later in the night.
func (g *generator) config() sglang.Config {
	return sglang.Config{
		"mem-fraction-static":  math.Round((0.80+0.01*float64(g.rng.IntN(16)))*100) / 100,
		"hicache-size":         pick(g, 0.0, 8, 16, 24, 32, 32, 40, 40, 48),
		"chunked-prefill-size": pick(g, 2048.0, 4096, 8192, 16384), "max-running-requests": pick(g, 64.0, 96, 128, 192, 256),
		"cuda-graph-max-bs": pick(g, 64.0, 128, 256), "schedule-conservativeness": math.Round((0.3+0.1*float64(g.rng.IntN(11)))*10) / 10,
		"schedule-policy": pick(g, "fcfs", "lpm"), "hicache-write-policy": pick(g, "write_through", "write_back"),
	}
}

// speed is what a configuration makes at its best level, tok/s.
func speed(c sglang.Config) float64 {
	number := func(name string, other float64) float64 {
		if v, ok := c.Float(name); ok {
			return v
		}
		return other
	}
	v := 1840.0
	v *= 1 + 1.6*(math.Min(number("mem-fraction-static", 0.85), 0.93)-0.85)
	v *= 1 + 0.10*(1-math.Exp(-number("hicache-size", 0)/20))
	v *= 1 - 0.02*math.Abs(math.Log2(number("chunked-prefill-size", 8192)/8192))
	v *= 1 - 0.05*math.Abs(number("schedule-conservativeness", 1)-0.7)
	v *= 1 - 0.06*math.Max(0, math.Log2(128/number("max-running-requests", 128)))
	return v
}

// trial runs a configuration.
func (g *generator) trial(role trial.Role, c sglang.Config) *trial.Trial {
	t := &trial.Trial{
		Study: g.name, Number: g.number, Role: role, Config: c, State: trial.Complete, Step: trial.StepSave, Sampler: "physics",
		Plan: []int{30, 60, 120}, LowWater: -1, OwnRAM: 38e9, Release: trial.ReleaseVerified, Dir: fmt.Sprint(g.number),
		CreatedAt: g.now, SGLang: "0.5.10", Marker: fmt.Sprintf("%s-%d", g.name, g.number),
		Verdict: trial.Verdict{Outcome: trial.OK, Phase: sglang.PhaseDecode, Cause: "none", Blames: trial.BlameYes, Text: "It ran."},
		Argv:    []string{"python3", "-m", "sglang.launch_server", "--model-path", "/models/Kimi-K2.5"}, Steps: map[trial.Step]time.Duration{},
	}
	g.number++
	g.step(t, trial.StepAdmit, 3)
	g.step(t, trial.StepLaunch, 5)
	t.StartedAt = g.now
	g.remember(t)
	g.fate(t)
	g.step(t, trial.StepStop, 12)
	g.step(t, trial.StepReclaim, 20)
	g.step(t, trial.StepSave, 1)
	t.EndedAt = g.now
	g.now = g.now.Add(time.Duration(2+g.rng.IntN(5)) * time.Second)
	return t
}

func (g *generator) step(t *trial.Trial, s trial.Step, seconds float64) {
	took := time.Duration(seconds * (0.8 + 0.4*g.rng.Float64()) * float64(time.Second))
	t.Steps[s] = took
	g.now = g.now.Add(took)
}

// remember is what the start-up log says of memory.
func (g *generator) remember(t *trial.Trial) {
	f, ok := t.Config.Float("mem-fraction-static")
	if !ok {
		f = 0.85
	}
	gb, _ := t.Config.Float("hicache-size")
	t.MinRAM = int64(449e9-8*gb*1e9) - t.OwnRAM
	const total, rest, cell = 93.6, 14.9, 70272.0 / 1.0
	kv := rest - total*(1-f) + 9.6
	t.Memory = sglang.Observation{
		Fraction: f, TP: 8, KVDtype: "torch.bfloat16", PageSize: 1, ChunkedPrefill: 8192, MaxRunning: 128, ContextLen: 262144,
		BeforeLoadGiB: total, AfterLoadGiB: rest + 9.6, WeightsGiB: total - rest - 9.6, KVGiB: kv, KVParts: 1, AfterPoolGiB: total*(1-f) - 0.2,
		GraphGiB: 2.6, AfterGraphGiB: total*(1-f) - 2.8, AvailableGiB: total*(1-f) - 2.8, Tokens: int(kv * (1 << 30) / cell),
		HostPoolTokens: int(gb * 1e9 / cell), HostPoolGB: gb,
	}
}

// fate is how a launch ends.
func (g *generator) fate(t *trial.Trial) {
	f := t.Memory.Fraction
	gb, _ := t.Config.Float("hicache-size")
	chunk, _ := t.Config.Float("chunked-prefill-size")
	edge := 0.925 - 0.008*math.Log2(math.Max(chunk, 2048)/4096) + 0.004*g.rng.NormFloat64()
	luck := g.rng.Float64()
	switch {
	case t.Role != trial.RoleSearch:
	case f > 0.945:
		g.fails(t, trial.GPUOOM, sglang.PhaseGraphCapture, "graph_capture_oom", trial.BlameYes, 70, "GPU memory ran out while graphs were captured.")
		return
	case f > edge:
		g.step(t, trial.StepWait, 95)
		g.step(t, trial.StepCanary, 25)
		g.fails(t, trial.GPUOOM, sglang.PhasePrefill, "prefill_activation", trial.BlameYes, 0, "GPU 3 ran out of memory in prefill. It wanted 1.75 GiB, 0.82 GB was free.")
		return
	case gb >= 48 && luck < 0.5:
		g.fails(t, trial.HostOOM, sglang.PhaseHostPool, "kernel_oom_kill", trial.BlameYes, 60, "The kernel killed the server: host memory ran out.")
		return
	case luck < 0.02:
		g.fails(t, trial.Crashed, sglang.PhaseGraphCapture, "cuda_error", trial.BlamePartly, 80, "The server died of a CUDA error.")
		return
	case luck < 0.035:
		g.fails(t, trial.EnvFault, sglang.PhaseHTTPStart, "port_in_use", trial.BlameNo, 15, "The port was in use by another process.")
		return
	case luck < 0.045:
		g.fails(t, trial.ConfigRejected, sglang.PhaseLaunch, "unsupported_combination", trial.BlameYes, 4, "SGLang refused the flags.")
		return
	}
	g.measure(t)
}

func (g *generator) fails(t *trial.Trial, o trial.Outcome, p sglang.Phase, cause string, blame trial.Blame, wait float64, text string) {
	if wait > 0 {
		g.step(t, trial.StepWait, wait)
	}
	t.State, t.Step = trial.Failed, trial.StepWait
	t.Verdict = trial.Verdict{Outcome: o, Phase: p, Cause: cause, Blames: blame, Text: text, Evidence: "torch.OutOfMemoryError: CUDA out of memory."}
	if o != trial.GPUOOM || cause == "graph_capture_oom" {
		t.Memory.AfterGraphGiB, t.Memory.AvailableGiB = 0, 0
	}
	if o == trial.EnvFault {
		g.event("host", t, fmt.Sprintf("trial %d: port 30000 was in use by pid 4711 (nginx)", t.Number))
	}
}

// measure runs the load levels.
func (g *generator) measure(t *trial.Trial) {
	g.step(t, trial.StepWait, 150)
	t.Startup = t.Steps[trial.StepWait]
	g.step(t, trial.StepCanary, 55)
	g.step(t, trial.StepWarmup, 60)
	best := speed(t.Config) * math.Exp(0.008*g.rng.NormFloat64())
	from := g.now
	for _, n := range t.Plan {
		t.Levels = append(t.Levels, g.level(n, best))
	}
	t.Steps[trial.StepMeasure] = g.now.Sub(from)
	t.LowWater = int64((t.Memory.AfterGraphGiB - 2.2) * (1 << 30))
	t.MaxRunning = 96
	if best < 1650 && t.Role == trial.RoleSearch {
		t.State, t.Levels = trial.Pruned, t.Levels[:1]
		t.Levels[0].Report.Pruned = true
		return
	}
	value := math.Round(best*10) / 10
	t.Value, t.Best = &value, 120
}

func (g *generator) level(n int, best float64) trial.Level {
	took := 90.0 + 30*g.rng.Float64()
	l := trial.Level{Concurrency: n, StartedAt: g.now}
	share := 1 - math.Exp(-float64(n)/55)
	r := &benchmark.Report{OutputTokS: best * share / (1 - math.Exp(-120.0/55)), Valid: true, Seconds: took, Steady: true}
	r.OutputLow, r.OutputHigh = r.OutputTokS*(1-0.012), r.OutputTokS*(1+0.012)
	wait := 350 + 32*float64(n)*math.Exp(0.25*g.rng.NormFloat64())
	r.TTFTms = &benchmark.Distribution{Mean: wait * 0.5, P50: wait * 0.4, P90: wait * 0.8, P95: wait, P99: wait * 1.4, Max: wait * 2}
	r.TPOTms = &benchmark.Distribution{Mean: 40, P50: 38, P95: 55, P99: 70, Max: 90}
	r.Requests.Sent, r.Requests.OK = 400, 400
	r.CacheHitRatio = 0.42
	for s := range int(took) {
		r.Series = append(r.Series, benchmark.Point{T: float64(s), OutputTokS: math.Round(r.OutputTokS * (0.9 + 0.2*g.rng.Float64())), InFlight: float64(n)})
	}
	g.now = g.now.Add(time.Duration(took * float64(time.Second)))
	l.Report, l.EndedAt = r, g.now
	return l
}

// confirm repeats the best search trial and the baseline five times each and gives the verdict.
func (g *generator) confirm(night *Night) {
	var top *trial.Trial
	for _, t := range night.Trials {
		if t.Value != nil && t.Role == trial.RoleSearch && (top == nil || *t.Value > *top.Value) {
			top = t
		}
	}
	if top == nil {
		return
	}
	g.event("confirm", top, fmt.Sprintf("confirmation begins: trial %d against the baseline", top.Number))
	var old, better []float64
	for i := range 10 {
		c := top.Config
		if i%4 == 0 || i%4 == 3 {
			c = night.Record.BaselineConfig
		}
		t := g.trial(trial.RoleConfirm, c)
		night.Trials = append(night.Trials, t)
		switch {
		case t.Value == nil:
		case len(c) == 1:
			old = append(old, *t.Value)
		default:
			better = append(better, *t.Value)
		}
	}
	slices.Sort(old)
	slices.Sort(better)
	a, b := old[len(old)/2], better[len(better)/2]
	gain := b/a - 1
	low, high := gain-0.024, gain+0.027
	night.Record.Candidate = top.Config
	night.Record.Verdict = &tuner.Verdict{
		Answer: "better", Gain: gain, Low: &low, High: &high, Trial: top.Number, Config: top.Config, BaselineValue: a, Value: b, Level: 120, Launches: 5,
		Text: "better: the candidate makes more in every launch",
	}
	g.event("verdict", top, "better")
}

func (g *generator) event(kind string, t *trial.Trial, text string) {
	number := t.Number
	g.events = append(g.events, tuner.Event{At: g.now, Kind: kind, Text: text, Trial: &number})
}
