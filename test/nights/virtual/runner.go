package virtual

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"sgtune/benchmark"
	"sgtune/internal/simulator"
	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// reclaimTime is what stopping a server and proving the host clean takes, host time.
const reclaimTime = 40 * time.Second

// Noise is the chance in a night's launches; the zero value is the profile's own.
type Noise struct {
	Free   bool    // none at all
	Launch float64 // relative standard deviation of launches among each other, 0 = the profile's
}

// runner is a tuner.TrialRunner on the simulator's model.
type runner struct {
	study *tuner.Study
	rows  rows
	store trial.Saver
	clock *clock
	noise Noise
	seed  int64
	prune func(t *trial.Trial, windows []float64) bool

	hopeless func(t *trial.Trial) bool        // trial.Runner.Hopeless, nil as there
	more     func(t *trial.Trial) (int, bool) // trial.Runner.More, nil as there

	enough func([]trial.Level) bool // no further level needs to be measured; nil = all of the plan
}

// Run implements tuner.TrialRunner.
func (r *runner) Run(ctx context.Context, t *trial.Trial) error {
	ctx = context.WithoutCancel(ctx) // no person stops a virtual night
	a := &attempt{runner: r, t: t, since: r.clock.Now(), began: r.clock.Now()}
	t.State, t.StartedAt = trial.Running, a.began
	t.LowWater, t.OwnRAM, t.MinRAM = -1, -1, -1
	t.Steps = map[trial.Step]time.Duration{}
	if err := r.store.SaveTrial(ctx, t); err != nil {
		return fmt.Errorf("save trial %d: %w", t.Number, err)
	}
	if err := a.work(); err != nil {
		return err
	}
	r.clock.set(r.clock.Now().Add(reclaimTime))
	t.EndedAt, t.Release = r.clock.Now(), trial.ReleaseVerified
	if err := r.store.SaveTrial(ctx, t); err != nil {
		return fmt.Errorf("save trial %d: %w", t.Number, err)
	}
	return nil
}

// attempt is one trial while it runs.
type attempt struct {
	*runner
	t     *trial.Trial
	began time.Time
	since time.Time
	s     session
}

// enter books the step before.
func (a *attempt) enter(s trial.Step) {
	now := a.clock.Now()
	if a.t.Step != "" {
		a.t.Steps[a.t.Step] += now.Sub(a.since)
	}
	a.t.Step, a.since = s, now
}

func (a *attempt) work() error {
	a.enter(trial.StepWait)
	server, err := simulator.Launch(sglang.Merge(a.study.Server.Flags, a.t.Config), launchSeed(a.seed, a.t), a.options())
	var refused *simulator.RefusedError
	switch {
	case errors.As(err, &refused):
		a.clock.set(a.began.Add(20 * time.Second))
		a.fail(trial.Verdict{Outcome: trial.ConfigRejected, Phase: sglang.PhaseLaunch, Cause: "unsupported_combination", Text: refused.Error()})
		return nil
	case err != nil:
		return fmt.Errorf("launch trial %d: %w", a.t.Number, err)
	}
	a.s = session{server: server, clock: a.clock, zero: a.began}
	a.clock.set(a.s.at(server.Ready()))
	if f := server.Failure(); f != nil {
		a.started()
		a.died(f)
		return nil
	}
	a.t.Startup, a.t.SGLang = a.clock.Now().Sub(a.began), "0.5.23"
	a.started()
	pruned, err := a.serve()
	if err != nil {
		return err
	}
	a.t.LowWater = int64(server.FreeGiB() * (1 << 30))
	if f := server.Failure(); f != nil {
		a.died(f)
		return nil
	}
	a.enter(trial.StepStop)
	a.judge(pruned)
	return nil
}

func (a *attempt) options() simulator.Options {
	return simulator.Options{
		Profile: a.study.Host.Profile, StartupS: a.study.Host.Startup.Seconds(), RAMBytes: available(a.study),
		NoiseFree: a.noise.Free, LaunchNoise: a.noise.Launch,
	}
}

// launchSeed differs in every launch of a night and between nights.
func launchSeed(seed int64, t *trial.Trial) int64 { return seed*1_000_003 + int64(t.Number)*7919 }

