package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"sgtune/tuner"
	"sgtune/web"
)

// post sends a form as a page of ours does.
func post(t *testing.T, h http.Handler, path string, form url.Values, change ...func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost:8090"+path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "http://localhost:8090")
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// alive makes the tuner of a study heard at this moment.
func (f *fixture) alive(study string) {
	f.t.Helper()
	now := time.Now()
	if err := f.db.Hear(f.t.Context(), study, tuner.Heard{At: now, Since: now.Add(-time.Hour), PID: 4711}); err != nil {
		f.t.Fatal(err)
	}
}

// asked lists the commands of a study, newest first.
func (f *fixture) asked(study string) []tuner.Command {
	f.t.Helper()
	all, err := f.db.Asked(f.t.Context(), study, 100)
	if err != nil {
		f.t.Fatal(err)
	}
	return all
}

// TestAskPages holds what is said before anything is asked for: what is lost, and one form.
func TestAskPages(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "running", "better", "dirty")
	f.alive("running")
	h := f.handler()
	const at = "/studies/running/ask/"
	for path, want := range map[string][]string{
		at + "stop-after-trial": {"Stop after this trial?", "Trial 6 goes on to its end", "Lost: the trials and the confirmation", "sgtune tune with the same study file goes on"},
		at + "stop-now":         {"Stop now and clean up?", "Lost: trial 6", "GPU memory is verified to be free"},
		at + "void?trial=2":     {"Make trial 2 void?", "do not count any more", "This cannot be taken back"},
		at + "void?trial=6":     {"Make trial 6 void?", "trial 6 ends now"},
		at + "enqueue":          {"one launch of the budget", "mem-fraction-static = 0.88", "hicache-size = 48"},
		at + "enqueue?trial=0":  {"mem-fraction-static = 0.85"},
	} {
		w := get(t, h, path)
		text := bare(w.Body.String())
		for _, wanted := range want {
			if !strings.Contains(text, wanted) {
				t.Errorf("%s: no %q in\n%s", path, wanted, text)
			}
		}
		if w.Code != http.StatusOK || strings.Count(w.Body.String(), `<form method="post"`) != 1 || !strings.Contains(text, "Cancel") {
			t.Errorf("%s: status %d\n%s", path, w.Code, w.Body)
		}
		wellFormed(t, path, w.Body.String())
	}
	for path, want := range map[string]string{
		"/studies/better/ask/stop-now": "has ended", "/studies/better/ask/void?trial=2": "has ended", at + "void?trial=5": "void already", at + "void?trial=99": "no trial 99",
	} {
		w := get(t, h, path)
		if text := bare(w.Body.String()); w.Code != http.StatusOK || !strings.Contains(text, want) || strings.Contains(w.Body.String(), `<form method="post"`) {
			t.Errorf("%s: status %d\n%s", path, w.Code, text)
		}
	}
	for path, status := range map[string]int{
		at + "dance": http.StatusNotFound, "/studies/nobody/ask/stop-now": http.StatusNotFound, at + "void": http.StatusBadRequest, at + "void?trial=-1": http.StatusBadRequest,
	} {
		if w := get(t, h, path); w.Code != status {
			t.Errorf("%s: status %d, want %d", path, w.Code, status)
		}
	}
	if page := get(t, h, "/studies/running").Body.String(); strings.Count(page, "data-ask") != 3 || !strings.Contains(page, "ask.js") {
		t.Errorf("the running study has no controls:\n%s", page)
	}
	shown := web.New(f.db, web.Options{})
	if page := get(t, shown, "/studies/running").Body.String(); strings.Contains(page, "/ask/") {
		t.Error("a page that only shows has controls")
	}
	if w := post(t, shown, at+"stop-now", url.Values{"confirm": {"yes"}}); w.Code != http.StatusNotFound {
		t.Errorf("a page that only shows took a command: %d", w.Code)
	}
}

