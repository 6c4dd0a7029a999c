package web_test

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"html"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sgtune/sglang"
	"sgtune/store"
	"sgtune/test/webbed"
	"sgtune/tuner"
	"sgtune/web"
)

// alone finds what would lead out of a report, or be run in it.
func alone(t *testing.T, name, text string) {
	t.Helper()
	for _, not := range []string{nasty, "<script", "<link", "<img", "<iframe", " src=", " href=", "url(", "@import", " style=", " onclick", "ZgotmplZ", "<nil>", "%!", "prefers-color-scheme", "light dark"} {
		if at := strings.Index(text, not); at >= 0 {
			t.Errorf("%s: %q is in the report: %s", name, not, text[max(0, at-200):min(len(text), at+200)])
		}
	}
	for _, m := range regexp.MustCompile(`https?://[^"' <)]*`).FindAllString(text, -1) {
		if m != "http://www.w3.org/2000/svg" {
			t.Errorf("%s: the address %s", name, m)
		}
	}
	if strings.Count(text, "<details") != strings.Count(text, "<details open") {
		t.Errorf("%s: something is folded away", name)
	}
	style := regexp.MustCompile(`(?s)<style>(.*)</style>`).FindStringSubmatch(text)
	policy := regexp.MustCompile(`<meta http-equiv="Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(text)
	if style == nil || policy == nil {
		t.Fatalf("%s: no style or no policy", name)
	}
	sum := sha256.Sum256([]byte(style[1]))
	want := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
	if got := html.UnescapeString(policy[1]); got != want {
		t.Errorf("%s: policy %q, want %q", name, got, want)
	}
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(text, -1) {
		if ids[m[1]] {
			t.Errorf("%s: the id %s twice", name, m[1])
		}
		ids[m[1]] = true
	}
	if strings.Count(text, "<h1") != 1 || strings.Count(text, "<table") != strings.Count(text, "<caption") {
		t.Errorf("%s: headings or captions", name)
	}
}

// TestReports writes every state's report: the words of the page, alone in one file.
func TestReports(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	h := f.handler()
	all := states
	if testing.Short() { // the slow tier has those that look alike, too
		all = []string{"better", "unconfirmed", "dirty-better", "running", "begun", "allfailed"}
	}
	for _, name := range all {
		text, err := h.Report(t.Context(), name, web.ReportHTML)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		alone(t, name, string(text))
		words := strings.ReplaceAll(bare(string(text)), "\n", " ")
		plain, err := h.Report(t.Context(), name, web.ReportMarkdown)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		record, err := f.db.Study(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range web.Answers(record) {
			for _, line := range append([]string{a.Act, a.Text}, a.Lines...) {
				if !strings.Contains(words, line) {
					t.Errorf("%s: the report lacks %q:\n%s", name, line, words)
				}
				if strings.ContainsAny(line, "<>&#|_*`[]~\\") {
					continue // written otherwise in Markdown
				}
				if !strings.Contains(string(plain), line) {
					t.Errorf("%s: the Markdown lacks %q:\n%s", name, line, plain)
				}
			}
		}
		if got := strings.Contains(words, "SIMULATED"); got != record.Simulated || strings.Contains(string(plain), "**SIMULATED**") != record.Simulated {
			t.Errorf("%s: SIMULATED %v", name, got)
		}
		if strings.Contains(string(plain), "<script") {
			t.Errorf("%s: an element in the Markdown", name)
		}
		if *keep != "" {
			if err := os.WriteFile(filepath.Join(*keep, name+".html"), text, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(*keep, name+".md"), plain, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := h.Report(t.Context(), "nobody", web.ReportHTML); !errors.Is(err, tuner.ErrNoStudy) {
		t.Errorf("nobody: %v", err)
	}
}

// TestReportFile asks for the report as the page's button does.
func TestReportFile(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "better")
	h := f.handler()
	if w := get(t, h, "/studies/better"); !strings.Contains(w.Body.String(), `href="/studies/better/report.html" download`) {
		t.Error("the study's page does not lead to its report")
	}
	w := get(t, h, "/studies/better/report.html")
	header := w.Header()
	if w.Code != http.StatusOK || header.Get("Content-Disposition") != `attachment; filename="better.html"` {
		t.Fatalf("%d %v", w.Code, header)
	}
	alone(t, "better", w.Body.String())
	policy := header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "style-src 'sha256-") || !strings.HasSuffix(policy, "frame-ancestors 'none'") || strings.Contains(policy, "script-src") {
		t.Errorf("policy %q", policy)
	}
	text := strings.ReplaceAll(bare(w.Body.String()), "\n", " ")
	for _, want := range []string{
		"better by 14.2%", "95% interval +11.6% to +16.9%", "48 GB per rank (384 GB host)", "Machine clean", "sgtune export better --db sgtune.db", "Profile of trial 2", "#!/bin/sh",
		"What failed and why", "3 of 16 trials failed", "The night", "Best so far", "Trials", "GPU 3 ran out of memory", "Made by sgtune v1 of sgtune.db",
	} {
		_, rest, found := strings.Cut(text, want)
		if !found {
			t.Fatalf("%q is not there, or not in order:\n%s", want, text)
		}
		text = rest
	}
	if w := get(t, h, "/studies/nobody/report.html"); w.Code != http.StatusNotFound {
		t.Errorf("nobody: status %d", w.Code)
	}
}

