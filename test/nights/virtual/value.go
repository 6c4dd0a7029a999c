package virtual

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// Outcome is what one launch of a configuration is worth.
type Outcome struct {
	Value   float64 // objective at the best load level that meets the SLO, 0 without one
	Level   int     // concurrency of that level
	Failure string  // cause of a launch that did not live, "" = it lived
	LowGiB  float64 // least free GPU memory under load
}

// Judge is a study whose configurations can be asked for their worth, without a night around it. It is safe
// for concurrent use.
type Judge struct {
	study *tuner.Study
	rows  rows

	enough func([]trial.Level) bool
}

// NewJudge reads the study's workload. Its launches are those of a night: every load level of the study, each
// as long as the study says.
func NewJudge(s *tuner.Study) (*Judge, error) {
	w, err := benchmark.ReadWorkload(s.Workload.File)
	if err != nil {
		return nil, fmt.Errorf("read the workload of %s: %w", s.Name, err)
	}
	return &Judge{study: s, rows: newRows(w)}, nil
}

// longLevel is how long a level of a long launch is measured: over an hour the chance in the rows' lengths
// is half a percent of the value, over the six minutes of a night's level it is three.
const longLevel = time.Hour

// Long is the same study with levels so long that what differs between two values is not the rows' luck. Levels
// below the two busiest that meet the SLO are left out: fewer clients never made more tokens.
func (j *Judge) Long() *Judge {
	s := *j.study
	s.Workload.Target, s.Workload.Cap, s.Measure.Max = 0, longLevel, longLevel
	enough := func(levels []trial.Level) bool {
		met := 0
		for _, l := range levels {
			if s.Objective.SLO.Met(l) {
				met++
			}
		}
		return met == 2
	}
	return &Judge{study: &s, rows: j.rows, enough: enough}
}

// Busiest is the same study with its highest load level alone and without an SLO: cheap, for a first look.
func (j *Judge) Busiest() *Judge {
	s := *j.study
	s.Workload.Concurrency = s.Workload.Concurrency[len(s.Workload.Concurrency)-1:]
	s.Objective.SLO, s.Workload.Target = tuner.SLO{}, 0
	return &Judge{study: &s, rows: j.rows}
}

// nowhere is a store that keeps nothing.
type nowhere struct{}

// SaveTrial implements trial.Saver.
func (nowhere) SaveTrial(context.Context, *trial.Trial) error { return nil }

// Value is one launch of a configuration.
func (j *Judge) Value(ctx context.Context, c sglang.Config, seed int64, noise Noise) (Outcome, error) {
	t, err := j.Trial(ctx, c, seed, noise)
	if err != nil {
		return Outcome{}, err
	}
	o := Outcome{LowGiB: float64(t.LowWater) / (1 << 30), Level: t.Best}
	if t.Value != nil {
		o.Value = *t.Value
	}
	if t.State == trial.Failed {
		o.Failure = t.Verdict.Cause
	}
	return o, nil
}

// Trial is the row of that launch.
func (j *Judge) Trial(ctx context.Context, c sglang.Config, seed int64, noise Noise) (*trial.Trial, error) {
	r := &runner{study: j.study, rows: j.rows, store: nowhere{}, clock: newClock(), noise: noise, seed: seed, enough: j.enough}
	t := &trial.Trial{Study: j.study.Name, Config: c, Role: trial.RoleConfirm, State: trial.Waiting, Plan: slices.Clone(j.study.Workload.Concurrency)}
	slices.Reverse(t.Plan)
	if err := r.Run(ctx, t); err != nil {
		return nil, fmt.Errorf("launch %s: %w", c.Key(), err)
	}
	return t, nil
}
