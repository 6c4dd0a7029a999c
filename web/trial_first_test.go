package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// flushed calls first when a response is flushed for the first time, with what has been written by then.
type flushed struct {
	*httptest.ResponseRecorder
	first func(text string)
}

// Flush implements http.Flusher.
func (f *flushed) Flush() {
	if f.first != nil {
		f.first(f.Body.String())
	}
	f.first = nil
}

// TestTrialComesBeforeItsLog writes a trial's log when the first part of its page has been sent: what is known without it
// is on that part, and the log on the rest.
func TestTrialComesBeforeItsLog(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "better")
	head := ""
	w := &flushed{httptest.NewRecorder(), func(text string) {
		head = text
		f.write("better", 2, "server.log", strings.Repeat("[2026-01-01 22:00:00 TP1] Decode batch, #running-req: 41\n", 200_000)+"the last line\n")
	}}
	f.handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/studies/better/trials/2", nil))
	for _, want := range []string{"Trial 2", "2,121 output tok/s at 120 clients", "Load levels", "8 min 51 s"} {
		if !strings.Contains(bare(head), want) {
			t.Errorf("first: no %q in\n%s", want, bare(head))
		}
	}
	rest, found := strings.CutPrefix(w.Body.String(), head)
	if !found || head == "" || !strings.Contains(rest, "the last line") || !strings.Contains(rest, "200,001 lines") || !strings.HasSuffix(rest, "</html>\n") {
		t.Errorf("then: %s", bare(rest))
	}
	wellFormed(t, "the page", w.Body.String())
}

// TestStudyNamesItsTrials follows the short links to trials that tables of a study's page have.
func TestStudyNamesItsTrials(t *testing.T) {
	t.Parallel()
	h := newFixture(t, "better").handler()
	if page := get(t, h, "/studies/better").Body.String(); !strings.Contains(page, `<a href="?t=2">`) {
		t.Error("no table names trial 2")
	}
	for query, want := range map[string]string{"?t=2": "/studies/better/trials/2", "?t=//evil.example": "/studies/better/trials/%2F%2Fevil.example"} {
		if w := get(t, h, "/studies/better"+query); w.Code != http.StatusSeeOther || w.Header().Get("Location") != want {
			t.Errorf("%s: status %d, to %q", query, w.Code, w.Header().Get("Location"))
		}
	}
}
