package web

import (
	"fmt"
	"net/http"
	"net/url"

	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// failureLine is a group of failures in one sentence.
type failureLine struct {
	Mark     Mark
	Count    int
	Text     string // of the newest of them
	Learnt   string // what follows from them, "" = nothing
	Code     string // outcome / cause
	Innocent bool
	Trial    int    // the newest of them
	Link     string // all of them
}

// failuresShown is how many groups the study page has room for.
const failuresShown = 6

// failureText is how much of a sentence a line shows.
const failureText = 240

func (h *Handler) failureLines(r *http.Request, study string, o *tuner.Overview) ([]failureLine, error) {
	var out []failureLine
	for _, g := range o.Failures[:min(len(o.Failures), failuresShown)] {
		t, err := h.reader.Trial(r.Context(), study, g.Newest)
		if err != nil {
			return nil, err
		}
		line := failureLine{
			Mark: markOutcome(g.Outcome), Count: g.Count, Trial: g.Newest, Code: string(g.Outcome) + " / " + g.Cause, Innocent: innocent(g.Outcome),
			Text: upper(cut(orElse(t.Verdict.Text, trial.OutcomeMeaning(g.Outcome)), failureText)),
			Link: "/studies/" + url.PathEscape(study) + "/trials?outcome=" + url.QueryEscape(string(g.Outcome)),
		}
		switch {
		case g.Outcome == trial.GPUOOM && g.Lowest != nil && g.Cause != "kv_pool_nonpositive":
			line.Learnt = fmt.Sprintf("all at mem-fraction-static %s or above", sglang.FormatValue(*g.Lowest))
		case line.Innocent:
			line.Learnt = "not the configuration's fault"
		}
		out = append(out, line)
	}
	return out, nil
}