// TestTwoPress has two browsers stop the same trial at once, each twice.
func TestTwoPress(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "running")
	f.alive("running")
	h := f.handler()
	var group sync.WaitGroup
	for _, who := range []string{"anna", "bert"} {
		for range 2 {
			group.Go(func() {
				w := post(t, h, "/studies/running/ask/stop-now", url.Values{"confirm": {"yes"}, "once": {who}, "who": {who}})
				if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/studies/running#asked" {
					t.Errorf("%s: %d %s", who, w.Code, w.Body)
				}
			})
		}
	}
	group.Wait()
	all := f.asked("running")
	if len(all) != 1 || all[0].Kind != tuner.StopNow || time.Since(all[0].At) > time.Minute || !strings.HasSuffix(all[0].By, " at 192.0.2.1") {
		t.Fatalf("%+v", all)
	}
	if text := bare(get(t, h, "/studies/running").Body.String()); !strings.Contains(text, "by "+all[0].By+": stop now and clean up. waits for the tuner") {
		t.Errorf("the page does not say who asked:\n%s", text)
	}
	if c, err := f.db.TakeCommand(t.Context(), "running"); err != nil || c == nil || c.ID != all[0].ID {
		t.Fatalf("%+v, %v", c, err)
	}
	post(t, h, "/studies/running/ask/stop-now", url.Values{"confirm": {"yes"}, "once": {"late"}})
	if all := f.asked("running"); len(all) != 1 {
		t.Errorf("asked again after it was taken: %+v", all)
	}
	if text := bare(get(t, h, "/studies/running").Body.String()); !strings.Contains(text, "taken at") {
		t.Errorf("the page does not say that it was taken:\n%s", text)
	}
}

func TestAskTakes(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "running", "better")
	f.alive("running")
	h := f.handler()
	const at = "/studies/running/ask/"
	yes := func(more ...string) url.Values {
		v := url.Values{"confirm": {"yes"}}
		for i := 0; i < len(more); i += 2 {
			v.Set(more[i], more[i+1])
		}
		return v
	}
	for _, tt := range []struct {
		name, path string
		form       url.Values
		status     int
		want       string
	}{
		{"not confirmed", at + "stop-now", url.Values{}, http.StatusOK, "Stop now and clean up?"},
		{"over", "/studies/better/ask/stop-now", yes(), http.StatusConflict, "has ended"},
		{"void twice", at + "void", yes("trial", "5"), http.StatusConflict, "void already"},
		{"no flag", at + "enqueue", yes("config", "hello"), http.StatusBadRequest, "Line 1"},
		{"unknown", at + "enqueue", yes("config", "mem-fraction-statc = 0.9"), http.StatusBadRequest, "did you mean mem-fraction-static?"},
		{"number", at + "enqueue", yes("config", "\nmem-fraction-static = much"), http.StatusBadRequest, `Line 2: mem-fraction-static cannot be "much": it is a number`},
		{"bound", at + "enqueue", yes("config", "mem-fraction-static = 7"), http.StatusBadRequest, "outside of what SGLang takes"},
		{"twice", at + "enqueue", yes("config", "hicache-size = 1\nhicache-size = 2"), http.StatusBadRequest, "twice"},
		{"not to tune", at + "enqueue", yes("config", "api-key = x"), http.StatusBadRequest, "no flag to tune"},
		{"hostile", at + "enqueue", yes("config", nasty, "reason", nasty, "who", nasty), http.StatusBadRequest, "Line 1"},
		{"void", at + "void", yes("trial", "2", "reason", "a "+nasty), http.StatusSeeOther, ""},
		{"enqueue", at + "enqueue", yes("config", "--mem-fraction-static 0.87\r\nhicache-size: 32\r\n", "reason", "a hunch", "who", "an\x00na\n"), http.StatusSeeOther, ""},
	} {
		w := post(t, h, tt.path, tt.form)
		if w.Code != tt.status || !strings.Contains(bare(w.Body.String()), tt.want) {
			t.Errorf("%s: %d, want %d and %q\n%s", tt.name, w.Code, tt.status, tt.want, bare(w.Body.String()))
		}
		if w.Code != http.StatusSeeOther {
			wellFormed(t, tt.name, w.Body.String())
		}
	}
	all := f.asked("running")
	if len(all) != 2 || all[0].Text != "a hunch" || all[0].Config["mem-fraction-static"] != 0.87 || all[0].Config["hicache-size"] != 32.0 || all[0].By != "anna at 192.0.2.1" ||
		all[1].Kind != tuner.VoidTrial || all[1].Trial != 2 {
		t.Errorf("stored: %+v", all)
	}
	wellFormed(t, "study", get(t, h, "/studies/running").Body.String())
}

