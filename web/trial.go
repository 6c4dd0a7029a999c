package web

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"sgtune/trial"
	"sgtune/tuner"
)

// trialBody is what the trial page shows.
type trialBody struct {
	*trial.Trial
	Objective string
	Changes   []change
	Command   string
	Spent     []spent // steps in order
}

// spent is the time a trial took for one step.
type spent struct {
	Step trial.Step
	Time time.Duration
	Now  bool
}

func (h *Handler) trial(w http.ResponseWriter, r *http.Request) {
	name, err := studyName(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	number, err := strconv.Atoi(chi.URLParam(r, "number"))
	if err != nil {
		h.fail(w, r, tuner.ErrNoTrial)
		return
	}
	revision, err := h.revision(r.Context(), name)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	record, err := h.reader.Study(r.Context(), name)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	t, err := h.reader.Trial(r.Context(), name, number)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	body := trialBody{Trial: t, Objective: record.Objective, Command: strings.Join(t.Argv, " "), Changes: changes(record.BaselineConfig, t.Config)}
	for _, step := range trial.Steps {
		now := !t.State.Finished() && t.Step == step
		if took := t.Steps[step]; took > 0 || now {
			body.Spent = append(body.Spent, spent{Step: step, Time: took, Now: now})
		}
	}
	h.render(w, r, http.StatusOK, "trial.html", page{
		Title: name + " trial " + strconv.Itoa(number), Study: name, Revision: revision, Simulated: record.Simulated,
		Running: !t.State.Finished(), Body: body,
	})
}