// started notes what the log said.
func (a *attempt) started() {
	a.t.Memory = a.s.server.Memory()
	a.t.OwnRAM = int64(a.s.server.OwnRAM())
	a.t.MinRAM = int64(available(a.study) - a.s.server.OwnRAM() - a.t.Memory.HostPoolGB*1e9*float64(a.t.Memory.TP))
}

// serve is what follows a start: canary, fill, levels. It returns early when the server dies.
func (a *attempt) serve() (pruned bool, err error) {
	a.enter(trial.StepCanary)
	if report, err := a.canary(); report == nil || err != nil {
		return false, err
	}
	a.enter(trial.StepWarmup)
	a.s.server.Flush()
	a.t.Cache = trial.Cache{Flushed: true, FillWanted: a.fillWanted()}
	if a.t.Cache.FillWanted > 0 {
		if report, err := a.fill(); report == nil || err != nil {
			return false, err
		}
	}
	a.enter(trial.StepMeasure)
	feed := a.rows.feed(a.reserve(), a.rows.w.Len(), a.study.Name)
	inFull := false
	for i := 0; i < len(a.t.Plan) || a.another(); i++ {
		report, err := a.level(feed, a.t.Plan[i])
		if report == nil || err != nil {
			return false, err
		}
		inFull = inFull || !report.Pruned
		if !inFull && (a.hopeless == nil || a.hopeless(a.t)) {
			return true, nil
		}
		if a.enough != nil && a.enough(a.t.Levels) {
			break
		}
	}
	return !inFull, nil
}

// another adds a level to the plan if there is one to add.
func (a *attempt) another() bool {
	if a.more == nil {
		return false
	}
	clients, ok := a.more(a.t)
	if ok {
		a.t.Plan = append(slices.Clone(a.t.Plan), clients)
	}
	return ok
}

// judge gives a trial that was measured its state, value and verdict.
func (a *attempt) judge(pruned bool) {
	t := a.t
	for _, l := range t.Levels {
		if !l.Report.Valid {
			a.fail(trial.Verdict{Outcome: trial.BenchInvalid, Phase: sglang.PhaseBench, Cause: l.Report.Invalid, Blames: trial.BlameNo, Text: l.Report.Advice})
			return
		}
	}
	t.State, t.Step = trial.Complete, trial.StepSave
	if pruned {
		t.State, t.Step = trial.Pruned, trial.StepMeasure
	}
	t.Verdict = trial.Verdict{Outcome: trial.OK, Phase: sglang.PhaseReady, Cause: "none", Blames: trial.BlameYes, Text: "served"}
	if value, best, ok := a.study.Objective.Score(t.Levels); ok {
		t.Value, t.Best = &value, best
	}
}

// died gives a trial whose server ended by itself the verdict that its log would give it.
func (a *attempt) died(f *simulator.Failure) {
	v := trial.Verdict{Outcome: trial.Crashed, Phase: f.Phase, Cause: f.Cause, Evidence: f.Text, Text: f.Text}
	for _, o := range trial.Outcomes {
		if slices.Contains(trial.Causes[o], f.Cause) {
			v.Outcome = o
			break
		}
	}
	a.fail(v)
}

func (a *attempt) fail(v trial.Verdict) {
	if v.Blames == "" {
		v.Blames = trial.BlameYes
	}
	a.t.Steps[a.t.Step] += a.clock.Now().Sub(a.since)
	a.t.State, a.t.Verdict = trial.Failed, v
}

// level measures one load level.
func (a *attempt) level(f *feed, clients int) (*benchmark.Report, error) {
	l := trial.Level{Concurrency: clients, StartedAt: a.clock.Now()}
	opts := benchmark.Options{
		Concurrency: clients, Window: a.study.Measure.Window, Cap: a.levelCap(), Target: a.study.Workload.Target,
		SLO: benchmark.SLO{TTFT: a.study.Objective.SLO.TTFTP95, TPOT: a.study.Objective.SLO.TPOTP95},
	}
	if a.prune != nil {
		opts.Prune = func(windows []float64) bool { return a.prune(a.t, windows) }
	}
	report, err := a.s.put(f, opts)
	if report == nil || err != nil {
		return nil, err
	}
	report.Series = nil
	report.CacheFull = a.t.Cache.Full
	l.Report, l.EndedAt = report, a.clock.Now()
	a.t.Levels = append(a.t.Levels, l)
	return report, nil
}