// TestAskSafety sends what no page of ours sends.
func TestAskSafety(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "running")
	f.alive("running")
	h := f.handler()
	const at = "/studies/running/ask/stop-now"
	yes := url.Values{"confirm": {"yes"}}
	set := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for name, change := range map[string]func(*http.Request){
		"foreign origin": set("Origin", "http://evil.example"), "null origin": set("Origin", "null"), "no origin": func(r *http.Request) { r.Header.Del("Origin") },
		"cross site": set("Sec-Fetch-Site", "cross-site"), "foreign host": func(r *http.Request) { r.Host = "evil.example" },
	} {
		if w := post(t, h, at, yes, change); w.Code/100 != 4 {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
	locked := web.New(f.db, web.Options{Commands: f.db, Token: token})
	if w := post(t, locked, at, yes); w.Code != http.StatusUnauthorized {
		t.Errorf("without the token: %d", w.Code)
	}
	if w := post(t, h, at, url.Values{"confirm": {"yes"}, "reason": {strings.Repeat("x", 200_000)}}); w.Code != http.StatusRequestEntityTooLarge || w.Body.Len() > most {
		t.Errorf("a big form: %d, %d bytes", w.Code, w.Body.Len())
	}
	if w := get(t, h, at+"?confirm=yes&once=x"); w.Code != http.StatusOK {
		t.Errorf("a GET: %d", w.Code)
	}
	if all := f.asked("running"); len(all) != 0 {
		t.Fatalf("a command was stored: %+v", all)
	}
	if w := post(t, locked, at, yes, set("Authorization", "Bearer "+token), func(r *http.Request) { r.Header.Del("Origin") }); w.Code != http.StatusSeeOther {
		t.Errorf("a program with the token: %d", w.Code)
	}
	if all := f.asked("running"); len(all) != 1 {
		t.Errorf("%d commands", len(all))
	}
}

// TestSilentTuner shows a study whose process is gone as stopped, on every page, and takes no commands for it.
func TestSilentTuner(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "running")
	now := time.Now()
	if err := f.db.Hear(t.Context(), "running", tuner.Heard{At: now.Add(-10 * time.Second), Since: now.Add(-time.Hour), PID: 4711}); err != nil {
		t.Fatal(err)
	}
	h := f.handler()
	for path, want := range map[string][]string{
		"/":                             {"STOPPED", "the tuner (process 4711) has not been heard from since"},
		"/studies/running":              {"tuner not heard since", "STOPPED", "the tuner (process 4711) has not been heard from since", "Nobody runs this study now", "sgtune tune STUDY.yaml"},
		"/api/v1/studies/running":       {`"tuner_silent":true`},
		"/studies/running/ask/stop-now": {"has not been heard from since", "Run sgtune tune"},
		"/metrics":                      {`sgtune_study_running{study="running"} 0`, `sgtune_study_state{study="running",state="running"} 1`},
	} {
		w := get(t, h, path)
		text := w.Body.String()
		if strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
			wellFormed(t, path, text)
			text = bare(text)
		}
		for _, wanted := range want {
			if !strings.Contains(text, wanted) {
				t.Errorf("%s: no %q in\n%s", path, wanted, text)
			}
		}
		if strings.Contains(text, "RUNNING") {
			t.Errorf("%s: it is said to run\n%s", path, text)
		}
	}
	if w := post(t, h, "/studies/running/ask/stop-now", url.Values{"confirm": {"yes"}}); w.Code != http.StatusConflict {
		t.Errorf("a stop of nobody: %d", w.Code)
	}
	f.alive("running")
	if text := bare(get(t, h, "/studies/running").Body.String()); !strings.Contains(text, "RUNNING") || strings.Contains(text, "STOPPED") {
		t.Errorf("heard again:\n%s", text)
	}
}
