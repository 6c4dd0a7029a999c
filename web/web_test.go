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

func (m *memory) Summary(_ context.Context, name string) (*tuner.Summary, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.studies {
		if s.Name == name {
			return &s, m.broken
		}
	}
	return nil, fmt.Errorf("study %s: %w", name, tuner.ErrNoStudy)
}

func (m *memory) Overview(_ context.Context, study string) (*tuner.Overview, error) {
	return &tuner.Overview{Total: len(m.trials[study])}, m.broken
}

func (m *memory) TrialPage(_ context.Context, study string, _ tuner.TrialQuery) ([]*trial.Trial, int, error) {
	return m.trials[study], len(m.trials[study]), m.broken
}

func (m *memory) touch() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.studies[0].Revision++
}

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

func TestNotThere(t *testing.T) {
	t.Parallel()
	h := web.New(sample(), web.Options{})
	for _, path := range []string{
		"/studies/nobody", "/studies/night/trials/99", "/studies/night/trials/x", "/nothing", "/static/", "/static/../server.go", "/static/%2e%2e/doc.go",
		"/studies/..%2f..%2fetc%2fpasswd", "/studies/%zz", "/template/study.html", "/events?study=nobody", "/static/style.css", "/static/000000000000/style.css", "/studies/night/trials/1/files/server.log", "/studies/night/trials/1/files/..%2f..%2fsgtune.db",
		"/studies/nobody/compare", "/studies/nobody/export", "/studies/nobody/trials", "/studies/night/compare?t=99", "/studies/night/export?t=99", "/studies/night/trials/-1",
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

func TestNumber(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{
		0: "0", 1: "1", 2104.4: "2,104", 1234567: "1,234,567", 0.85: "0.85", 5.4712: "5.471", -1842.6: "−1,843", 999.96: "1,000", 159277: "159,277", 0.00012345: "0.0001234",
		1234.5: "1,235", -0.5: "−0.5", 12344.5: "12,345", // halves are rounded as the charts round them
	} {
		if got := web.Number(v); got != want && !(v == 0.00012345 && got == "0.0001235") {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}
