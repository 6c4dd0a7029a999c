package web_test

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
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

// sentBy is what a browser sends of the form on a page: each field as it stands.
func sentBy(page string) url.Values {
	out := url.Values{}
	attribute := func(tag, name string) string {
		m := regexp.MustCompile(` ` + name + `="([^"]*)"`).FindStringSubmatch(tag)
		if m == nil {
			return ""
		}
		return html.UnescapeString(m[1])
	}
	for _, m := range regexp.MustCompile(`<input[^>]*>`).FindAllString(page, -1) {
		out.Set(attribute(m, "name"), attribute(m, "value"))
	}
	for _, m := range regexp.MustCompile(`(?s)<textarea([^>]*)>\n?(.*?)</textarea>`).FindAllStringSubmatch(page, -1) {
		out.Set(attribute(m[1], "name"), html.UnescapeString(m[2]))
	}
	for _, m := range regexp.MustCompile(`(?s)<select([^>]*)>(.*?)</select>`).FindAllStringSubmatch(page, -1) {
		options := regexp.MustCompile(`<option[^>]*>`).FindAllString(m[2], -1)
		chosen := options[0]
		for _, o := range options {
			if strings.Contains(o, " selected") {
				chosen = o
			}
		}
		out.Set(attribute(m[1], "name"), attribute(chosen, "value"))
	}
	for name, values := range out {
		out.Set(name, strings.ReplaceAll(values[0], "\n", "\r\n"))
	}
	return out
}

