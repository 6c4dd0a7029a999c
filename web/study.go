package web

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// Rows shown at once.
const (
	trialsPerPage = 50
	eventsShown   = 30
)

// studyBody is what the study page shows.
type studyBody struct {
	*tuner.Record
	Act, Text   string
	Changes     []change // what to change, only after "better"
	Current     *trial.Trial
	BestTrial   *trial.Trial // highest value so far, while there is no verdict
	Trials      []*trial.Trial
	Total       int
	Newer       int // page numbers, 0 = none
	Older       int
	Events      []tuner.Event
	LastFailure *trial.Trial
}

// change is one flag that differs from what runs today; "" is a flag that is not set.
type change struct{ Flag, Today, New string }

func (h *Handler) study(w http.ResponseWriter, r *http.Request) {
	name, err := studyName(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	revision, err := h.revision(r.Context(), name) // first: what follows may be newer, never older
	if err != nil {
		h.fail(w, r, err)
		return
	}
	body, err := h.studyBody(r, name)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	h.render(w, r, http.StatusOK, "study.html", page{
		Title: name, Study: name, Revision: revision, Simulated: body.Simulated, Running: body.State == tuner.StudyRunning, Body: body,
	})
}

func (h *Handler) studyBody(r *http.Request, name string) (*studyBody, error) {
	record, err := h.reader.Study(r.Context(), name)
	if err != nil {
		return nil, err
	}
	trials, err := h.reader.Trials(r.Context(), name)
	if err != nil {
		return nil, err
	}
	events, _, err := h.reader.Events(r.Context(), name, -eventsShown, eventsShown)
	if err != nil {
		return nil, err
	}
	slices.Reverse(events)
	b := &studyBody{Record: record, Total: len(trials), Events: events}
	b.Act, b.Text = Headline(record)
	if record.Verdict != nil && record.Verdict.Answer == "better" {
		b.Changes = changes(record.BaselineConfig, record.Verdict.Config)
	}
	for _, t := range trials {
		switch {
		case !t.State.Finished():
			b.Current = t
		case t.State == trial.Failed && t.Void == "":
			b.LastFailure = t
		case t.State == trial.Complete && t.Void == "" && t.Value != nil && (b.BestTrial == nil || *t.Value > *b.BestTrial.Value):
			b.BestTrial = t
		}
	}
	slices.Reverse(trials)
	number, _ := strconv.Atoi(r.URL.Query().Get("page")) // anything else is page 1
	b.cut(trials, number)
	return b, nil
}

// cut takes one page of the trials, newest first.
func (b *studyBody) cut(trials []*trial.Trial, number int) {
	last := max(1, (len(trials)+trialsPerPage-1)/trialsPerPage)
	number = min(max(number, 1), last)
	b.Trials = trials[(number-1)*trialsPerPage : min(number*trialsPerPage, len(trials))]
	b.Newer = number - 1
	if number < last {
		b.Older = number + 1
	}
}

// changes lists the flags in which a configuration differs from what runs today.
func changes(today, better sglang.Config) []change {
	var out []change
	for _, name := range sglang.Merge(today, better).Names() {
		c := change{Flag: name, Today: setting(today, name), New: setting(better, name)}
		if c.Today != c.New {
			out = append(out, c)
		}
	}
	return out
}

// setting is a knob's value in words.
func setting(c sglang.Config, name string) string {
	value, set := c[name]
	switch {
	case !set:
		return "not set"
	case name == "hicache-size" && value == 0.0:
		return "off"
	}
	return sglang.FormatValue(value)
}

// revision is the change counter of a study.
func (h *Handler) revision(ctx context.Context, name string) (int64, error) {
	all, err := h.reader.Studies(ctx)
	if err != nil {
		return 0, err
	}
	i := slices.IndexFunc(all, func(s tuner.Summary) bool { return s.Name == name })
	if i < 0 {
		return 0, tuner.ErrNoStudy
	}
	return all[i].Revision, nil
}
