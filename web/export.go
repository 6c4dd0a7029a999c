package web

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"sgtune/export"
	"sgtune/trial"
	"sgtune/tuner"
)

// exportBody is what the export page shows.
type exportBody struct {
	*tuner.Summary
	Trial    *trial.Trial
	Mark     Mark
	Profile  export.Profile
	Format   string
	Formats  []choice
	Text     string // the profile
	Problem  string // why there is none
	Download string
	FileName string
	Command  string // the same from a terminal
}

// export shows a trial's configuration as a launch profile, or sends it as a file (download=1).
func (h *Handler) export(w http.ResponseWriter, r *http.Request) {
	summary, err := h.summary(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	query := r.URL.Query()
	number := BestTrial(&summary.Record)
	if asked := query.Get("t"); asked != "" && asked != "best" {
		if number, err = strconv.Atoi(asked); err != nil || number < 0 {
			h.fail(w, r, misasked{"t is the number of a trial, or best."})
			return
		}
	}
	format := orElse(query.Get("format"), "sh")
	if !slices.Contains(export.Formats(), format) {
		h.fail(w, r, misasked{"format is one of the formats that the export page lists."})
		return
	}
	t, err := h.reader.Trial(r.Context(), summary.Name, number)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	b := exportBody{Summary: summary, Trial: t, Mark: markOf(t), Format: format}
	if b.Profile, err = NewProfile(&summary.Record, t); err == nil {
		var text bytes.Buffer
		err = export.Write(&text, format, b.Profile)
		b.Text, b.FileName = text.String(), export.FileName(b.Profile, format)
	}
	if query.Get("download") != "" && err == nil {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", b.FileName))
		_, _ = w.Write([]byte(b.Text)) // the reader has gone; nothing is left to do
		return
	}
	if err != nil {
		b.Problem = upper(err.Error()) + "."
	}
	at := url.Values{"t": {strconv.Itoa(number)}}
	for _, name := range export.Formats() {
		at.Set("format", name)
		b.Formats = append(b.Formats, choice{Value: name, Text: name, Link: "?" + at.Encode(), Chosen: name == format})
	}
	at.Set("format", format)
	at.Set("download", "1")
	b.Download = "?" + at.Encode()
	b.Command = fmt.Sprintf("sgtune export %s --db %s --trial %d --format %s", shellWord(summary.Name), shellWord(h.opts.DB), number, format)
	p := studyPage(summary, summary.Name+" profile of trial "+strconv.Itoa(number), crumb{Text: "profile of trial " + strconv.Itoa(number)})
	p.Running, p.Body = false, b
	h.render(w, r, http.StatusOK, "export.html", p)
}
