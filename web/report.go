package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"sgtune/export"
	"sgtune/trial"
	"sgtune/tuner"
	"sgtune/web/chart"
)

// The formats of a report.
const (
	ReportHTML     = "html"     // one file with all it needs, which opens without a network
	ReportMarkdown = "markdown" // for a ticket or a chat
)

// reportBody is what a report shows: the study's page and every trial, nothing that leads out of the file.
type reportBody struct {
	*studyBody
	Made     time.Time
	Style    template.CSS
	Policy   string // Content-Security-Policy: this style and nothing else
	Figures  []chart.Figure
	Rows     []trialRow
	Left     int    // trials that the list leaves out
	Launch   string // the profile as a script, "" where no trial is worth it
	LaunchAt int    // its trial
	Database string
	Version  string
}

// reportTrials is how many trials a report lists: of a larger study those with the highest value.
const reportTrials = 300

// Report is a study as a document, in one of the formats above. What could not be read of its charts or its profile is
// left out and said in it; an unknown study is tuner.ErrNoStudy.
func (h *Handler) Report(ctx context.Context, study, format string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", nil) // a page is made for a request
	if err != nil {
		return nil, err
	}
	b, err := h.reportBody(r, study)
	if err != nil {
		return nil, fmt.Errorf("report on study %s: %w", study, err)
	}
	if format == ReportMarkdown {
		return b.markdown(), nil
	}
	return h.reportHTML(b)
}

// report sends a study's report as a file.
func (h *Handler) report(w http.ResponseWriter, r *http.Request) {
	name, err := studyName(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	b, err := h.reportBody(r, name)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	text, err := h.reportHTML(b)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", b.Policy+"; frame-ancestors 'none'")
	header.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", fileName(name)+".html"))
	_, _ = w.Write(text) // the reader has gone; nothing is left to do
}

func (h *Handler) reportHTML(b *reportBody) ([]byte, error) {
	style, err := reportStyle()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(style))
	b.Style = template.CSS(style) //nolint:gosec // our own files
	b.Policy = "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
	var out bytes.Buffer
	if err := h.pages.ExecuteTemplate(&out, "report.html", b); err != nil {
		return nil, fmt.Errorf("write the report on %s: %w", b.Name, err)
	}
	return out.Bytes(), nil
}

func (h *Handler) reportBody(r *http.Request, name string) (*reportBody, error) {
	summary, err := h.reader.Summary(r.Context(), name)
	if err != nil {
		return nil, err
	}
	b := &reportBody{Made: time.Now(), Database: filepath.Base(h.opts.DB), Version: h.opts.Version, LaunchAt: -1}
	if b.studyBody, err = h.studyBody(r, summary); err != nil {
		return nil, err
	}
	if b.Figures, err = h.reportFigures(r.Context(), name); err != nil {
		return nil, err
	}
	if err := h.reportRows(r, b); err != nil {
		return nil, err
	}
	return b, h.reportProfile(r, b)
}

// reportFigures are the charts of a study, each drawn: there is no script to do it. What mattered is taken from the
// page's charts, where it was mostly worked out already.
func (h *Handler) reportFigures(ctx context.Context, name string) ([]chart.Figure, error) {
	known, err := h.drawn(ctx, name)
	if err != nil {
		return nil, err
	}
	data, err := h.chartData(ctx, name)
	if err != nil {
		return nil, err
	}
	return data.Drawn(known.matter), nil
}

// reportRows fills the list of trials.
func (h *Handler) reportRows(r *http.Request, b *reportBody) error {
	q := tuner.TrialQuery{Limit: reportTrials}
	if b.Trials > reportTrials {
		q.Sort, q.Desc = "value", true
	}
	rows, total, err := h.reader.TrialPage(r.Context(), b.Name, q)
	if err != nil {
		return err
	}
	base, err := h.baselineValue(r, b.Name)
	if err != nil {
		return err
	}
	for _, t := range rows {
		b.Rows = append(b.Rows, newTrialRow(t, b.Summary, base))
	}
	b.Left = max(0, total-len(rows))
	return nil
}

// reportProfile fills in the profile that the study's page offers.
func (h *Handler) reportProfile(r *http.Request, b *reportBody) error {
	if b.Profile < 0 {
		return nil
	}
	t, err := h.reader.Trial(r.Context(), b.Name, b.Profile)
	if err != nil {
		return err
	}
	p, err := NewProfile(&b.Record, t)
	if err != nil {
		return nil //nolint:nilerr // such a trial is not exported; the command of the report says why
	}
	var text bytes.Buffer
	if err := export.Write(&text, "sh", p); err == nil { // else as above
		b.Launch, b.LaunchAt = text.String(), t.Number
	}
	return nil
}

// Failure is what a failed trial's line says.
func (t trialRow) Failure() string {
	if t.State != trial.Failed {
		return ""
	}
	return upper(cut(orElse(t.Verdict.Text, trial.OutcomeMeaning(t.Verdict.Outcome)), failureText))
}

// reportStyle is the style of pages and charts as a report has it: light, for screen and paper.
func reportStyle() (string, error) {
	var all strings.Builder
	for _, name := range []string{"style.css", "chart.css", "report.css"} {
		text, err := files.ReadFile("static/" + name)
		if err != nil {
			return "", fmt.Errorf("read the embedded %s: %w", name, err)
		}
		all.Write(text)
	}
	return strings.ReplaceAll(withoutDark(all.String()), "color-scheme: light dark", "color-scheme: light"), nil
}

// withoutDark takes the blocks for dark screens out of a style sheet.
func withoutDark(css string) string {
	const dark = "@media (prefers-color-scheme: dark)"
	for {
		before, rest, found := strings.Cut(css, dark)
		if !found {
			return css
		}
		depth, end := 0, len(rest)
		for i, c := range rest {
			if c == '{' {
				depth++
			} else if c == '}' {
				if depth--; depth == 0 {
					end = i + 1
					break
				}
			}
		}
		css = before + rest[end:]
	}
}
