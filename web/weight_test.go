package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/test/webbed"
	"sgtune/trial"
	"sgtune/tuner"
	"sgtune/web"
)

// wideConfig is a configuration of ten knobs with long values.
func wideConfig() sglang.Config {
	return sglang.Config{
		"mem-fraction-static": 0.88, "hicache-size": 48.0, "chunked-prefill-size": 16384.0, "max-running-requests": 256.0, "cuda-graph-max-bs": 256.0,
		"schedule-conservativeness": 0.7, "schedule-policy": "dfs-weight", "hicache-write-policy": "write_through_selective",
		"attention-backend": "flashinfer-with-a-long-name", "speculative-draft-model-path": "/models/" + strings.Repeat("a/long/path/", 12) + `<"draft">`,
	}
}

// wide stores a study of so many trials that differ from the baseline in ten knobs; why makes them void.
func (f *fixture) wide(name string, trials int, why string) {
	f.t.Helper()
	r := &tuner.Record{
		Name: name, State: tuner.StudyComplete, Host: "gpu-box", Objective: "output_tok_s", BaselineConfig: sglang.Config{"mem-fraction-static": 0.85}, CreatedAt: night,
		Server: sglang.Server{Model: "/models/K", Flags: sglang.Config{"tp-size": 8.0}},
	}
	if err := f.db.SaveStudy(f.t.Context(), r); err != nil {
		f.t.Fatal(err)
	}
	for n := range trials {
		t := measured(n, trial.RoleSearch, wideConfig(), 2104.5, 4100)
		if n == 0 {
			t = measured(n, trial.RoleBaseline, r.BaselineConfig, 1842.4, 4100)
		} else {
			t.Void = why
		}
		use := 0.93
		t.Levels[1].Report.Server = &benchmark.ServerView{TokenUsageMax: &use}
		for i := range 120 {
			t.Levels[0].Report.Series = append(t.Levels[0].Report.Series, benchmark.Point{T: float64(i), OutputTokS: 2104.5})
		}
		t.Study, t.Dir, t.CreatedAt, t.StartedAt, t.EndedAt = name, fmt.Sprint(n), night, night, night.Add(14*time.Minute)
		t.Verdict.Text = "it ran " + strings.Repeat("at length ", 200)
		if err := f.db.SaveTrial(f.t.Context(), t); err != nil {
			f.t.Fatal(err)
		}
	}
}

// manyTrials is how many trials a long study has; the slow tier has them all.
func manyTrials() int {
	if testing.Short() {
		return 1_000
	}
	return 10_000
}

// TestTrialsFitThePage holds every page of the list of trials, sorted by anything, against the budgets of the page.
func TestTrialsFitThePage(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "keep")
	name := strings.Repeat("long-name.", 12)
	f.wide(name, 3, "")
	f.multiply(name, manyTrials())
	f.wide("void", 60, "another process used the GPUs "+strings.Repeat(nasty, 20))
	h := f.handler()
	light(t, h, "/studies/void/trials")
	last := fmt.Sprint(manyTrials() / 50)
	for _, sort := range append([]string{"", "tok_s", "knob.hicache-size", "knob.schedule-policy"}, tuner.TrialSorts...) {
		for _, sign := range []string{"", "-"} {
			for _, page := range []string{"1", "2", last} {
				path := "/studies/" + name + "/trials?page=" + page
				if sort != "" {
					path += "&sort=" + sign + sort
				}
				light(t, h, path)
			}
		}
	}
	query := url.Values{"outcome": {"ok"}, "sort": {"-knob.speculative-draft-model-path"}}
	for _, knob := range []string{"mem-fraction-static", "hicache-size", "chunked-prefill-size", "cuda-graph-max-bs", "max-running-requests", "schedule-conservativeness"} {
		query.Set("knob."+knob, "0..1000000")
	}
	light(t, h, "/studies/"+name+"/trials?"+query.Encode())
	query.Set("knob.schedule-policy", strings.Repeat(`"`, 100))
	if w := get(t, h, "/studies/"+name+"/trials?"+query.Encode()); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "too long") {
		t.Errorf("a long query: status %d", w.Code)
	}
	text := bare(get(t, h, "/studies/"+name+"/trials?outcome=ok&sort=number").Body.String())
	for _, want := range []string{"attention-backend flashinfer-with-a-long-name", "hicache-size 48 GB per rank (384 GB host)", "schedule-policy dfs-weight, 1 more", "120 clients, 41 at once, 159,277 KV tokens, KV use 93%, 5.47 GiB free after graphs, host pool 48 GB, took 14 min"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %.2000s", want, text)
		}
	}
}

// TestStudyFitsThePage has a study with a long name whose trials have long values and whose events are long.
func TestStudyFitsThePage(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "keep")
	name := strings.Repeat("long-name.", 12)
	f.wide(name, 3, "")
	f.multiply(name, manyTrials())
	for range 40 {
		if err := f.db.AddEvent(t.Context(), name, tuner.Event{At: night, Kind: "plan", Text: strings.Repeat("a long event & more ", 100)}); err != nil {
			t.Fatal(err)
		}
	}
	h := f.handler()
	for _, path := range []string{"", "/trials/2", "/compare?t=0,2", "/export?t=2"} {
		light(t, h, "/studies/"+name+path)
	}
}