// levelCap is cmd/sgtune's: the smaller of workload.load.cap and measure.max.
func (a *attempt) levelCap() time.Duration {
	limit := a.study.Workload.Cap
	if most := a.study.Measure.Max; most > 0 && (limit == 0 || most < limit) {
		limit = most
	}
	return limit
}

func (a *attempt) highest() int {
	return slices.Max(append(slices.Clone(a.study.Workload.Concurrency), append(a.t.Plan, 1)...))
}

// canary is trial.Runner's: unique prompts of the longest rows' lengths, every second one with a short answer,
// at the highest level and as many clients more as keep two chunks waiting.
func (a *attempt) canary() (*benchmark.Report, error) {
	const quantile, short, mostExtra = 0.99, 32, 64
	limit := a.study.Measure.Canary
	if limit <= 0 {
		return &benchmark.Report{}, nil
	}
	chunk := a.t.Memory.ChunkedPrefill
	if chunk <= 0 {
		chunk = 8192
	}
	var list []benchmark.Row
	for _, row := range a.rows.w.Longest(quantile).All() {
		row.HashIDs = nil
		brief := row
		row.Number, brief.Number = len(list), len(list)+1
		brief.OutputTokens = min(row.OutputTokens, short)
		list = append(list, row, brief)
	}
	length := max(1, a.rows.w.InputQuantile(quantile))
	opts := benchmark.Options{
		Concurrency: a.highest() + min((2*chunk+length-1)/length, mostExtra), Cap: limit, Window: min(a.study.Measure.Window, limit),
		PromptTokens: int64(2 * a.t.Memory.Tokens), Drain: time.Millisecond,
	}
	rows := newRows(benchmark.NewWorkload(list, 0))
	return a.s.put(rows.feed(0, len(list), a.study.Name+"/canary"), opts)
}

// fills reports whether the cache is filled before measuring: a hierarchical cache is in the space and the
// workload reuses prefixes.
func (a *attempt) fills() bool {
	return a.study.Measure.Fill > 0 && biggestHostPool(a.study.Space) > 0 && a.rows.w.Reuse >= 0.02
}

// reserve is where the measured rows begin.
func (a *attempt) reserve() int {
	if !a.fills() {
		return 0
	}
	return a.rows.w.Len() / 3
}

func (a *attempt) fillWanted() int64 {
	m := a.t.Memory
	if !a.fills() || m.Tokens <= 0 {
		return 0
	}
	cell := m.KVGiB * (1 << 30) / float64(m.Tokens)
	return max(int64(m.Tokens), int64(sglang.HostPoolTokens(biggestHostPool(a.study.Space), cell, max(1, m.PageSize))))
}

// fill replays the rows just before the measured ones under their salt.
func (a *attempt) fill() (*benchmark.Report, error) {
	from, tokens := a.reserve(), int64(0)
	for ; from > 0 && tokens < a.t.Cache.FillWanted; from-- {
		tokens += int64(a.rows.w.Row(from - 1).Input())
	}
	from = max(0, from-a.highest())
	limit := a.study.Measure.Fill
	report, err := a.s.put(a.rows.feed(from, a.reserve(), a.study.Name), benchmark.Options{
		Concurrency: a.highest(), Window: min(a.study.Measure.Window, limit), Cap: limit, PromptTokens: a.t.Cache.FillWanted,
	})
	if report == nil || err != nil {
		return nil, err
	}
	admitted := 0.0
	for _, w := range report.Windows {
		admitted += w.Prompt * w.Seconds
	}
	a.t.Cache.FillAdmitted, a.t.Cache.FillPasses = int64(math.Round(admitted)), report.Passes
	a.t.Cache.Full = a.t.Cache.FillAdmitted >= a.t.Cache.FillWanted
	return report, nil
}

// biggestHostPool is the largest hicache-size of the space, GB a rank.
func biggestHostPool(space tuner.Space) float64 {
	most := 0.0
	if d, ok := space.Dim("hicache-size"); ok {
		for _, v := range d.Values {
			if gb, ok := v.(float64); ok {
				most = max(most, gb)
			}
		}
	}
	return most
}