// TestReportCharts draws every chart of a night: nothing is left to a script.
func TestReportCharts(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "sgtune.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := webbed.Fill(t.Context(), db, webbed.Make("night", 40, 7)); err != nil {
		t.Fatal(err)
	}
	text, err := web.New(db, web.Options{DB: "sgtune.db"}).Report(t.Context(), "night", web.ReportHTML)
	if err != nil {
		t.Fatal(err)
	}
	alone(t, "night", string(text))
	for _, name := range []string{"night", "best", "area", "matter", "levels", "tradeoff", "knobs"} {
		_, figure, found := strings.Cut(string(text), `id="chart-`+name+`"`)
		figure, _, _ = strings.Cut(figure, "</figure>")
		if !found || !strings.Contains(figure, "<svg ") || !strings.Contains(figure, "<table") {
			t.Errorf("%s: no drawing or no table", name)
		}
		if strings.Contains(figure, "NaN") || strings.Contains(figure, "Inf") {
			t.Errorf("%s: a place that is none", name)
		}
	}
	if *keep != "" {
		if err := os.WriteFile(filepath.Join(*keep, "night.html"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestHostileReport reports on rows whose texts attack the reader.
func TestHostileReport(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "better")
	r := &tuner.Record{
		Name: "evil", State: tuner.StudyStopped, Host: nasty, Reason: nasty, Releases: "dirty: " + nasty, AfterDone: nasty, Objective: nasty, CreatedAt: night,
		Source: nasty + "</style></code>", BaselineConfig: sglang.Config{nasty: nasty, "mem-fraction-static": 0.85},
		Server: sglang.Server{Command: []string{nasty}, Model: nasty, Flags: sglang.Config{"x" + nasty: "| `</style><img src=x onerror=alert(1)>"}},
	}
	if err := f.db.SaveStudy(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	row := measured(0, "baseline", r.BaselineConfig, 100, 100)
	row.Study, row.SGLang, row.Void, row.Verdict.Text = "evil", nasty, nasty, nasty
	if err := f.db.SaveTrial(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	h := f.handler()
	text, err := h.Report(t.Context(), "evil", web.ReportHTML)
	if err != nil {
		t.Fatal(err)
	}
	alone(t, "evil", string(text))
	plain, err := h.Report(t.Context(), "evil", web.ReportMarkdown)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(plain), "<script") || strings.Contains(string(plain), "<img") {
		t.Errorf("an element in the Markdown:\n%s", plain)
	}
}
