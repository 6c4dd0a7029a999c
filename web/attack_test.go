package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sgtune/sglang"
	"sgtune/tuner"
	"sgtune/web"
)

// TestHostileQueries asks for what no page links to: nothing but an answer of a few kilobytes may come of it.
func TestHostileQueries(t *testing.T) {
	t.Parallel()
	h := newFixture(t, "better").handler()
	long, script := strings.Repeat("x", 10_000), "%3Cscript%3Ealert(1)%3C/script%3E%3C/textarea%3E"
	megabyte := strings.Repeat("a=b&", 1<<18)
	tests := []struct {
		path   string
		status int
	}{
		{"/studies/" + long, http.StatusNotFound},
		{"/studies/" + script, http.StatusNotFound},
		{"/studies/" + long + "/trials", http.StatusNotFound},
		{"/studies/better%00", http.StatusNotFound},
		{"/studies/..%2f..%2fetc%2fpasswd", http.StatusNotFound},
		{"/studies/better'%20OR%201=1--", http.StatusNotFound},
		{"/" + script, http.StatusNotFound},
		{"/?state=" + script, http.StatusBadRequest},
		{"/?page=" + script, http.StatusOK},
		{"/studies/better/trials?" + megabyte, http.StatusOK},
		{"/studies/better?" + megabyte, http.StatusOK},
		{"/studies/better/trials?" + megabyte[:36_000], http.StatusOK},
		{"/?" + megabyte[:36_000], http.StatusOK},
		{"/studies/better/trials?sort=" + script, http.StatusBadRequest},
		{"/studies/better/trials?sort=value;drop", http.StatusOK}, // a semicolon makes no pair
		{"/studies/better/trials?sort=knob." + long, http.StatusBadRequest},
		{"/studies/better/trials?outcome=" + script, http.StatusBadRequest},
		{"/studies/better/trials?knob." + script + "=1", http.StatusOK},
		{"/studies/better/trials?knob.x%22%27)%20OR%201=1=1", http.StatusOK},
		{"/studies/better/trials?knob." + long + "=1", http.StatusBadRequest},
		{"/studies/better/trials?knob.x=" + long, http.StatusBadRequest},
		{"/studies/better/trials?knob.x=1..y", http.StatusBadRequest},
		{"/studies/better/trials?knob.a=1&knob.b=1&knob.c=1&knob.d=1&knob.e=1&knob.f=1&knob.g=1&knob.h=1&knob.i=1", http.StatusBadRequest},
		{"/studies/better/trials?knob=" + script + "&range=" + script, http.StatusOK},
		{"/studies/better/trials?page=99999999999999999999", http.StatusOK},
		{"/studies/better/trials/99999999999999999999", http.StatusNotFound},
		{"/studies/better/trials/-1", http.StatusNotFound},
		{"/studies/better/trials/1?q=" + script, http.StatusOK},
		{"/studies/better/trials/1?q=" + long, http.StatusOK},
		{"/studies/better/trials/1?" + megabyte, http.StatusOK},
		{"/studies/better/compare?t=" + script, http.StatusBadRequest},
		{"/studies/better/compare?t=1,2,3,4,5", http.StatusBadRequest},
		{"/studies/better/compare?t=" + strings.Repeat("1,", 100_000), http.StatusBadRequest},
		{"/studies/better/export?t=" + script, http.StatusBadRequest},
		{"/studies/better/export?t=2&format=" + script, http.StatusBadRequest},
		{"/studies/better/export?t=2&format=../../x", http.StatusBadRequest},
	}
	for _, tt := range tests {
		w := get(t, h, tt.path)
		if w.Code != tt.status {
			t.Errorf("%.80s: status %d, want %d", tt.path, w.Code, tt.status)
		}
		if w.Header().Get("X-Request-Id") == "" {
			t.Errorf("%.80s: no request id", tt.path)
		}
		wellFormed(t, tt.path[:min(len(tt.path), 80)], w.Body.String())
	}
}

// TestHostileRows shows rows whose texts attack the page.
func TestHostileRows(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "better")
	huge := strings.Repeat("y", 100_000)
	r := &tuner.Record{
		Name: "evil", State: tuner.StudyStopped, Host: nasty, Reason: nasty + "; " + huge[:2000], Releases: "dirty: " + nasty, AfterDone: nasty, Objective: nasty, CreatedAt: night,
		BaselineConfig: sglang.Config{nasty: nasty, "mem-fraction-static": 0.85},
		Server:         sglang.Server{Command: []string{nasty}, Model: nasty, Flags: sglang.Config{"x" + nasty: `"><img src=x onerror=alert(1)>`}},
	}
	if err := f.db.SaveStudy(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	row := measured(0, "baseline", r.BaselineConfig, 100, 100)
	row.Study, row.SGLang, row.Dir = "evil", nasty, "../better/1"
	row.Verdict.Text, row.Verdict.Evidence = nasty, nasty
	if err := f.db.SaveTrial(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	outside := measured(1, "search", sglang.Config{"javascript:alert(1)": "javascript:alert(1)"}, 100, 100)
	outside.Study, outside.Dir = "evil", "../../../../../etc"
	if err := f.db.SaveTrial(t.Context(), outside); err != nil {
		t.Fatal(err)
	}
	h := f.handler()
	for _, path := range []string{"/", "/studies/evil", "/studies/evil/trials", "/studies/evil/trials/0", "/studies/evil/trials/1", "/studies/evil/compare?t=0,1&all=1", "/studies/evil/export?t=0"} {
		w := get(t, h, path)
		if w.Code != http.StatusOK {
			t.Errorf("%s: status %d", path, w.Code)
		}
		text := strings.ReplaceAll(w.Body.String(), "javascript:alert(1)", "") // as text it does nothing
		if strings.Contains(w.Body.String(), `href="javascript:`) {
			t.Errorf("%s: a link to a script", path)
		}
		wellFormed(t, path, strings.ReplaceAll(text, "onerror=alert", ""))
		if strings.Contains(text, "<img") {
			t.Errorf("%s: an element out of a text", path)
		}
	}
	if w := get(t, h, "/studies/evil/trials/1/files/passwd"); w.Code != http.StatusNotFound {
		t.Errorf("a row that leads out of the folder: status %d", w.Code)
	}
	w := get(t, h, "/studies/better/export?t=2&download=1")
	if w.Code != http.StatusOK || w.Header().Get("Content-Disposition") != `attachment; filename="better-2.sh"` || !strings.HasPrefix(w.Body.String(), "#!/bin/sh") {
		t.Errorf("download: %d %v", w.Code, w.Header())
	}
}

func TestErrorPages(t *testing.T) {
	t.Parallel()
	h := web.New(sample(), web.Options{DB: "dir/sgtune.db"})
	w := get(t, h, "/studies/nobody")
	text := bare(w.Body.String())
	for _, want := range []string{"Not Found", "no study of this name in sgtune.db", "/studies/nobody", "All studies", "Request " + w.Header().Get("X-Request-Id")} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodDelete, "http://localhost/", nil)
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, r)
	if answer.Code != http.StatusForbidden {
		t.Errorf("DELETE: status %d", answer.Code)
	}
	if head := get(t, h, "/", func(r *http.Request) { r.Method = http.MethodHead }); head.Code != http.StatusOK {
		t.Errorf("HEAD: status %d", head.Code)
	}
}
