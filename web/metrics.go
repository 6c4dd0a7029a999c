package web

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"sgtune/trial"
	"sgtune/tuner"
)

// metrics speaks the Prometheus text format.
func (h *Handler) metrics(w http.ResponseWriter, r *http.Request) {
	all, err := h.reader.Studies(r.Context())
	if err != nil {
		h.fail(w, r, err)
		return
	}
	counts, err := h.reader.Tally(r.Context())
	if err != nil {
		h.fail(w, r, err)
		return
	}
	m := &exposition{}
	m.head("sgtune_build_info", "Version of sgtune; the value is 1.")
	m.add("sgtune_build_info", 1, "version", h.opts.Version)
	m.studies(all, time.Now())
	m.trials(all, counts)
	if err := h.measured(r.Context(), m, all); err != nil {
		h.fail(w, r, err)
		return
	}
	if err := h.running(r.Context(), m, all); err != nil {
		h.fail(w, r, err)
		return
	}
	m.head("sgtune_live_streams", "Streams of server-sent events that are open.")
	m.add("sgtune_live_streams", float64(len(h.live)))
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(m.Bytes()) // the reader has gone; nothing is left to do
}

// exposition is a text of metrics. All of them are gauges: a study that is begun anew starts at nothing.
type exposition struct{ bytes.Buffer }

func (m *exposition) head(name, help string) {
	fmt.Fprintf(m, "# HELP %s %s\n# TYPE %[1]s gauge\n", name, help)
}

// labelText escapes a label's value.
var labelText = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// add writes one sample; labels are names and values in turn.
func (m *exposition) add(name string, v float64, labels ...string) {
	m.WriteString(name)
	for i := 0; i+1 < len(labels); i += 2 {
		start := ","
		if i == 0 {
			start = "{"
		}
		fmt.Fprintf(m, `%s%s="%s"`, start, labels[i], labelText.Replace(labels[i+1]))
	}
	if len(labels) > 1 {
		m.WriteString("}")
	}
	fmt.Fprintf(m, " %g\n", v)
}

// studies says how each study stands.
func (m *exposition) studies(all []tuner.Summary, now time.Time) {
	m.head("sgtune_study_running", "Whether a study is running.")
	for i := range all {
		m.add("sgtune_study_running", truth(all[i].State == tuner.StudyRunning && !all[i].Silent(now)), "study", all[i].Name)
	}
	m.head("sgtune_study_state", "1 for the state a study is in, as it is stored.")
	for _, s := range all {
		for _, state := range []tuner.StudyState{tuner.StudyRunning, tuner.StudyComplete, tuner.StudyStopped} {
			m.add("sgtune_study_state", truth(s.State == state), "study", s.Name, "state", string(state))
		}
	}
	m.head("sgtune_study_tuner_heard_timestamp_seconds", "When the process that runs a study was last heard from.")
	for _, s := range all {
		if !s.Heard.At.IsZero() {
			m.add("sgtune_study_tuner_heard_timestamp_seconds", float64(s.Heard.At.UnixMilli())/1000, "study", s.Name)
		}
	}
	m.head("sgtune_study_gain_ratio", "Relative gain of a study's verdict over its baseline (0.1 = 10 percent).")
	for _, s := range all {
		if s.Verdict != nil {
			m.add("sgtune_study_gain_ratio", s.Verdict.Gain, "study", s.Name, "answer", s.Verdict.Answer)
		}
	}
}

// trials counts trials by how they stand.
func (m *exposition) trials(all []tuner.Summary, counts []tuner.Tally) {
	m.head("sgtune_trials", "Trials of a study by state and outcome; void ones by themselves.")
	for _, c := range counts {
		m.add("sgtune_trials", float64(c.Count), "study", c.Study, "state", string(c.State), "outcome", string(c.Outcome), "void", fmt.Sprint(c.Void))
	}
	m.head("sgtune_trials_finished", "Finished trials of a study.")
	for _, s := range all {
		m.add("sgtune_trials_finished", float64(s.Finished), "study", s.Name)
	}
}

// truth is a truth as a sample.
func truth(v bool) float64 {
	if v {
		return 1
	}
	return 0
}

// measured gives the best and the baseline's value of each study.
func (h *Handler) measured(ctx context.Context, m *exposition, all []tuner.Summary) error {
	type pair struct{ best, baseline *trial.Trial }
	of := make([]pair, len(all))
	for i, s := range all {
		o, err := h.reader.Overview(ctx, s.Name)
		if err != nil {
			return err
		}
		for _, p := range []struct {
			number *int
			into   **trial.Trial
		}{{o.Best, &of[i].best}, {o.Baseline, &of[i].baseline}} {
			if p.number == nil {
				continue
			}
			if *p.into, err = h.reader.Trial(ctx, s.Name, *p.number); err != nil {
				return err
			}
		}
	}
	value := func(name string, i int, t *trial.Trial) {
		if t != nil && t.Value != nil {
			m.add(name, *t.Value, "study", all[i].Name, "objective", orElse(all[i].Objective, "output_tok_s"))
		}
	}
	m.head("sgtune_best_value", "Best value of a search or baseline trial, unconfirmed, in the unit of the objective (output_tok_s: tokens per second).")
	for i := range all {
		value("sgtune_best_value", i, of[i].best)
	}
	m.head("sgtune_baseline_value", "Value of the newest baseline launch, in the unit of the objective.")
	for i := range all {
		value("sgtune_baseline_value", i, of[i].baseline)
	}
	return nil
}

// running says what the trials do that run now, and how much memory was left.
func (h *Handler) running(ctx context.Context, m *exposition, all []tuner.Summary) error {
	var now []*trial.Trial
	for _, s := range all {
		if s.State != tuner.StudyRunning {
			continue
		}
		trials, err := h.runningTrials(ctx, s.Name)
		if err != nil {
			return err
		}
		now = append(now, trials...)
	}
	each := func(name, help string, value func(t *trial.Trial) (v float64, known bool), more func(t *trial.Trial) []string) {
		m.head(name, help)
		for _, t := range now {
			if v, known := value(t); known {
				m.add(name, v, append([]string{"study", t.Study, "trial", fmt.Sprint(t.Number)}, more(t)...)...)
			}
		}
	}
	none := func(*trial.Trial) []string { return nil }
	each("sgtune_running_trial_step", "1 for the step a running trial is in.", func(*trial.Trial) (float64, bool) { return 1, true },
		func(t *trial.Trial) []string { return []string{"role", string(t.Role), "step", string(t.Step)} })
	each("sgtune_running_trial_start_timestamp_seconds", "When a running trial began, by its host's clock.",
		func(t *trial.Trial) (float64, bool) {
			return float64(t.StartedAt.UnixMilli()) / 1000, !t.StartedAt.IsZero()
		}, none)
	each("sgtune_running_trial_gpu_memory_free_min_bytes", "Least free GPU memory seen in a running trial, of the fullest GPU.",
		func(t *trial.Trial) (float64, bool) { return float64(t.LowWater), t.LowWater > 0 }, none)
	each("sgtune_running_trial_host_memory_available_min_bytes", "Least available host memory seen in a running trial.",
		func(t *trial.Trial) (float64, bool) { return float64(t.MinRAM), t.MinRAM > 0 }, none)
	return nil
}
