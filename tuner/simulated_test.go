package tuner_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"sgtune/benchmark"
	"sgtune/internal/simulator"
	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// simRunner runs trials on the simulator's model in virtual time.
type simRunner struct {
	store    tuner.Store
	clock    *fakeClock
	workload simulator.Workload
	server   sglang.Config
	seed     int64
}

func (r *simRunner) Run(ctx context.Context, t *trial.Trial) error {
	t.State, t.StartedAt = trial.Running, r.clock.Now()
	if err := r.store.SaveTrial(ctx, t); err != nil {
		return err
	}
	w := r.workload
	w.Clients = t.Plan[0]
	res, err := simulator.Run(sglang.Merge(r.server, t.Config), w, r.seed*1000+int64(t.Number),
		simulator.Options{StartupS: 90, Canary: true, SettleS: 60, MeasureS: 120, Fill: 400_000})
	if err != nil {
		return err
	}
	t.Memory, t.LowWater = res.Memory, int64(res.LowWaterGiB*(1<<30))
	t.Startup = time.Duration(res.ReadyS * float64(time.Second))
	r.clock.advance(5 * time.Minute)
	t.EndedAt = r.clock.Now()
	t.State = trial.Complete
	t.Verdict = trial.Verdict{Outcome: trial.OK, Cause: "none", Blames: trial.BlameYes}
	if f := res.Failure; f != nil {
		t.State = trial.Failed
		t.Verdict = trial.Verdict{Outcome: outcomeOf(f.Cause), Phase: f.Phase, Cause: f.Cause, Blames: trial.BlameYes, Text: f.Text}
		return r.store.SaveTrial(ctx, t)
	}
	rep := &benchmark.Report{OutputTokS: res.OutputTokS, OutputLow: res.OutputTokS * 0.985, OutputHigh: res.OutputTokS * 1.015, Valid: true}
	rep.Requests.Sent, rep.Tokens.Got = res.Finished, int64(res.OutputTokS*120)
	t.Levels = []trial.Level{{Concurrency: w.Clients, Report: rep}}
	t.Value, t.Best = &res.OutputTokS, w.Clients
	return r.store.SaveTrial(ctx, t)
}

func outcomeOf(cause string) trial.Outcome {
	switch cause {
	case "kv_pool_nonpositive", "prefill_activation", "decode_activation", "graph_capture_oom", "weights_too_big":
		return trial.GPUOOM
	case "hicache_check_refused", "hicache_oversubscribed", "kernel_oom_kill", "cgroup_limit":
		return trial.HostOOM
	}
	return trial.Crashed
}

// The quickstart's nights on the simulator's model: no host OOM, at most three failed trials each,
// a verdict better than the baseline.
func TestQuickstartNights(t *testing.T) {
	t.Parallel()
	f, err := os.Open("../examples/quickstart.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	workload, err := simulator.ReadMooncake(f, 64, 64, 1)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range nights() {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			s := newStudy()
			s.Seed, s.Workload.Concurrency = seed, []int{64}
			s.Space[0].Values = grid(0.80, 0.93, 0.01)
			s.Space[2].Values = []any{2048.0, 4096.0, 8192.0, 16384.0}
			r := newRig(t, s)
			r.loop.Runner = &simRunner{store: r.store, clock: r.clock, workload: workload, server: s.Server.Flags, seed: seed}
			v, err := r.loop.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			failed, hostOOM := 0, 0
			for _, row := range r.trials(t) {
				if row.State == trial.Failed {
					failed++
				}
				if row.Verdict.Outcome == trial.HostOOM {
					hostOOM++
				}
				value := 0.0
				if row.Value != nil {
					value = *row.Value
				}
				t.Logf("%2d %-8s %-7s %-9s %7.1f low %.2f free %.2f %v %s", row.Number, row.Role, row.Sampler, row.State, value,
					float64(row.LowWater)/(1<<30), row.Memory.AfterGraphGiB, row.Config, row.Verdict.Cause)
			}
			if hostOOM > 0 || failed > 3 || v.Answer != "better" {
				t.Errorf("%d host OOM, %d failed, verdict %s", hostOOM, failed, v.Text)
			}
			t.Log(v.Text, v.Why)
		})
	}
}
