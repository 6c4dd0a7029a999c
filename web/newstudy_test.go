package web_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"sgtune/web"
)

// submit sends a form as a browser on our own page does.
func submit(t *testing.T, h http.Handler, path string, body io.Reader) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost:8090"+path, body)
	r.Header.Set("Accept", "text/html")
	r.Header.Set("Origin", "http://localhost:8090")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// draft posts a text to the page of a new study.
func draft(t *testing.T, h http.Handler, do, text string) *httptest.ResponseRecorder {
	t.Helper()
	return submit(t, h, "/new", strings.NewReader(url.Values{"do": {do}, "text": {text}}.Encode()))
}

const rightFile = `study: over-night
server: {model: m, flags: {tp-size: 8}}
host: {kind: simulated, ram_budget: 400GB}
space: {hicache-size: [0, 16, 48, 56], kv-cache-dtype: [bf16, fp8_e4m3]}
workload: {file: /etc/passwd}
budget: {trials: 6}
`

func TestNewStudy(t *testing.T) {
	t.Parallel()
	h := web.New(sample(), web.Options{DB: "dir/sgtune.db"})
	page := get(t, h, "/new")
	wellFormed(t, "/new", page.Body.String())
	tests := []struct {
		name, do, text string
		want           []string // in this order
		not            []string
	}{
		{"mistakes", "check", "study: x\r\nserver:\r\n  model: m\r\nbugdet: {trials: 3}\r\nspace:\r\n  mem-fraction-statc: [0.8]\r\nworkload: {file: a.jsonl}\r\n", []string{
			"Study file, YAML", "bugdet: {trials: 3}", "2 to mend", "line 4, column 1 : unknown key `bugdet`; did you mean `budget`?", "line 6, column 3 :", "did you mean `mem-fraction-static`?",
		}, []string{"The file is right", "sgtune tune"}},
		{"right", "check", rightFile, []string{
			"Study file, YAML", "The file is right", "admitted", "excluded by rule host RAM", "448", "kv-cache-dtype", "6 trials fit", "ends about", "SIMULATED kimi-8x96", "over-night.yaml",
			"sgtune check over-night.yaml --db dir/sgtune.db", "sgtune tune over-night.yaml --db dir/sgtune.db", "passwd",
		}, []string{"to mend"}},
		{"what was found alone", "part", rightFile, []string{"The file is right"}, []string{"Study file, YAML", "All studies"}},
		{"host not asked", "part", "study: n\nserver: {model: m}\nspace: {hicache-size: [0, 16]}\nworkload: {file: a.jsonl}\n", []string{"The host was not asked yet: sgtune check", "sgtune tune n.yaml"}, nil},
		{"stored name", "part", strings.Replace(rightFile, "over-night", "done.1", 1), []string{"A study of this name is stored, with 1 trial"}, nil},
		{"nothing", "check", "", []string{"1 to mend", "the file is empty"}, nil},
		{"many", "part", "study: x\n" + strings.Repeat("bugdet: 1\n", 2000), []string{"2,003 to mend", "1,953 more."}, nil},
		{"hostile", "check", "study: '" + nasty + "'\n" + nasty + ": {" + nasty, []string{"to mend"}, nil},
		{"not text", "check", "\x00\xff\xfe" + nasty, []string{"this is a binary file"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := draft(t, h, tt.do, tt.text)
			if w.Code != http.StatusOK {
				t.Fatalf("status %d", w.Code)
			}
			if tt.do != "part" {
				wellFormed(t, tt.name, w.Body.String())
			}
			rest := strings.ReplaceAll(bare(w.Body.String()), "\n", " ")
			for _, not := range tt.not {
				if strings.Contains(rest, not) {
					t.Errorf("%q is there", not)
				}
			}
			for _, want := range tt.want {
				_, after, found := strings.Cut(rest, want)
				if !found {
					t.Fatalf("%q is not there, or not in order:\n%s", want, rest)
				}
				rest = after
			}
		})
	}
	if text := bare(page.Body.String()); !strings.Contains(text, "The file is right") {
		t.Errorf("the page begins with a file that is not right:\n%s", text)
	}
	if w := get(t, h, "/"); !strings.Contains(w.Body.String(), `href="/new"`) {
		t.Error("the list of studies does not lead to the page")
	}
}

func TestSaveNewStudy(t *testing.T) {
	t.Parallel()
	h := web.New(sample(), web.Options{})
	for text, name := range map[string]string{rightFile: "over-night.yaml", "study: [\n" + nasty: "study.yaml"} {
		w := draft(t, h, "save", text)
		header := w.Header()
		if w.Code != http.StatusOK || header.Get("Content-Disposition") != `attachment; filename="`+name+`"` || w.Body.String() != text || header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v\n%s", name, w.Code, header, w.Body)
		}
	}
}

func TestStartFromStored(t *testing.T) {
	t.Parallel()
	m := sample()
	m.studies[0].Source = "study: night\n# " + nasty + "\nserver: {model: m, env: {HF_TOKEN: ***}}\n"
	h := web.New(m, web.Options{})
	w := get(t, h, "/new?from=night")
	wellFormed(t, "/new?from=night", w.Body.String())
	if text := bare(w.Body.String()); !strings.Contains(text, "study: night") || !strings.Contains(text, "write each *** anew") {
		t.Errorf("%s", text)
	}
	if w := get(t, h, "/new?from=nobody"); w.Code != http.StatusNotFound {
		t.Errorf("status %d", w.Code)
	}
}

// endless is a form of 100 MB; it counts what was read of it.
type endless struct{ left, read int }

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), e.left)
	for i := range p[:n] {
		p[i] = 'a'
	}
	if e.read == 0 {
		copy(p, "text=")
	}
	e.left, e.read = e.left-n, e.read+n
	return n, nil
}

func TestLargeForms(t *testing.T) {
	t.Parallel()
	h := web.New(sample(), web.Options{})
	form := &endless{left: 100 << 20}
	w := submit(t, h, "/new", form)
	if w.Code != http.StatusRequestEntityTooLarge || form.read > 1<<20 {
		t.Errorf("100 MB: status %d after %d bytes", w.Code, form.read)
	}
	wellFormed(t, "100 MB", w.Body.String())
	if w := draft(t, h, "part", strings.Repeat("# a\n", 40_000)); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "larger than the 131072 bytes") {
		t.Errorf("160 kB: status %d\n%.300s", w.Code, w.Body)
	}
	if w := submit(t, h, "/new", strings.NewReader("else=1")); w.Code != http.StatusBadRequest {
		t.Errorf("no text: status %d", w.Code)
	}
	if w := submit(t, h, "/new", strings.NewReader("text=%zz")); w.Code != http.StatusBadRequest {
		t.Errorf("a broken form: status %d", w.Code)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost:8090/new", strings.NewReader("text=a"))
	r.Header.Set("Origin", "http://evil.example")
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, r)
	if answer.Code != http.StatusForbidden {
		t.Errorf("from a foreign page: status %d", answer.Code)
	}
}