// formOf opens a text as a form.
func formOf(t *testing.T, h http.Handler, text string) (page string, sent url.Values) {
	t.Helper()
	w := draft(t, h, "form", text)
	if w.Code != http.StatusOK {
		t.Fatalf("status %d", w.Code)
	}
	page = w.Body.String()
	wellFormed(t, "the form", page)
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		ids[m[1]] = true
	}
	for _, m := range regexp.MustCompile(` (?:aria-describedby|for|list|aria-labelledby)="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		for _, id := range strings.Fields(m[1]) {
			if !ids[id] {
				t.Errorf("%s leads to nothing", m[0])
			}
		}
	}
	return page, sentBy(page)
}

// saved is the file that a form makes.
func saved(t *testing.T, h http.Handler, sent url.Values) string {
	t.Helper()
	sent.Set("do", "save")
	w := submit(t, h, "/new", strings.NewReader(sent.Encode()))
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, bare(w.Body.String()))
	}
	return w.Body.String()
}

const writtenFile = `# A night
study: over-night   # its name
server:
  model: "/models/a b"
  flags: {tp-size: 8, trust-remote-code: true, cuda-graph-bs: [1, 2]} # every launch
  baseline:
    # what runs today
    mem-fraction-static: 0.85 # since May
strange: [kept] # as it is

host:
  kind: local
space:
  mem-fraction-static: {min: 0.80, max: 0.93, step: 0.01}
  hicache-size: # GB a rank
  - 0
  - 16

  # chunks
  chunked-prefill-size:
    values: [4096, 8192]
    log: true
workload:
  file: prompts.jsonl
  load:
    concurrency:
      - 80
      - 120
budget:
  wall: 9h
  until: "07:00" # breakfast
`

func TestFormChangesText(t *testing.T) {
	t.Parallel()
	h := web.New(sample(), web.Options{})
	tests := []struct {
		name string
		set  map[string]string
		old  string // of writtenFile
		want string // in its place
	}{
		{"a word, its comment stays", map[string]string{"study": "second"}, "study: over-night   # its name", "study: second       # its name"},
		{"a word in quotes", map[string]string{"server.model": `C:\m "x" # no comment`}, `"/models/a b"`, `"C:\\m \"x\" # no comment"`},
		{"in brackets", map[string]string{"server.flags.tp-size": "4"}, "tp-size: 8", "tp-size: 4"},
		{"a flag off", map[string]string{"server.flags": "cuda-graph-bs=[1, 2]"}, "tp-size: 8, trust-remote-code: true, ", "tp-size: 8, "},
		{
			"flags as people write them",
			map[string]string{"server.flags": "trust-remote-code=true\ncuda-graph-bs=[1, 2]\n--context-length 4096\nenable-metrics\nchat-template=a, b"},
			"[1, 2]}", `[1, 2], context-length: 4096, enable-metrics: true, chat-template: "a, b"}`,
		},
		{"a baseline flag more", map[string]string{"server.baseline": "mem-fraction-static=0.85\nhicache-size=16"}, "0.85 # since May\n", "0.85 # since May\n    hicache-size: 16\n"},
		{"no baseline", map[string]string{"server.baseline": ""}, "  baseline:\n    # what runs today\n    mem-fraction-static: 0.85 # since May\n", ""},
		{"another host", map[string]string{"host.kind": "ssh", "host.address": "me@gpu-box", "host.ram_budget": "400GB"}, "  kind: local\n", "  kind: ssh\n  address: me@gpu-box\n  ram_budget: 400GB\n"},
		{"a range", map[string]string{"knob.0.max": "0.95"}, "max: 0.93", "max: 0.95"},
		{"a list of lines", map[string]string{"knob.1.values": "0, 32 48"}, "hicache-size: # GB a rank\n  - 0\n  - 16\n", "hicache-size: [0, 32, 48] # GB a rank\n"},
		{"values, log stays", map[string]string{"knob.2.values": "[2048]"}, "[4096, 8192]", "[2048]"},
		{"values become a range", map[string]string{"knob.1.values": "", "knob.1.min": "0", "knob.1.max": "48", "knob.1.step": "16"}, "hicache-size: # GB a rank\n  - 0\n  - 16\n", "hicache-size: {min: 0, max: 48, step: 16} # GB a rank\n"},
		{"a range becomes values", map[string]string{"knob.0.values": "0.8, 0.9", "knob.0.min": "", "knob.0.max": "", "knob.0.step": ""}, "{min: 0.80, max: 0.93, step: 0.01}", "{values: [0.8, 0.9]}"},
		{"another knob", map[string]string{"knob.1.name": "max-running-requests"}, "  hicache-size: #", "  max-running-requests: #"},
		{"a knob less", map[string]string{"knob.1.name": ""}, "  hicache-size: # GB a rank\n  - 0\n  - 16\n", ""},
		{"a knob more", map[string]string{"knob.3.name": "schedule-conservativeness", "knob.3.min": "0.3", "knob.3.max": "1.3", "knob.3.step": "0.1"}, "    log: true\n", "    log: true\n  schedule-conservativeness: {min: 0.3, max: 1.3, step: 0.1}\n"},
		{"load levels", map[string]string{"workload.load.concurrency": "40,80"}, "concurrency:\n      - 80\n      - 120\n", "concurrency: [40, 80]\n"},
		{"a clock", map[string]string{"budget.until": "06:30"}, `"07:00" # breakfast`, `"06:30" # breakfast`},
		{"a limit less", map[string]string{"budget.wall": ""}, "  wall: 9h\n", ""},
		{"no budget", map[string]string{"budget.wall": "", "budget.until": ""}, "budget:\n  wall: 9h\n  until: \"07:00\" # breakfast\n", ""},
		{"sections that were not there", map[string]string{"sampler": "tpe", "confirm.launches": "3"}, "# breakfast\n", "# breakfast\nsampler: tpe\nconfirm:\n  launches: 3\n"},
		{"a text changed beside the form", map[string]string{"text": strings.Replace(writtenFile, "wall: 9h", "wall: 8h", 1), "study": "second"}, "over-night   #", "second       #"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, sent := formOf(t, h, writtenFile)
			from := writtenFile
			for id, value := range tt.set {
				if !sent.Has(id) {
					t.Fatalf("no field %s: %v", id, sent)
				}
				sent.Set(id, value)
				if id == "text" {
					from = value
				}
			}
			if strings.Count(from, tt.old) != 1 {
				t.Fatalf("%q is not once in the text", tt.old)
			}
			if diff := cmp.Diff(strings.Replace(from, tt.old, tt.want, 1), saved(t, h, sent)); diff != "" {
				t.Errorf("the text (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFormOfNothing makes the study of the quickstart from an empty page, and the command that runs it.
func TestFormOfNothing(t *testing.T) {
	t.Parallel()
	h := web.New(sample(), web.Options{DB: "sgtune.db"})
	page, sent := formOf(t, h, "")
	if text := bare(page); !strings.Contains(text, "to mend") {
		t.Errorf("an empty page is not called empty:\n%s", text)
	}
	for id, value := range map[string]string{
		"study": "quickstart", "server.model": "/models/Kimi-K2.5", "server.flags.tp-size": "8", "server.flags": "trust-remote-code", "server.baseline": "mem-fraction-static=0.85", "host.kind": "simulated",
		"host.profile": "kimi-8x96", "host.ram_budget": "400GB", "knob.0.name": "mem-fraction-static", "knob.0.min": "0.80", "knob.0.max": "0.93", "knob.0.step": "0.01", "workload.file": "quickstart.jsonl", "workload.load.concurrency": "48",
		"budget.trials": "19", "confirm.launches": "5",
	} {
		if !sent.Has(id) {
			t.Fatalf("no field %s", id)
		}
		sent.Set(id, value)
	}
	sent.Set("do", "check")
	page = submit(t, h, "/new", strings.NewReader(sent.Encode())).Body.String()
	wellFormed(t, "the second page", page)
	sent = sentBy(page)
	sent.Set("knob.1.name", "hicache-size")
	sent.Set("knob.1.values", "0 16 24 32 40 48 56")
	sent.Set("do", "check")
	page = submit(t, h, "/new", strings.NewReader(sent.Encode())).Body.String()
	text := strings.ReplaceAll(bare(page), "\n", " ")
	for _, want := range []string{"The file is right", "98 in the space, 84 admitted", "19 trials fit", "hicache-size ≤ 50 GB per rank (8 ranks)", "sgtune tune quickstart.yaml --db sgtune.db"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not there:\n%s", want, text)
		}
	}
	study, err := tuner.ParseDraft("quickstart.yaml", []byte(saved(t, h, sentBy(page))))
	if err != nil {
		t.Fatal(err)
	}
	if study.Name != "quickstart" || study.Server.Flags["trust-remote-code"] != true || study.Baseline["mem-fraction-static"] != 0.85 || len(study.Space) != 2 || study.Budget.Trials != 19 || study.Confirm != 5 {
		t.Errorf("%+v", study)
	}
}

// TestUntouchedFormKeepsText sends the form of every study file we have as it came: not a byte changes.
func TestUntouchedFormKeepsText(t *testing.T) {
	t.Parallel()
	h := web.New(sample(), web.Options{})
	var files []string
	for _, pattern := range []string{"../examples/*.yaml", "../tuner/testdata/*/*.yaml", "start.yaml"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	texts := map[string]string{
		"written": writtenFile, "right": rightFile, "json": `{"study": "a", "server": {"model": "m"},` + "\n\t" + `"space": {"hicache-size": [0, 16]}, "workload": {"file": "a"}}`, "comment": "# nothing\n", "none": "",
		"odd": "study: 'it''s'\n\"server\":\n    model: >\n      folded\n      text\n    flags: {\n      a: 'x, y',\n      b: [1,\n 2] }\nspace: {}\nbudget:\n? host\n: {kind: local}\n", "hostile": "study: a # " + nasty + "\nserver: {model: '" + nasty + "'}\n",
		"tabs": "study: [\n", "two": "study: a\n---\nstudy: b\n", "anchor": "study: &a b\nserver: *a\n", "twice": "study: a\nstudy: b\n", "no end": "study: a",
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(text)
	}
	if len(files) < 4 {
		t.Errorf("only %v", files)
	}
	for name, text := range texts {
		_, sent := formOf(t, h, text)
		if diff := cmp.Diff(strings.ReplaceAll(text, "\r\n", "\n"), saved(t, h, sent)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestMistakesBesideFields finds what check says beside the field that it is about.
func TestMistakesBesideFields(t *testing.T) {
	t.Parallel()
	h := web.New(sample(), web.Options{})
	page, _ := formOf(t, h, `study: "a b"
server: {flags: {tp-size: 8, mem-fraction-statc: 1}, baseline: {mem-fraction-static: 7}}
host:
  kind: local
  address: gpu-box
  ram_budget: 400
space:
  hicache-size: [0, x]
  mem-fraction-static: {min: 0.9, max: 0.8, step: 0.1}
workload: {load: {concurrency: [80, 80]}}
budget: {wall: 9, trials: -1, until: noon}
sampler: tea
bugdet: 1
confirm: {launches: 9}
`)
	for id, want := range map[string]string{
		"study": "`study` cannot be", "server.model": "`server.model` is missing", "server.flags": "mem-fraction-statc", "server.baseline": "mem-fraction-static", "host.address": "`host.address` is for ssh hosts", "host.ram_budget": "no unit",
		"knob.0": "hicache-size takes a number", "knob.1": "min 0.9 is above max 0.8", "workload.file": "`workload.file` is missing", "workload.load.concurrency": "80 twice", "budget.wall": "no unit", "budget.trials": "negative", "budget.until": "not a time of day",
		"sampler": "`sampler` cannot be `tea`", "confirm.launches": "from 1 to 5",
	} {
		_, entry, found := strings.Cut(page, `id="entry.`+id+`"`)
		entry, _, _ = strings.Cut(entry, "</fieldset>")
		entry, _, _ = strings.Cut(entry, `id="entry.`)
		if !found || !strings.Contains(html.UnescapeString(entry), want) || !strings.Contains(entry, `aria-invalid="true"`) || !strings.Contains(entry, `-wrong"`) {
			t.Errorf("%s: %q does not stand there:\n%s", id, want, entry)
		}
	}
	for _, id := range []string{"host.kind", "host.profile", "server.flags.tp-size"} {
		_, entry, _ := strings.Cut(page, `id="entry.`+id+`"`)
		entry, _, _ = strings.Cut(entry, `id="entry.`)
		if strings.Contains(entry, "aria-invalid") {
			t.Errorf("%s has a mistake:\n%s", id, entry)
		}
	}
}

// TestFormRefuses shows that a form changes nothing it does not understand, and says so.
func TestFormRefuses(t *testing.T) {
	t.Parallel()
	h := web.New(sample(), web.Options{})
	const odd = "study: a\nserver: {model: [m]}\nspace:\n  hicache-size: {values: [{a: 1}]}\nworkload: x\n"
	page, sent := formOf(t, h, odd)
	if sent.Has("server.model") || sent.Has("knob.0.name") || strings.Count(page, "in a way that a form cannot show") != 2 {
		t.Errorf("%v", sent)
	}
	sent.Set("workload.file", "b.jsonl") // below what is no mapping
	sent.Set("do", "check")
	page = submit(t, h, "/new", strings.NewReader(sent.Encode())).Body.String()
	if text := bare(page); !strings.Contains(text, "the form cannot change what stands here") {
		t.Errorf("%s", text)
	}
	if got := saved(t, h, sent); got != odd {
		t.Errorf("%s", got)
	}
	_, sent = formOf(t, h, writtenFile)
	sent.Set("knob.3.min", "0.5")
	sent.Set("do", "check")
	page = submit(t, h, "/new", strings.NewReader(sent.Encode())).Body.String()
	if text := bare(page); !strings.Contains(text, "these values have no knob") || sentBy(page).Get("knob.3.min") != "0.5" {
		t.Errorf("%s", text)
	}
	sent = sentBy(page)
	sent.Set("knob.3.name", "schedule-conservativeness")
	if got := saved(t, h, sent); !strings.Contains(got, "schedule-conservativeness: {min: 0.5}\n") {
		t.Errorf("%s", got)
	}
	sent.Set("text", "study: [\n"+writtenFile) // not readable any more
	if got := saved(t, h, sent); got != "study: [\n"+writtenFile {
		t.Errorf("%s", got)
	}
}

// TestLargeForm holds the page of a text with many knobs and mistakes, and the time of a form that changes much of a large text.
func TestLargeForm(t *testing.T) {
	t.Parallel()
	h := web.New(sample(), web.Options{})
	var b strings.Builder
	b.WriteString("study: x\nserver: {model: m}\nworkload: {file: a}\nspace:\n")
	for i := range 60 {
		fmt.Fprintf(&b, "  env.NCCL_%d: {min: 1, max: 0, step: 1}\n", i)
	}
	page, sent := formOf(t, h, b.String())
	if !strings.Contains(bare(page), "36 more in the text alone") {
		t.Errorf("%s", bare(page))
	}
	if got := saved(t, h, sent); got != b.String() {
		t.Errorf("%s", got)
	}
	var flags strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&flags, "f%d\n", i)
	}
	sent.Set("do", "check")
	sent.Set("server.flags", flags.String())
	sent.Set("server.baseline", flags.String())
	sent.Set("text", b.String()+"# "+strings.Repeat("long ", 20_000)+"\n")
	w := submit(t, h, "/new", strings.NewReader(sent.Encode()))
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "the form cannot change") {
		t.Errorf("status %d", w.Code)
	}
}

// TestHostOfDraft tells what earlier trials saw of a real host, with its time, and what that leaves.
func TestHostOfDraft(t *testing.T) {
	t.Parallel()
	m := sample()
	m.studies[1].Machine = &tuner.Machine{Host: "gpu-box", MemTotal: 449e9, GPUs: []tuner.GPUOfMachine{{Name: "H200", Total: 141 << 30}}}
	m.studies[1].Host, m.studies[1].StartedAt = "ssh gpu-box", night
	for n := range 4 {
		m.trials["done.1"] = append(m.trials["done.1"], &trial.Trial{
			Study: "done.1", Number: n, State: trial.Complete, StartedAt: night.Add(time.Duration(n) * time.Hour), OwnRAM: 10e9, MinRAM: 46e9,
			Memory: sglang.Observation{TP: 8, HostPoolGB: 48},
		})
	}
	h := web.New(m, web.Options{})
	text := "study: n\nserver: {model: m, flags: {tp-size: 8}}\nhost: {kind: ssh, address: gpu-box}\nspace: {hicache-size: [0, 16, 48, 56]}\nworkload: {file: a.jsonl}\nbudget: {trials: 3}\n"
	found := strings.ReplaceAll(bare(draft(t, h, "part", text).Body.String()), "\n", " ")
	for _, want := range []string{
		"3 admitted", "1 excluded by rule host RAM", "440.0 GB available", "gpu-box has 1 GPU H200 with 141 GiB each, 449.0 GB of host RAM and 440.0 GB of it free before a launch, as study done.1 saw it on",
		night.Add(3 * time.Hour).Local().Format("Mon 2 Jan 15:04"), "440.0 GB of RAM free → hicache-size ≤ 51 GB per rank (8 ranks)",
	} {
		if !strings.Contains(found, want) {
			t.Errorf("%q is not there:\n%s", want, found)
		}
	}
	other := strings.ReplaceAll(bare(draft(t, h, "part", strings.Replace(text, "gpu-box", "else", 1)).Body.String()), "\n", " ")
	if !strings.Contains(other, "The host was not asked yet: sgtune check") || strings.Contains(other, "free before") || strings.Contains(other, "per rank (") {
		t.Errorf("%s", other)
	}
}

// FuzzForm puts a value into a text by the form: what is right stays right, and nothing else changes.
func FuzzForm(f *testing.F) {
	for _, text := range []string{writtenFile, rightFile, "", "study: a\nserver:\n  flags: {}\n", "server: {model: m}\nspace: {hicache-size: [0]}\nworkload: {file: a}\nbudget:\n  wall: 9h"} {
		f.Add(text, "m", "0.7")
		f.Add(text, nasty+"\n: #", "[1")
	}
	h := web.New(sample(), web.Options{})
	f.Fuzz(func(t *testing.T, text, word, number string) {
		before, errBefore := tuner.ParseDraft("s.yaml", []byte(text))
		sent := url.Values{"text": {text}, "do": {"save"}, "server.model": {word}, "server.baseline": {"mem-fraction-static=" + number}, "confirm.launches": {number}, "knob.0.name": {word}, "knob.0.min": {number}}
		w := submit(t, h, "/new", strings.NewReader(sent.Encode()))
		if w.Code != http.StatusOK {
			t.Fatalf("status %d", w.Code)
		}
		after, errAfter := tuner.ParseDraft("s.yaml", w.Body.Bytes())
		if errBefore != nil || errAfter != nil {
			return
		}
		if len(after.Space) < len(before.Space) || after.Name != before.Name || after.Workload.File != before.Workload.File || after.Budget != before.Budget {
			t.Errorf("%q\nbecame\n%q", text, w.Body)
		}
		if model := strings.TrimSpace(word); model != "" && len(model) < 8000 && utf8.ValidString(model) && after.Server.Model != strings.ReplaceAll(model, "\r\n", "\n") && after.Server.Model != before.Server.Model {
			t.Errorf("model %q became %q", word, after.Server.Model)
		}
	})
}
