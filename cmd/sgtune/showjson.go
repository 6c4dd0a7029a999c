package main

import (
	"context"
	"io"
	"time"

	"sgtune/sglang"
	"sgtune/store"
	"sgtune/trial"
	"sgtune/tuner"
)

// The shapes below are what scripts rely on (contract: "sgtune show"); they change with it only.

type shownStudy struct {
	Study     string           `json:"study"`
	Simulated bool             `json:"simulated"`
	State     tuner.StudyState `json:"state"`
	Silent    bool             `json:"tuner_silent,omitempty"` // stored as running, and nobody runs it
	Verdict   shownVerdict     `json:"verdict"`
	Trials    []shownTrial     `json:"trials"`
	Events    []shownEvent     `json:"events"`
	// What the models make of a study that is over: a running one is asked often, and they take a moment.
	Importances []tuner.Importance `json:"importances,omitempty"`
	Feasibility *tuner.Feasibility `json:"feasibility,omitempty"`
	Limit       *tuner.Limit       `json:"limit,omitempty"`
}

// shownVerdict is {} before the end.
type shownVerdict struct {
	Answer string   `json:"answer,omitempty"`
	Gain   *float64 `json:"gain,omitempty"`
	Low    *float64 `json:"gain_low,omitempty"`
	High   *float64 `json:"gain_high,omitempty"`
	Trial  *int     `json:"trial,omitempty"`
}

type shownTrial struct {
	Number    int              `json:"number"`
	Role      trial.Role       `json:"role"`
	State     trial.State      `json:"state"`
	Outcome   trial.Outcome    `json:"outcome"`
	Phase     sglang.Phase     `json:"phase"`
	Cause     string           `json:"cause"`
	Config    sglang.Config    `json:"config"`
	Value     *float64         `json:"value,omitempty"`
	Level     *shownLevel      `json:"level,omitempty"`
	Void      string           `json:"void"`
	Adopted   bool             `json:"adopted"`
	Adoptions []trial.Adoption `json:"adoptions,omitempty"` // when, and by which sgtune
	Why       string           `json:"why,omitempty"`       // the sampler's reason
	Reason    *trial.Reason    `json:"reason,omitempty"`    // the same in figures
	StartedAt time.Time        `json:"started_at,omitzero"`
	EndedAt   time.Time        `json:"ended_at,omitzero"`
}

type shownLevel struct {
	Concurrency int `json:"concurrency"`
}

type shownEvent struct {
	At     time.Time     `json:"at"`
	Kind   string        `json:"kind"`
	Text   string        `json:"text"`
	Config sglang.Config `json:"config"`
}

// eventsAtOnce bounds one read of a long study's events.
const eventsAtOnce = 1000

func showJSON(ctx context.Context, out io.Writer, db *store.DB, r *tuner.Summary, trials []*trial.Trial) error {
	s := shownStudy{
		Study: r.Name, Simulated: r.Simulated, State: r.State, Silent: r.Silent(time.Now()), Verdict: showVerdict(r.Verdict),
		Trials: []shownTrial{}, Events: []shownEvent{},
	}
	for _, t := range trials {
		s.Trials = append(s.Trials, showTrial(t))
	}
	for after := int64(0); ; {
		events, last, err := db.Events(ctx, r.Name, after, eventsAtOnce)
		if err != nil {
			return err
		}
		if after == 0 && r.State != tuner.StudyRunning {
			known := tuner.Look(&r.Record, trials, events)
			s.Importances, s.Feasibility, s.Limit = known.Importances, known.Feasibility, known.Limit
		}
		for _, e := range events {
			s.Events = append(s.Events, shownEvent{At: e.At, Kind: e.Kind, Text: e.Text, Config: notNil(e.Config)})
		}
		if len(events) < eventsAtOnce {
			return printJSON(out, s)
		}
		after = last
	}
}

func showVerdict(v *tuner.Verdict) shownVerdict {
	if v == nil {
		return shownVerdict{}
	}
	return shownVerdict{Answer: v.Answer, Gain: &v.Gain, Low: v.Low, High: v.High, Trial: &v.Trial}
}

func showTrial(t *trial.Trial) shownTrial {
	s := shownTrial{
		Number: t.Number, Role: t.Role, State: t.State, Outcome: t.Verdict.Outcome, Phase: t.Verdict.Phase, Cause: t.Verdict.Cause,
		Config: notNil(t.Config), Value: t.Value, Void: t.Void, Adopted: t.Adopted, Adoptions: t.Adoptions, Why: t.Why, Reason: t.Reason,
		StartedAt: t.StartedAt, EndedAt: t.EndedAt,
	}
	if t.Value != nil && t.Best > 0 {
		s.Level = &shownLevel{Concurrency: t.Best}
	}
	return s
}

func notNil(c sglang.Config) sglang.Config {
	if c == nil {
		return sglang.Config{}
	}
	return c
}
