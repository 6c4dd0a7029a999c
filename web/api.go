package web

import (
	"encoding/json"
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
	HeardAt   time.Time        `json:"tuner_heard_at,omitzero"` // newest sign of life of the process that runs it
	Silent    bool             `json:"tuner_silent,omitempty"`  // stored as running, and nobody runs it
}

func (h *Handler) apiStudies(w http.ResponseWriter, r *http.Request) {
	all, err := h.reader.Studies(r.Context())
	if err != nil {
		h.fail(w, r, err)
		return
	}
	out := make([]apiStudy, len(all))
	for i := range all {
		out[i] = newAPIStudy(&all[i])
	}
	h.sendJSON(w, r, map[string]any{"studies": out})
}

func newAPIStudy(s *tuner.Summary) apiStudy {
	now := time.Now()
	_, text := HeadlineNow(s, now)
	return apiStudy{
		Study: s.Name, State: s.State, Simulated: s.Simulated, Host: s.Host, Verdict: s.Verdict, Text: text,
		Trials: s.Trials, Finished: s.Finished, CreatedAt: s.CreatedAt, EndedAt: s.EndedAt, HeardAt: s.Heard.At, Silent: s.Silent(now),
	}
}

// apiStudyPage is what a study's page says, as /api/v1/studies/{id} has it.
type apiStudyPage struct {
	apiStudy
	Answers  []Answer        `json:"answers"`
	Releases string          `json:"host_afterwards"`
	Overview *tuner.Overview `json:"overview"`
}

func (h *Handler) apiStudy(w http.ResponseWriter, r *http.Request) {
	s, err := h.summary(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	o, err := h.reader.Overview(r.Context(), s.Name)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	h.sendJSON(w, r, apiStudyPage{apiStudy: newAPIStudy(s), Answers: AnswersNow(s, time.Now()), Releases: s.Releases, Overview: o})
}

func (h *Handler) apiTrial(w http.ResponseWriter, r *http.Request) {
	_, t, err := h.trialOf(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	h.sendJSON(w, r, t)
}

// sendJSON answers with a value as JSON.
func (h *Handler) sendJSON(w http.ResponseWriter, r *http.Request, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(b) // the reader has gone; nothing is left to do
}
