package web_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
	"sgtune/web"
)

var night = time.Date(2026, 1, 1, 22, 0, 0, 0, time.UTC)

// memory is a Reader over values.
type memory struct {
	mu       sync.Mutex
	studies  []tuner.Summary
	trials   map[string][]*trial.Trial
	happened []tuner.Event
	broken   error
}

func (m *memory) Studies(context.Context) ([]tuner.Summary, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]tuner.Summary(nil), m.studies...), m.broken
}

func (m *memory) Study(_ context.Context, name string) (*tuner.Record, error) {
	for _, s := range m.studies {
		if s.Name == name {
			return &s.Record, m.broken
		}
	}
	return nil, fmt.Errorf("study %s: %w", name, tuner.ErrNoStudy)
}

func (m *memory) Trials(_ context.Context, study string) ([]*trial.Trial, error) {
	return append([]*trial.Trial(nil), m.trials[study]...), m.broken
}

func (m *memory) Trial(_ context.Context, study string, number int) (*trial.Trial, error) {
	for _, t := range m.trials[study] {
		if t.Number == number {
			return t, m.broken
		}
	}
	return nil, fmt.Errorf("trial %d: %w", number, tuner.ErrNoTrial)
}

func (m *memory) Events(context.Context, string, int64, int) ([]tuner.Event, int64, error) {
	return append([]tuner.Event(nil), m.happened...), 0, m.broken
}

func (m *memory) touch() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.studies[0].Revision++
}

const nasty = `<script>alert(1)</script></textarea>`

// sample holds a running simulated study and a finished real one.
func sample() *memory {
	value, better := 1842.4, 2104.0
	low, high := 0.116, 0.169
	report := &benchmark.Report{OutputTokS: 2104, OutputLow: 2080, OutputHigh: 2130, Valid: true, Seconds: 120}
	report.TTFTms = &benchmark.Distribution{P95: 4100}
	ok := trial.Verdict{Outcome: trial.OK, Phase: sglang.PhaseDecode, Cause: "none", Text: "It ran."}
	trials := []*trial.Trial{
		{Number: 0, Role: trial.RoleBaseline, State: trial.Complete, Config: sglang.Config{"mem-fraction-static": 0.85}, Value: &value, Best: 120, Verdict: ok, StartedAt: night, EndedAt: night.Add(time.Hour)},
		{
			Number: 1, Role: trial.RoleSearch, State: trial.Failed, Config: sglang.Config{"mem-fraction-static": 0.93}, StartedAt: night,
			Verdict: trial.Verdict{
				Outcome: trial.GPUOOM, Phase: sglang.PhasePrefill, Cause: "prefill_activation", Blames: trial.BlameYes,
				Text: "GPU 3 ran out of memory in prefill.", Evidence: "torch.OutOfMemoryError: " + nasty,
			},
		},
		{
			Number: 2, Role: trial.RoleSearch, State: trial.Complete, Config: sglang.Config{"mem-fraction-static": 0.88, "hicache-size": 48.0}, Value: &better, Best: 120, Verdict: ok,
			Levels: []trial.Level{{Concurrency: 120, Report: report}, {Concurrency: 160}}, Memory: sglang.Observation{Tokens: 159277, AfterGraphGiB: 5.47, HostPoolGB: 48},
			Steps: map[trial.Step]time.Duration{trial.StepWait: 531 * time.Second}, MaxRunning: 41, Argv: []string{"python3", "-m", "sglang.launch_server"},
		},
		{Number: 3, Role: trial.RoleConfirm, State: trial.Running, Step: trial.StepMeasure, Config: sglang.Config{"env.X": nasty}, StartedAt: night, Steps: map[trial.Step]time.Duration{trial.StepLaunch: time.Second}},
	}
	for _, t := range trials {
		t.Study = "night"
	}
	return &memory{
		studies: []tuner.Summary{
			{Record: tuner.Record{Name: "night", State: tuner.StudyRunning, Simulated: true, Host: "simulated kimi-8x96", BaselineConfig: trials[0].Config}, Trials: 4, Finished: 3, Revision: 7},
			{
				Record: tuner.Record{
					Name: "done.1", State: tuner.StudyComplete, Host: "local", BaselineConfig: sglang.Config{"mem-fraction-static": 0.85, "tp-size": 8.0},
					Verdict: &tuner.Verdict{Answer: "better", Gain: 0.142, Low: &low, High: &high, Config: sglang.Config{"mem-fraction-static": 0.88, "tp-size": 8.0}, Text: "better: trial 2 makes it"},
				},
				Trials: 1, Finished: 1, Revision: 2,
			},
		},
		trials:   map[string][]*trial.Trial{"night": trials},
		happened: []tuner.Event{{At: night, Kind: "reject", Text: "host RAM: 56 GB x 8 is too much " + nasty}},
	}
}

