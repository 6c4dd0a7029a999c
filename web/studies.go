package web

import (
	"net/http"

	"sgtune/tuner"
)

// studyLine is one row of the list.
type studyLine struct {
	tuner.Summary
	Act, Text string
}

func (h *Handler) studies(w http.ResponseWriter, r *http.Request) {
	all, err := h.reader.Studies(r.Context())
	if err != nil {
		h.fail(w, r, err)
		return
	}
	p := page{Title: "Studies"}
	lines := make([]studyLine, len(all))
	for i, s := range all {
		act, text := Headline(&s.Record)
		lines[i] = studyLine{Summary: s, Act: act, Text: text}
		p.Simulated = p.Simulated || s.Simulated
		p.Running = p.Running || s.State == tuner.StudyRunning
	}
	p.Body = lines
	h.render(w, r, http.StatusOK, "studies.html", p)
}
