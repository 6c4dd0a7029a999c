package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"sgtune/trial"
	"sgtune/tuner"
)

// liveBox is what a running study shows in place of a verdict.
type liveBox struct {
	Trials   []liveTrial
	Waiting  string // in place of Trials between two of them
	Best     string // "#17, +12.9%, not confirmed", "" before
	BestAt   int
	Plan     string // what still fits
	Silent   string // nobody runs the study: since when, "" while somebody does
	Asked    []askedLine
	Controls bool // it can be asked to stop
}

// liveTrial is one trial that runs now.
type liveTrial struct {
	*trial.Trial
	Phases []spent
	Free   []string // memory that was free at the least
}

// spent is the time a trial took for one step.
type spent struct {
	Step  trial.Step
	Time  time.Duration
	State string // done, now, ahead
}

// liveTrialsShown bounds the trials that are shown running at once (Slurm runs several).
const liveTrialsShown = 8

func (h *Handler) liveBox(r *http.Request, s *tuner.Summary, b *studyBody) (*liveBox, error) {
	live := &liveBox{Plan: plan(b.Events), Controls: h.opts.Commands != nil}
	if now := time.Now(); s.Silent(now) {
		live.Silent, live.Controls = silence(s, now), false
	}
	asked, err := h.reader.Asked(r.Context(), s.Name, askedShown)
	if err != nil {
		return nil, err
	}
	live.Asked = askedLines(s, asked)
	for _, n := range b.Overview.Running {
		if len(live.Trials) == liveTrialsShown {
			break
		}
		t, err := h.reader.Trial(r.Context(), s.Name, n)
		if err != nil {
			return nil, err
		}
		live.Trials = append(live.Trials, liveTrial{Trial: t, Phases: phases(t), Free: freeAtLeast(t)})
	}
	if len(live.Trials) == 0 {
		live.Waiting = "between two trials"
		if b.Overview.Total == 0 {
			live.Waiting = "before the first trial: the baseline, what runs today"
		}
	}
	if b.Best == nil || b.Best.Value == nil {
		return live, nil
	}
	live.BestAt, live.Best = b.Best.Number, Amount(b.Best, s.Objective)
	if b.Overview.Baseline != nil && *b.Overview.Baseline != b.Best.Number {
		base, err := h.reader.Trial(r.Context(), s.Name, *b.Overview.Baseline)
		if err != nil {
			return nil, err
		}
		if base.Value != nil && *base.Value > 0 {
			live.Best += ", " + Percent(*b.Best.Value / *base.Value - 1) + " against today"
		}
	}
	return live, nil
}

// phases are the steps of a trial in order, with the time spent in each.
func phases(t *trial.Trial) []spent {
	var out []spent
	now := slices.Index(trial.Steps, t.Step)
	for i, step := range trial.Steps {
		took := t.Steps[step]
		switch {
		case t.State.Finished():
			if took > 0 {
				out = append(out, spent{step, took, "done"})
			}
		case i == now && t.State == trial.Running:
			out = append(out, spent{step, took, "now"})
		case took > 0:
			out = append(out, spent{step, took, "done"})
		}
	}
	return out
}

// freeAtLeast is the least memory that was free while a trial ran, in words.
func freeAtLeast(t *trial.Trial) []string {
	var out []string
	if t.LowWater > 0 {
		out = append(out, fmt.Sprintf("GPU memory free at the least %.1f GiB", float64(t.LowWater)/(1<<30)))
	}
	if t.MinRAM > 0 {
		out = append(out, fmt.Sprintf("host RAM free at the least %s GB", Number(float64(t.MinRAM)/1e9)))
	}
	return out
}

// Line names the trial and where it is.
func (t liveTrial) Line() string {
	text := fmt.Sprintf("trial %d (%s), %s", t.Number, t.Role, stepWords[t.Step])
	if t.Step == trial.StepMeasure && len(t.Plan) > 0 {
		text += fmt.Sprintf(", load level %d of %d", min(len(t.Levels)+1, len(t.Plan)), len(t.Plan))
	}
	return strings.TrimSuffix(text, ", ")
}

// stepWords say what a trial does in a step.
var stepWords = map[trial.Step]string{
	trial.StepAdmit: "checking the machine", trial.StepLaunch: "launching", trial.StepWait: "waiting until it is ready",
	trial.StepCanary: "sending the longest prompts first", trial.StepQuality: "checking its answers", trial.StepWarmup: "warming up",
	trial.StepMeasure: "measuring", trial.StepStop: "stopping", trial.StepReclaim: "verifying that the machine is clean", trial.StepSave: "saving",
}
