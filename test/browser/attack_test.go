package browser_test

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/test/webbed"
	"sgtune/trial"
	"sgtune/tuner"
)

// payload runs something in a page that takes it for more than text.
const payload = `"'><img src=x onerror=window.pwned=1><svg onload=window.pwned=1></textarea></title></pre><script>window.pwned=1</script>{{.}}`

// rename gives a study a name that the store itself would refuse: a database may come from elsewhere.
func (s *site) rename(ctx context.Context, study, name string) error {
	raw, err := sql.Open("sqlite3", filepath.Join(s.dir, "sgtune.db"))
	if err != nil {
		return err
	}
	defer func() { _ = raw.Close() }() // what was written is there
	_, err = raw.ExecContext(ctx, "PRAGMA ignore_check_constraints = 1; UPDATE studies SET name = ? WHERE name = ?", name, study)
	return err
}

// evil fills a site with the studies "ended", "judged" and "running", whose every text attacks the page.
func evil(ctx context.Context, s *site) error {
	for _, name := range []string{"ended", "judged", "running"} {
		at := webbed.Start
		r := &tuner.Record{
			Name: name, State: tuner.StudyStopped, Host: payload, Reason: payload, Releases: "dirty: " + payload, Objective: "output_tok_s", CreatedAt: at, StartedAt: at, EndedAt: at.Add(time.Hour),
			BaselineConfig: sglang.Config{"mem-fraction-static": 0.85, payload: payload}, Source: "study: x\n# " + payload + "\nspace: " + payload,
			Server: sglang.Server{Command: []string{payload}, Model: payload, Flags: sglang.Config{"x" + payload: payload}},
		}
		if name == "running" {
			r.State, r.Reason, r.Releases, r.EndedAt = tuner.StudyRunning, "", "", time.Time{}
		}
		if name == "judged" {
			low, high := 0.1, 0.2
			r.State, r.Verdict = tuner.StudyComplete, &tuner.Verdict{
				Answer: benchmark.AnswerBetter, Gain: 0.15, Low: &low, High: &high, Trial: 1, Config: sglang.Config{"mem-fraction-static": 0.86, payload: payload}, BaselineValue: 2000, Value: 2300,
				Level: 120, Launches: 5, Why: payload, Text: payload, Notes: []string{payload},
			}
		}
		night := webbed.Night{Record: r}
		for n, role := range []trial.Role{trial.RoleBaseline, trial.RoleSearch, trial.RoleSearch} {
			row := webbed.Measured(n, role, sglang.Config{"mem-fraction-static": 0.85 + 0.01*float64(n), payload: payload}, 2000+float64(n), 4000)
			row.Study, row.SGLang, row.Dir, row.CreatedAt, row.StartedAt, row.EndedAt = name, payload, fmt.Sprint(n), at, at, at.Add(time.Minute)
			row.Why, row.Argv, row.Release = payload, []string{payload}, payload
			row.Verdict.Text, row.Verdict.Evidence, row.Verdict.Line = payload, payload, 2
			if n == 2 {
				row.State, row.Void = trial.Failed, payload
				row.Verdict.Outcome, row.Verdict.Phase, row.Verdict.Cause = trial.Crashed, sglang.PhasePrefill, "cuda_error"
			}
			night.Trials = append(night.Trials, row)
		}
		for _, kind := range []string{"plan", "finding", "reject", payload} {
			night.Events = append(night.Events, tuner.Event{At: at, Kind: kind, Text: payload})
		}
		if err := webbed.Fill(ctx, s.db, night); err != nil {
			return err
		}
		folder := filepath.Join(name, "1")
		if err := s.root.MkdirAll(folder, 0o700); err != nil {
			return err
		}
		for file, text := range map[string]string{
			"server.log": "a line\n" + payload + "\n\x1b]8;;javascript:alert(1)\x07link\x1b]8;;\x07 \x1b[31mred\x1b[0m\n" + strings.Repeat(payload, 100) + "\n", "page.html": payload,
		} {
			if err := s.root.WriteFile(filepath.Join(folder, file), []byte(text), 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestTextsStayText shows every page of studies whose texts are markup and scripts: they are shown as text, nothing runs, and the
// Content-Security-Policy has nothing to block.
func TestTextsStayText(t *testing.T) {
	need(t)
	t.Parallel()
	s := newSite(t, evil)
	tb := open(t, desk, "about:blank")
	for _, path := range []string{
		"/", "/new?from=ended", "/studies/ended", "/studies/ended/trials", "/studies/ended/trials?knob." + url.QueryEscape(payload) + "=1", "/studies/ended/trials/1", "/studies/ended/trials/2",
		"/studies/ended/trials/1?q=" + url.QueryEscape(payload), "/studies/ended/trials/1/files/page.html", "/studies/ended/compare?t=0,1,2&all=1", "/studies/ended/export?t=1", "/studies/judged", "/studies/judged/export", "/studies/running", "/studies/running/trials/1",
		"/studies/running/ask/enqueue?trial=1", "/studies/running/ask/void?trial=1",
	} {
		tb.visit(s.url + path)
		if !strings.Contains(path, "/files/") {
			tb.charts()
		}
		stays(tb, path)
		if !strings.HasSuffix(path, "/ask/void?trial=1") && !eval[bool](tb, `(document.body.textContent + [...document.querySelectorAll("textarea, input")].map((e) => e.value).join()).includes("onerror=window.pwned=1")`) {
			t.Errorf("%s does not show the text", path)
		}
	}
	tb.visit(s.url + "/studies/judged")
	_, report := tb.download(func() { tb.click(`#verdict a[href$="/report.html"]`) })
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, report, 0o600); err != nil {
		t.Fatal(err)
	}
	tb.visit("file://" + file) // no header of ours protects it there
	stays(tb, "the report file")
}

// stays fails the test when something of a text became a part of the page, or ran.
func stays(tb *tab, path string) {
	tb.t.Helper()
	if n := eval[int](tb, `document.querySelectorAll("img, main script:not([src]), [onload], [onerror], a[href^='javascript:']").length`); n > 0 {
		tb.t.Errorf("%s: %d elements out of a text", path, n)
	}
	if eval[bool](tb, `"pwned" in window`) {
		tb.t.Errorf("%s: a text ran", path)
	}
}

// TestNameIsMarkup has a study whose name is markup, in a database that another program wrote.
func TestNameIsMarkup(t *testing.T) {
	need(t)
	t.Parallel()
	const name = `"><img src=x onerror=window.pwned=1>`
	s := newSite(t, func(ctx context.Context, s *site) error {
		if err := standing("better")(ctx, s); err != nil {
			return err
		}
		return s.rename(ctx, "better", name)
	})
	tb := open(t, desk, s.url+"/")
	tb.holds("#rows", name)
	tb.click("#rows th a")
	tb.until("the study", `document.readyState === "complete" && document.querySelector("h1").textContent.includes("onerror")`)
	tb.charts()
	tb.holds("h1", name)
	at := "/studies/" + url.PathEscape(name)
	for _, path := range []string{at + "/trials", at + "/trials/2", at + "/compare?t=0,2", at + "/export?t=2", "/new?from=" + url.QueryEscape(name)} {
		tb.visit(s.url + path)
		if n := eval[int](tb, `document.images.length`); n > 0 || eval[bool](tb, `"pwned" in window`) {
			t.Errorf("%s: %d images, or a name ran", path, n)
		}
	}
}

// TestLongNameKeepsTheLayout has a study with a name of 10,000 characters without a blank.
func TestLongNameKeepsTheLayout(t *testing.T) {
	need(t)
	t.Parallel()
	s := newSite(t, func(ctx context.Context, s *site) error {
		if err := standing("better", "running")(ctx, s); err != nil {
			return err
		}
		for _, name := range []string{"better", "running"} {
			if err := s.rename(ctx, name, name+strings.Repeat("x", 10_000)); err != nil {
				return err
			}
		}
		return nil
	})
	tb := open(t, phone, "about:blank")
	ended, runs := "better"+strings.Repeat("x", 10_000), "running"+strings.Repeat("x", 10_000)
	for _, path := range []string{
		"/", "/new", "/studies/" + ended, "/studies/" + ended + "/trials", "/studies/" + ended + "/trials/2", "/studies/" + ended + "/compare?t=0,2", "/studies/" + ended + "/export?t=2",
		"/studies/" + runs, "/studies/" + runs + "/ask/stop-now",
	} {
		tb.visit(s.url + path)
		if wide := eval[int](tb, `document.documentElement.scrollWidth`); wide > int(phone.width) {
			where := eval[string](tb, `(() => { const e = [...document.querySelectorAll("body *")].find((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll, pre, .unseen, textarea")); return e ? e.outerHTML.slice(0, 120) : "?"; })()`)
			t.Errorf("%.60s is %d wide, first at %s", path, wide, where)
		}
	}
}

// TestForeignPagesAskForNothing has pages of other origins send what our own page sends, and show our page in a frame.
func TestForeignPagesAskForNothing(t *testing.T) {
	need(t)
	t.Parallel()
	s := newSite(t, standing("running"))
	target := s.url + "/studies/running/ask/stop-now"
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<!doctype html><link rel="icon" href="data:,"><title>foreign</title>
			<form method="post" action="%s"><input name="confirm" value="yes"><button>win</button></form><iframe src="%s/studies/running"></iframe>`, target, s.url)
	}))
	defer foreign.Close()
	_, port, err := net.SplitHostPort(foreign.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost", "evil.test"} { // another port, another name of ours, another name
		t.Run(host, func(t *testing.T) {
			tb := open(t, desk, "about:blank").expects("frame-ancestors", "403", "net::ERR_", "CORS policy")
			tb.visit("http://" + host + ":" + port)
			for range 100 { // the frame loads beside the page
				if len(tb.heard("frame-ancestors")) > 0 {
					break
				}
				time.Sleep(50 * time.Millisecond)
			}
			if len(tb.heard("frame-ancestors")) == 0 {
				t.Error("our page was shown in a frame")
			}
			for _, mode := range []string{"no-cors", "cors"} {
				got := eval[string](tb, fmt.Sprintf(`fetch(%q, { method: "POST", mode: %q, credentials: "include", body: new URLSearchParams({ confirm: "yes" }) }).then((r) => r.type + r.status, () => "refused")`, target, mode))
				if got != "refused" {
					t.Errorf("a request in mode %s: %s", mode, got)
				}
			}
			tb.click("button")
			tb.until("the answer", `document.readyState === "complete" && document.body.textContent.includes("does not come from a page of sgtune")`)
			if asked := s.asked(t, "running"); len(asked) != 0 {
				t.Errorf("stored: %+v", asked)
			}
		})
	}
}

// TestBentNameSeesNothing has a foreign name lead to our address, as a page does that bends its name after it was loaded.
func TestBentNameSeesNothing(t *testing.T) {
	need(t)
	t.Parallel()
	s := read(t, "states")
	_, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		t.Fatal(err)
	}
	tb := open(t, desk, "about:blank").expects("421", "Cross-Origin-Opener-Policy")
	for _, path := range []string{"/", "/studies/better", "/api/v1/studies", "/events?study=running", "/metrics"} {
		tb.visit("http://evil.test:" + port + path)
		text := eval[string](tb, `document.documentElement.textContent`)
		if !strings.Contains(text, "answers only to its own address") || strings.Contains(text, "better") {
			t.Errorf("%s: %.200s", path, text)
		}
	}
}

// TestNoPathLeadsOut asks for what lies beside the files that pages serve.
func TestNoPathLeadsOut(t *testing.T) {
	need(t)
	t.Parallel()
	s := newSite(t, standing("better"))
	tb := open(t, desk, s.url+"/").expects("404", "400")
	static := eval[string](tb, `new URL(document.querySelector("link[rel=stylesheet]").href).pathname`)
	static = static[:strings.LastIndex(static, "/")]
	const files = "/studies/better/trials/1/files/"
	for _, path := range []string{
		files + "..%2f..%2f..%2fsgtune.db", files + "%2e%2e%2f%2e%2e%2f%2e%2e%2fsgtune.db", files + "..%5c..%5csgtune.db", files + "%2fetc%2fpasswd", files + "server.log%00.txt",
		static + "/..%2f..%2fserver.go", static + "/..%2ftemplate%2flayout.html", static + "/%2e%2e%2f%2e%2e%2fetc/passwd",
		"/studies/..%2f..%2fsgtune.db", "/studies/better/trials/..%2f..%2f1", "/studies/better/export?t=2&format=..%2f..%2fsh",
	} {
		tb.visit(s.url + path)
		text := eval[string](tb, `document.documentElement.textContent`)
		if len(tb.heard("http 40")) == 0 || len(tb.heard(path)) == 0 {
			t.Errorf("%s is not refused", path)
		}
		for _, inside := range []string{"SQLite format", "root:", "package web", "{{define"} {
			if strings.Contains(text, inside) {
				t.Errorf("%s leads out: %.200s", path, text)
			}
		}
	}
	tb.visit(s.url + files + "server.log") // what is there is there
	if text := eval[string](tb, `document.documentElement.textContent`); !strings.Contains(text, webbed.Evidence) {
		t.Errorf("the log is not shown: %.200s", text)
	}
}
