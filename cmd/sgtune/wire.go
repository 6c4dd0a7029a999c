package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"sgtune/benchmark"
	"sgtune/host"
	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// grace is what a ready server gets to end by itself after SIGTERM.
const grace = 30 * time.Second

// wire puts the parts of a study together: the loop over the runner over the host, all of them over
// one database and one clock.
func (n *night) wire(ctx context.Context, where *place, record *tuner.Record) (*tuner.Loop, error) {
	s := n.study
	sampler, err := tuner.NewSampler(s.Sampler)
	if err != nil {
		return nil, usagef("%s: %w", n.path, err)
	}
	server, env, err := n.server()
	if err != nil {
		return nil, err
	}
	saved := watchedStore{DB: n.db, show: n.screen, files: where.files}
	loop := &tuner.Loop{
		Study: s, Record: record, Store: saved, Clock: where.clock, Sampler: sampler, Workload: n.workload, Sleep: where.clock, Notify: newNotifier(secrets(s, os.Environ())).send, Show: n.screen.Status,
		Host: &loopHost{place: where, study: s, record: record, server: server, saver: saved},
	}
	runner := &trial.Runner{
		Host: where.host, Replayer: n.replayer(where), Store: saved, Clock: where.clock, Server: server, Version: server.Version,
		Instruments:   sglang.InstrumentFlags(nil, sglang.Merge(s.Server.Flags, s.Baseline)),
		InstrumentEnv: env,
		Load:          n.load(), Files: where.files, ReadyTimeout: s.ReadyTimeout, Grace: grace, Hurry: n.hurry, Port: s.Port,
		Secrets: secrets(s, os.Environ()), Guard: n.guardLimits(), Who: fmt.Sprintf("sgtune %s (pid %d)", version(), os.Getpid()),
		Score: s.Objective.Score, Prune: loop.Prune, Hopeless: loop.Hopeless, More: loop.More, Progress: n.screen.Progress,
		Notice: func(kind, text string) {
			_ = saved.AddEvent(context.WithoutCancel(ctx), s.Name, tuner.Event{At: where.clock.Now(), Kind: kind, Text: text})
		},
	}
	loop.Runner = runner
	if where.slurm != nil {
		where.slurm.tell(runner.Notice, n.screen.Progress)
	}
	return loop, nil
}

// guardLimits are those of every launch on a real machine; a simulated one has no memory that could run out. The time
// limit is for a tuner that hangs: a trial that goes on as it should ends long before.
func (n *night) guardLimits() *host.GuardLimits {
	s, l := n.study, n.load()
	if s.Host.Kind == tuner.HostSimulated {
		return nil
	}
	return &host.GuardLimits{
		MinFree:   int64(s.Host.RAMFloorBytes),
		TimeLimit: 2 * (s.ReadyTimeout + l.Canary + l.Fill + 3*time.Duration(len(l.Levels))*l.Cap + grace),
		Absence:   s.Host.TunerGone, Grace: grace,
	}
}

// server is what each launch has in common. A simulated study without a command of its own runs this
// program's sim-server.
func (n *night) server() (sglang.Server, map[string]string, error) {
	s := n.study
	server, env := s.Server, sglang.InstrumentEnv(s.Server.Env)
	if s.Host.Kind != tuner.HostSimulated {
		return server, env, nil
	}
	env["SGTUNE_SIM_RAM_AVAILABLE"] = fmt.Sprintf("%.0f", s.Host.RAMBytes-simulatedSystemBytes)
	if len(server.Command) == 0 {
		self, err := os.Executable()
		if err != nil {
			return server, nil, fmt.Errorf("find sgtune's own program: %w", err)
		}
		server.Command = simCommand(s, self)
	}
	return server, env, nil
}

// simulatedSystemBytes is what the simulated machine's system itself takes of its RAM (host.Simulated).
const simulatedSystemBytes = 9e9

func (n *night) load() trial.Load {
	s := n.study
	limit := s.Workload.Cap
	if s.Measure.Max > 0 && (limit == 0 || s.Measure.Max < limit) {
		limit = s.Measure.Max
	}
	return trial.Load{
		Workload: n.workload, Levels: s.Workload.Concurrency, Window: s.Measure.Window, Cap: limit, Target: s.Workload.Target,
		SLO:    benchmark.SLO{TTFT: s.Objective.SLO.TTFTP95, TPOT: s.Objective.SLO.TPOTP95, E2E: s.Objective.SLO.E2EP95},
		Canary: s.Measure.Canary, Fill: s.Measure.Fill, FillHostPoolGB: biggestHostPool(s.Space), Salt: s.Name,
	}
}

// biggestHostPool is the largest hicache-size of the space, GB a rank.
func biggestHostPool(space tuner.Space) float64 {
	most := 0.0
	for _, d := range space {
		if d.Name != "hicache-size" {
			continue
		}
		for _, v := range d.Values {
			if gb, ok := v.(float64); ok {
				most = max(most, gb)
			}
		}
	}
	return most
}
