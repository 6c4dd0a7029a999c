package web_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// TestAPI reads the facts of pages as JSON, by the link in each page's foot.
func TestAPI(t *testing.T) {
	t.Parallel()
	h := newFixture(t, "better").handler()
	link := regexp.MustCompile(`<a href="([^"]+)">JSON</a>`)
	for path, want := range map[string][]string{
		"/":               {`"study":"better"`, `"text":"better by 14.2% (+11.6 to +16.9)"`},
		"/studies/better": {`"act":"CHANGE","text":"better by 14.2%"`, `95% interval +11.6% to +16.9%, 5 launches each.`, `"failed":3`, `"outcome":"gpu_oom","cause":"prefill_activation","count":2`},
		"/studies/better/trials?outcome=gpu_oom&sort=number": {`"page":1`, `"total":2`, `"number":1`, `"number":3`},
		"/studies/better/trials/1":                           {`"number":1`, `"outcome":"gpu_oom"`, `"evidence_line":2481`},
		"/studies/better/compare":                            {`"act":"CHANGE"`},
	} {
		found := link.FindStringSubmatch(get(t, h, path).Body.String())
		if found == nil {
			t.Errorf("%s: no link to its JSON", path)
			continue
		}
		w := get(t, h, strings.ReplaceAll(found[1], "&amp;", "&"))
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s: %s: status %d", path, found[1], w.Code)
		}
		rest := w.Body.String()
		for _, text := range want {
			_, after, ok := strings.Cut(rest, text)
			if !ok {
				t.Errorf("%s: %s has no %s, or not in order: %.300s", path, found[1], text, w.Body)
				break
			}
			rest = after
		}
	}
	for path, status := range map[string]int{
		"/api/v1/studies/nobody": 404, "/api/v1/studies/nobody/trials": 404, "/api/v1/studies/better/trials/99": 404, "/api/v1/studies/better/trials?sort=x": 400,
	} {
		if w := get(t, h, path); w.Code != status || strings.Contains(w.Body.String(), "<") {
			t.Errorf("%s: status %d, %s", path, w.Code, w.Body)
		}
	}
}

// TestStaticFiles holds that files have an address of their state, and may be kept for good.
func TestStaticFiles(t *testing.T) {
	t.Parallel()
	h := newFixture(t, "running").handler()
	page := get(t, h, "/studies/running").Body.String()
	all := regexp.MustCompile(`"(/static/[^"]+)"`).FindAllStringSubmatch(page, -1)
	if len(all) < 4 {
		t.Fatalf("only %d static files are named", len(all))
	}
	for _, m := range all {
		w := get(t, h, m[1])
		if w.Code != http.StatusOK || w.Header().Get("Cache-Control") != "public, max-age=31536000, immutable" || w.Body.Len() == 0 {
			t.Errorf("%s: status %d, %v", m[1], w.Code, w.Header())
		}
		other := regexp.MustCompile(`/static/[0-9a-f]+/`).ReplaceAllString(m[1], "/static/0123456789ab/")
		if w := get(t, h, other); w.Code != http.StatusNotFound || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: status %d", other, w.Code)
		}
	}
}
