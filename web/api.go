package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"sgtune/tuner"
)

// apiStudy is one study of /api/v1/studies.
type apiStudy struct {
	Study     string           `json:"study"`
	State     tuner.StudyState `json:"state"`
	Simulated bool             `json:"simulated"`
	Host      string           `json:"host"`
	Verdict   *tuner.Verdict   `json:"verdict"`
	Text      string           `json:"text"`
	Trials    int              `json:"trials"`
	Finished  int              `json:"finished"`
	CreatedAt time.Time        `json:"created_at,omitzero"`
	EndedAt   time.Time        `json:"ended_at,omitzero"`
}

func (h *Handler) apiStudies(w http.ResponseWriter, r *http.Request) {
	all, err := h.reader.Studies(r.Context())
	if err != nil {
		h.fail(w, r, err)
		return
	}
	out := make([]apiStudy, len(all))
	for i, s := range all {
		_, text := Headline(&s.Record)
		out[i] = apiStudy{
			Study: s.Name, State: s.State, Simulated: s.Simulated, Host: s.Host, Verdict: s.Verdict, Text: text,
			Trials: s.Trials, Finished: s.Finished, CreatedAt: s.CreatedAt, EndedAt: s.EndedAt,
		}
	}
	b, err := json.Marshal(map[string]any{"studies": out})
	if err != nil {
		h.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(b) // the reader has gone; nothing is left to do
}

// metrics speaks the Prometheus text format.
func (h *Handler) metrics(w http.ResponseWriter, r *http.Request) {
	all, err := h.reader.Studies(r.Context())
	if err != nil {
		h.fail(w, r, err)
		return
	}
	var b bytes.Buffer
	b.WriteString("# HELP sgtune_study_running Whether a study is running.\n# TYPE sgtune_study_running gauge\n")
	for _, s := range all {
		running := 0
		if s.State == tuner.StudyRunning {
			running = 1
		}
		fmt.Fprintf(&b, "sgtune_study_running{study=%q} %d\n", s.Name, running)
	}
	b.WriteString("# HELP sgtune_trials_finished Finished trials of a study.\n# TYPE sgtune_trials_finished gauge\n")
	for _, s := range all {
		fmt.Fprintf(&b, "sgtune_trials_finished{study=%q} %d\n", s.Name, s.Finished)
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(b.Bytes()) // the reader has gone; nothing is left to do
}
