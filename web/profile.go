package web

import (
	"fmt"

	"sgtune/benchmark"
	"sgtune/export"
	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// BestTrial is the trial that best stands for a study: the one that was confirmed to be better, else the
// baseline.
func BestTrial(r *tuner.Record) int {
	if better(r.Verdict) {
		return r.Verdict.Trial
	}
	return 0
}

// NewProfile is a trial's configuration as a launch profile, with what it may be called. An error says why the
// trial is not exported, and what to do.
func NewProfile(r *tuner.Record, t *trial.Trial) (export.Profile, error) {
	if t.Role != trial.RoleBaseline && t.State != trial.Complete {
		ended := orElse(string(t.Verdict.Outcome), string(t.State))
		if t.State != trial.Failed {
			ended = string(t.State)
		}
		return export.Profile{}, fmt.Errorf("trial %d of %s is %s, so nothing shows that it works; export a complete one", t.Number, r.Name, ended)
	}
	for name, value := range sglang.Merge(r.Server.Flags, t.Config) {
		if why := tuner.Lossy(name, value); why != "" {
			return export.Profile{}, fmt.Errorf("trial %d of %s is not exported: %s (rule %s); export another with --trial N",
				t.Number, r.Name, why, tuner.RuleQuality)
		}
	}
	v := r.Verdict
	p := export.Profile{
		Study: r.Name, Trial: t.Number, Baseline: t.Role == trial.RoleBaseline, Simulated: r.Simulated,
		Server: r.Server, Config: t.Config, Version: t.SGLang, Figures: figures(r, t), Date: t.EndedAt,
	}
	if better(v) && t.Config.Key() == v.Config.Key() {
		p.Confirmed = true
		p.Figures = append(p.Figures, gain(v))
		p.Date = r.EndedAt
	}
	if job := wholeJob(v, p); job != "" {
		p.Figures = append(p.Figures, job)
	}
	return p, nil
}

// better reports whether a confirmation found a configuration that is better than the baseline.
func better(v *tuner.Verdict) bool { return v != nil && v.Answer == benchmark.AnswerBetter }

// wholeJob is how long the study's whole job takes with a profile, "" where the verdict does not say.
func wholeJob(v *tuner.Verdict, p export.Profile) string {
	switch {
	case v == nil:
		return ""
	case p.Confirmed:
		return tuner.JobText(v.Total, v.BaselineHours, v.Hours)
	case p.Baseline:
		return tuner.JobText(v.Total, v.BaselineHours, 0)
	}
	return ""
}

// figures says what was measured.
func figures(r *tuner.Record, t *trial.Trial) []string {
	text := Amount(t, r.Objective)
	switch {
	case text == "" && t.Verdict.Text != "":
		return []string{fmt.Sprintf("nothing was measured: %s", t.Verdict.Text)}
	case text == "":
		return []string{"nothing was measured"}
	}
	if ran := tuner.RanAtOnce(t); ran > 0 {
		text += fmt.Sprintf("; %.0f ran at once", ran)
	}
	out := []string{text}
	for _, l := range t.Levels {
		if l.Concurrency == t.Best && l.Report != nil && l.Report.OutputHigh > 0 {
			out = append(out, fmt.Sprintf("95%% interval inside this launch: %s to %s output tok/s", Number(l.Report.OutputLow), Number(l.Report.OutputHigh)))
		}
	}
	return out
}

// gain is the verdict's figure with its interval.
func gain(v *tuner.Verdict) string {
	text := fmt.Sprintf("better than the baseline by %.1f%%", 100*v.Gain)
	if v.Low != nil && v.High != nil {
		text += fmt.Sprintf(", 95%% interval %+.1f%% to %+.1f%%", 100**v.Low, 100**v.High)
	}
	if v.Level > 0 {
		text += fmt.Sprintf(", at %d clients", v.Level)
	}
	return text + fmt.Sprintf(", %d launches each", v.Launches)
}