// get asks the handler as a browser on the same machine does.
func get(t *testing.T, h http.Handler, path string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost:8090"+path, nil)
	r.Header.Set("Accept", "text/html")
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestPages(t *testing.T) {
	t.Parallel()
	h := web.New(sample(), web.Options{DB: "sgtune.db", Version: "1.0"})
	tests := []struct {
		path string
		want []string // in this order
		not  []string
	}{
		{"/", []string{"SIMULATED", "<h1>Studies</h1>", `href="/studies/night"`, "RUNNING", "3 of 4", `href="/studies/done.1"`, "CHANGE", "sgtune.db"}, nil},
		{
			"/studies/night",
			[]string{
				"http-equiv=\"refresh\"", "SIMULATED", `data-study="night" data-revision="7"`, "RUNNING", "unconfirmed", "2,104 output tok/s at 120 clients",
				"<h2>Now</h2>", "Trial 3 (confirm), step measure", "Last failure", "GPU 3 ran out of memory", "gpu_oom / prefill / prefill_activation",
				"159277", "5.47 GiB", "48 GB", "1,842 output tok/s", "56 GB x 8",
			},
			[]string{"sgtune export"},
		},
		{
			"/studies/done.1",
			[]string{"CHANGE", "better: trial 2 makes it", "mem-fraction-static", "0.85", "0.88", "sgtune export done.1", "No trial yet."},
			[]string{"SIMULATED", "http-equiv", "data-study", "tp-size"},
		},
		{"/studies/night/trials/1", []string{"SIMULATED", "▲ gpu_oom", "GPU 3 ran out", "to blame: yes", "torch.OutOfMemoryError", "0.93"}, []string{"http-equiv"}},
		{"/studies/night/trials/2", []string{"● ok", "48", "2,080 to 2,130", "4,100 ms", "nothing measured", "8 min 51 s", "159277 KV tokens"}, nil},
		{"/studies/night/trials/3", []string{"http-equiv", "▶ running, step measure", "measure ▶ now"}, nil},
		{"/login", []string{"Log in", "SGTUNE_TOKEN"}, nil},
	}
	for _, test := range tests {
		t.Run(test.path, func(t *testing.T) {
			t.Parallel()
			w := get(t, h, test.path)
			text := w.Body.String()
			if w.Code != http.StatusOK {
				t.Fatalf("status %d\n%s", w.Code, text)
			}
			rest := text
			for _, want := range test.want {
				_, after, found := strings.Cut(rest, want)
				if !found {
					t.Fatalf("%q is not there, or not in order:\n%s", want, text)
				}
				rest = after
			}
			for _, not := range append(test.not, nasty, "style=", "onclick", "<nil>", "%!") {
				if strings.Contains(text, not) {
					t.Errorf("%q is on the page:\n%s", not, text)
				}
			}
		})
	}
}

func TestEmptyAndManyTrials(t *testing.T) {
	t.Parallel()
	if text := get(t, web.New(&memory{}, web.Options{}), "/").Body.String(); !strings.Contains(text, "sgtune tune examples/quickstart.yaml") {
		t.Errorf("no study:\n%s", text)
	}
	m := sample()
	one := *m.trials["night"][2]
	for i := 4; i < 10_000; i++ {
		next := one
		next.Number = i
		m.trials["night"] = append(m.trials["night"], &next)
	}
	h := web.New(m, web.Options{})
	for path, want := range map[string]string{"": "trials/9999", "?page=2": "trials/9949", "?page=-1": "trials/9999", "?page=999999": "trials/0"} {
		w := get(t, h, "/studies/night"+path)
		if !strings.Contains(w.Body.String(), want) || w.Body.Len() > 60_000 {
			t.Errorf("%q: %d bytes, wants %s", path, w.Body.Len(), want)
		}
	}
}

func TestNotThere(t *testing.T) {
	t.Parallel()
	h := web.New(sample(), web.Options{})
	for _, path := range []string{
		"/studies/nobody", "/studies/night/trials/99", "/studies/night/trials/x", "/nothing", "/static/", "/static/../server.go", "/static/%2e%2e/doc.go",
		"/studies/..%2f..%2fetc%2fpasswd", "/studies/%zz", "/template/study.html", "/events?study=nobody", "/static/style.css/..",
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/", nil)
		r.URL.Path, r.URL.RawPath, r.RequestURI = path, "", path
		if before, query, found := strings.Cut(path, "?"); found {
			r.URL.Path, r.URL.RawQuery = before, query
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusNotFound {
			t.Errorf("%s: status %d", path, w.Code)
		}
	}
}

func TestBrokenStore(t *testing.T) {
	t.Parallel()
	m := sample()
	m.broken = errors.New("disk on fire at /secret/path")
	h := web.New(m, web.Options{})
	for _, path := range []string{"/", "/studies/night", "/api/v1/studies", "/metrics", "/studies/night/trials/1"} {
		w := get(t, h, path)
		if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "fire") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

func TestAPIAndMetrics(t *testing.T) {
	t.Parallel()
	h := web.New(sample(), web.Options{})
	w := get(t, h, "/api/v1/studies")
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" ||
		!strings.Contains(w.Body.String(), `{"study":"night","state":"running","simulated":true`) || !strings.Contains(w.Body.String(), `"gain_low":0.116`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	w = get(t, h, "/metrics")
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "sgtune_study_running{study=\"night\"} 1\n") ||
		!strings.Contains(w.Body.String(), "sgtune_trials_finished{study=\"done.1\"} 1\n") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestHeadline(t *testing.T) {
	t.Parallel()
	verdict := func(answer string) *tuner.Verdict { return &tuner.Verdict{Answer: answer, Text: "T"} }
	tests := []struct {
		name      string
		record    tuner.Record
		act, text string
	}{
		{"running", tuner.Record{State: tuner.StudyRunning}, "RUNNING", "No verdict yet."},
		{"better", tuner.Record{State: tuner.StudyComplete, Verdict: verdict("better")}, "CHANGE", "T"},
		{"none", tuner.Record{State: tuner.StudyComplete, Verdict: verdict("no difference found")}, "KEEP", "T"},
		{"worse", tuner.Record{State: tuner.StudyComplete, Verdict: verdict("worse")}, "KEEP", "T"},
		{"not confirmed", tuner.Record{State: tuner.StudyStopped, Verdict: verdict("not confirmed")}, "NO VERDICT", "T"},
		{"stopped", tuner.Record{State: tuner.StudyStopped, Reason: "gpu-box is not clean"}, "STOPPED", "gpu-box is not clean"},
		{"ended early", tuner.Record{State: tuner.StudyComplete}, "NO VERDICT", "It ended before the confirmation."},
	}
	for _, test := range tests {
		if act, text := web.Headline(&test.record); act != test.act || text != test.text {
			t.Errorf("%s: %s, %s", test.name, act, text)
		}
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{
		0: "0", 1: "1", 2104.4: "2,104", 1234567: "1,234,567", 0.85: "0.85", 5.4712: "5.471", -1842.6: "−1,843", 999.96: "1,000", 159277: "159,277", 0.00012345: "0.0001234",
	} {
		if got := web.Number(v); got != want && !(v == 0.00012345 && got == "0.0001235") {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}