// light holds that a page is within the budgets.
func light(t *testing.T, h http.Handler, path string) {
	t.Helper()
	w := get(t, h, path)
	text := w.Body.String()
	if w.Code != http.StatusOK {
		t.Fatalf("%s: status %d, %.300s", path, w.Code, bare(text))
	}
	wellFormed(t, path, text)
	if n := strings.Count(text, "<") - strings.Count(text, "</"); n > 2500 {
		t.Errorf("%s: %d elements", path, n)
	}
}

// TestStudiesFitThePage has a list of studies whose answers are long.
func TestStudiesFitThePage(t *testing.T) {
	t.Parallel()
	m := sample()
	for i := range 60 {
		m.studies = append(m.studies, tuner.Summary{Record: tuner.Record{
			Name: fmt.Sprintf("%s%d", strings.Repeat("long-name.", 12), i), State: tuner.StudyStopped, Reason: "stopped: " + strings.Repeat("it ran & ran ", 100), Host: strings.Repeat("host", 10), EndedAt: night,
		}})
	}
	light(t, web.New(m, web.Options{}), "/")
}

// apiPage is what is asked of a page of trials as JSON.
type apiPage struct {
	Total  int
	Trials []struct {
		Number int
		Trial  string
		Config map[string]any
		Value  float64
		Gain   float64
		KVUse  float64 `json:"kv_use"`
		Level  struct {
			Concurrency int
			TTFT        float64 `json:"ttft_p95_ms"`
		}
		Levels []struct{ Concurrency int }
	}
}

// TestAPITrialsAreLines holds that a list of trials has no series, and where each whole trial is.
func TestAPITrialsAreLines(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "keep")
	f.wide("wide", 60, "")
	h := f.handler()
	w := get(t, h, "/api/v1/studies/wide/trials")
	if n := w.Body.Len(); w.Code != http.StatusOK || n > 120_000 {
		t.Errorf("status %d, %d bytes for 50 trials", w.Code, n)
	}
	var got apiPage
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Total != 60 || len(got.Trials) != 50 {
		t.Fatalf("%v, %d of %d trials", err, len(got.Trials), got.Total)
	}
	one := got.Trials[0]
	if one.Number != 59 || len(one.Config) != 10 || one.Value != 2104.5 || one.Gain < 0.142 || one.Gain > 0.143 || one.KVUse != 0.93 || one.Level.Concurrency != 120 || one.Level.TTFT != 4100 || len(one.Levels) != 3 {
		t.Errorf("%+v", one)
	}
	var whole struct {
		Number int
		Levels []struct{ Report map[string]any }
	}
	w = get(t, h, one.Trial)
	if err := json.Unmarshal(w.Body.Bytes(), &whole); err != nil || w.Code != http.StatusOK || whole.Number != 59 || whole.Levels[0].Report["ttft_ms"] == nil {
		t.Errorf("%s: status %d, %v, %.300s", one.Trial, w.Code, err, w.Body)
	}
}

// noTrials is a Reader that counts trials and cannot read any.
type noTrials struct{ *memory }

var errRead = errors.New("a trial was read")

func (noTrials) Trials(context.Context, string) ([]*trial.Trial, error) { return nil, errRead }

func (noTrials) Trial(context.Context, string, int) (*trial.Trial, error) { return nil, errRead }

func (noTrials) TrialPage(context.Context, string, tuner.TrialQuery) ([]*trial.Trial, int, error) {
	return nil, 0, errRead
}

// TestAPISummaryReadsNoTrial holds that a study's summary is counted where it is stored, however many trials there are.
func TestAPISummaryReadsNoTrial(t *testing.T) {
	t.Parallel()
	h := web.New(noTrials{sample()}, web.Options{})
	for _, path := range []string{"/api/v1/studies", "/api/v1/studies/night", "/api/v1/studies/done.1"} {
		if w := get(t, h, path); w.Code != http.StatusOK || w.Body.Len() > 4_000 {
			t.Errorf("%s: status %d, %d bytes", path, w.Code, w.Body.Len())
		}
	}
}

// BenchmarkAPI asks for a study of 10,000 trials as scripts do.
func BenchmarkAPI(b *testing.B) {
	f := newFixture(b, "keep")
	if err := webbed.Fill(b.Context(), f.db, webbed.Make("long", 10_000, 7)); err != nil {
		b.Fatal(err)
	}
	h := f.handler()
	for name, path := range map[string]string{
		"summary": "", "trials": "/trials", "by value": "/trials?sort=-value&page=100", "by knob": "/trials?sort=knob.schedule-policy&page=100",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequestWithContext(b.Context(), http.MethodGet, "http://localhost/api/v1/studies/long"+path, nil))
				if w.Code != http.StatusOK {
					b.Fatal(w.Code)
				}
			}
		})
	}
}
