package benchmark

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// looks books one page after the other, ten seconds apart.
func looks(t *testing.T, pages ...string) (*ServerRecord, time.Time) {
	t.Helper()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := &ServerRecord{last: map[seriesKey]float64{}}
	for i, text := range pages {
		now, err := readMetrics([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		r.add(start.Add(time.Duration(i)*10*time.Second), now)
	}
	return r, start
}

func f(v float64) *float64 { return &v }

// TestServerViewOfProducts: from an idle server to what each page says, in ten seconds.
func TestServerViewOfProducts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		before, after string
		want          ServerView
	}{
		{
			string(page(t, "sglang-0.5.23-before.txt")), "sglang-0.5.23-after.txt",
			ServerView{
				Source: "sglang", OutputTokS: f(14.8), PromptTokS: f(82.7), RequestsS: f(0.7), RunningMean: f(0), RunningMax: f(0), QueuedMax: f(0),
				TokenUsageMax: f(0), CacheHitRatio: f(576.0 / 827), TTFTMeanMs: f(43.718), GenerationTokens: f(148), PromptTokens: f(827),
				CachedTokens: f(576), Total: ServerTotals{Seconds: 10, Requests: f(7), PromptTokens: f(827), GenerationTokens: f(148), CachedTokens: f(576)},
			},
		},
		{
			"", "sglang-dp2-ranks.txt",
			ServerView{ // 3000 decoded and 50 first tokens; 6000 prompt tokens computed, 2000 reused
				Source: "sglang", OutputTokS: f(305), PromptTokS: f(800), RequestsS: f(4.5), RunningMean: f(30), RunningMax: f(30), QueuedMax: f(3),
				TokenUsageMax: f(0.75), CacheHitRatio: f(0.25), TTFTMeanMs: f(100), GenerationTokens: f(3050), PromptTokens: f(8000),
				CachedTokens: f(2000), Total: ServerTotals{Seconds: 10, Requests: f(45), PromptTokens: f(7900), GenerationTokens: f(2900), CachedTokens: f(1950)},
			},
		},
		{
			"", "sglang-0.4.6.txt",
			ServerView{
				Source: "sglang", OutputTokS: f(50), PromptTokS: f(800), RequestsS: f(1), RunningMean: f(4), RunningMax: f(4), QueuedMax: f(7),
				TokenUsageMax: f(0.28), CacheHitRatio: f(0.25), TTFTMeanMs: f(250), GenerationTokens: f(500), PromptTokens: f(8000),
				CachedTokens: f(2000), Total: ServerTotals{Seconds: 10, Requests: f(10), PromptTokens: f(8000), GenerationTokens: f(500), CachedTokens: f(2000)},
				AtEnd: true,
			},
		},
		{
			"", "vllm.txt",
			ServerView{
				Source: "vllm", OutputTokS: f(200), PromptTokS: f(400), RequestsS: f(2), RunningMean: f(23), RunningMax: f(23), QueuedMax: f(3),
				TokenUsageMax: f(0.5), CacheHitRatio: f(0.25), TTFTMeanMs: f(200), Retractions: f(2), GenerationTokens: f(2000), PromptTokens: f(4000),
				CachedTokens: f(1000), Total: ServerTotals{Seconds: 10, Requests: f(20), PromptTokens: f(4000), GenerationTokens: f(2000), CachedTokens: f(1000)},
			},
		},
	} {
		t.Run(c.after, func(t *testing.T) {
			t.Parallel()
			r, start := looks(t, c.before, string(page(t, c.after)))
			got, why := r.View(start, start.Add(10*time.Second))
			if got == nil {
				t.Fatal(why)
			}
			c.want.Seconds, c.want.Scrapes = 10, 2
			near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-3*max(1, math.Abs(a)) })
			if diff := cmp.Diff(&c.want, got, near); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// generated is a page of a counter and a gauge.
func generated(series string, tokens, running float64) string {
	return fmt.Sprintf("sglang:generation_tokens_total{%s} %g\nsglang:num_running_reqs{%s} %g\n", series, tokens, series, running)
}

func TestServerViewCounts(t *testing.T) {
	t.Parallel()
	const s = `model_name="a"`
	for _, c := range []struct {
		name     string
		pages    []string
		from, to float64 // seconds
		tokens   float64
		total    float64
		coarse   bool
	}{
		{"whole", []string{generated(s, 100, 1), generated(s, 200, 1), generated(s, 400, 1)}, 0, 20, 300, 300, false},
		{"between the looks", []string{generated(s, 100, 1), generated(s, 200, 1), generated(s, 400, 1)}, 5, 15, 150, 300, true},
		{"near the looks", []string{generated(s, 100, 1), generated(s, 200, 1), generated(s, 400, 1)}, 0.2, 20, 298, 300, false},
		{"longer than was watched", []string{generated(s, 100, 1), generated(s, 200, 1)}, -100, 100, 100, 100, true},
		{"first event", []string{"# nothing yet\n", generated(s, 70, 1)}, 0, 10, 70, 70, false},
		{"a series that comes later", []string{generated(s, 100, 1), generated(s, 100, 1) + generated(`model_name="b"`, 30, 1)}, 0, 10, 30, 30, false},
		{"restart", []string{generated(s, 100, 1), generated(s, 180, 1), generated(s, 20, 1)}, 0, 20, 100, 100, false},
		{"missing once", []string{generated(s, 100, 1), "# nothing\n", generated(s, 130, 1)}, 0, 20, 30, 30, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, start := looks(t, c.pages...)
			at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
			v, why := r.View(at(c.from), at(c.to))
			if v == nil {
				t.Fatal(why)
			}
			if *v.GenerationTokens != c.tokens || *v.Total.GenerationTokens != c.total || v.Restarted != (c.name == "restart") || v.Coarse != c.coarse {
				t.Errorf("%g tokens, %g in all, restarted %v, coarse %v; want %g, %g", *v.GenerationTokens, *v.Total.GenerationTokens, v.Restarted, v.Coarse, c.tokens, c.total)
			}
		})
	}
}

func TestServerViewGauges(t *testing.T) {
	t.Parallel()
	const s = `model_name="a"`
	r, start := looks(t, generated(s, 0, 2), generated(s, 0, 8), generated(s, 0, 4), generated(s, 0, 100))
	v, _ := r.View(start, start.Add(25*time.Second))
	if *v.RunningMax != 8 || math.Abs(*v.RunningMean-14.0/3) > 1e-9 || v.QueuedMax != nil || v.CacheHitRatio != nil {
		t.Errorf("mean %g, max %g, queued %v, ratio %v", *v.RunningMean, *v.RunningMax, v.QueuedMax, v.CacheHitRatio)
	}
}

func TestServerViewAbsent(t *testing.T) {
	t.Parallel()
	const s = `model_name="a"`
	one, start := looks(t, generated(s, 0, 2))
	unknown, _ := looks(t, "# mock\n", "other_total 1\n")
	two, _ := looks(t, generated(s, 0, 2), generated(s, 0, 2))
	for name, c := range map[string]struct {
		record   *ServerRecord
		from, to time.Duration
		why      string
	}{
		"one look":        {one, 0, time.Minute, "only 1 times"},
		"nothing known":   {unknown, 0, time.Minute, "no figure known"},
		"another time":    {two, time.Hour, 2 * time.Hour, "not watched"},
		"the wrong order": {two, 8 * time.Second, 2 * time.Second, "not watched"},
	} {
		if v, why := c.record.View(start.Add(c.from), start.Add(c.to)); v != nil || !strings.Contains(why, c.why) {
			t.Errorf("%s: %v, %q", name, v, why)
		}
	}
}

func TestServerViewDisagrees(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		view   *ServerView
		client float64
		want   string
	}{
		{&ServerView{OutputTokS: f(104)}, 100, ""},
		{&ServerView{OutputTokS: f(96)}, 100, ""},
		{&ServerView{OutputTokS: f(110)}, 100, "by 10%: it counted 110.0 output tok/s, more than"},
		{&ServerView{OutputTokS: f(93)}, 100, "by 7%: it counted 93.0 output tok/s, fewer than"},
		{&ServerView{OutputTokS: f(50), AtEnd: true}, 100, ""},
		{&ServerView{OutputTokS: f(50), Coarse: true}, 100, ""},
		{&ServerView{}, 100, ""},
		{&ServerView{OutputTokS: f(50)}, 0, ""},
		{nil, 100, ""},
	} {
		if got := c.view.Disagrees(c.client); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.view, got, c.want)
		}
	}
}

// metricsServer counts 100 tokens more at each look; the second look fails.
func metricsServer(t *testing.T, path string) (Target, *atomic.Int64) {
	t.Helper()
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/metrics" && path == "/metrics/":
			http.Redirect(w, r, path, http.StatusTemporaryRedirect)
		case r.URL.Path != path:
			http.NotFound(w, r)
		case n.Add(1) == 2:
			http.Error(w, "busy", http.StatusServiceUnavailable)
		default:
			fmt.Fprint(w, generated(`model_name="a"`, float64(100*n.Load()), 3))
		}
	}))
	t.Cleanup(server.Close)
	return Target{URL: server.URL}, &n
}

func TestServerViewWatch(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/metrics", "/metrics/"} {
		target, n := metricsServer(t, path)
		begin := time.Now()
		w, err := WatchServer(t.Context(), target, nil, leastScrape)
		if err != nil {
			t.Fatal(err)
		}
		for n.Load() < 3 && time.Since(begin) < 10*time.Second {
			time.Sleep(5 * time.Millisecond)
		}
		v, why := w.Stop(t.Context()).View(begin, time.Now())
		if v == nil {
			t.Fatal(why)
		}
		want := float64(100 * (n.Load() - 1))
		if v.Missed != 1 || v.Scrapes != int(n.Load())-1 || *v.Total.GenerationTokens != want || *v.RunningMean != 3 {
			t.Errorf("%s: %+v after %d looks, total %g", path, v, n.Load(), *v.Total.GenerationTokens)
		}
	}
}

func TestServerViewWatchRefused(t *testing.T) {
	t.Parallel()
	none := httptest.NewServer(http.NotFoundHandler())
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "\n<html>") }))
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "sglang:num_running_reqs{ 1\n")
	}))
	for _, s := range []*httptest.Server{none, web, broken} {
		t.Cleanup(s.Close)
	}
	for name, c := range map[string]struct {
		url, says string
		none      bool
	}{
		"none":   {none.URL, "--enable-metrics", true},
		"web":    {web.URL, "is a web page", true},
		"broken": {broken.URL, "line 1 of the metrics", false},
		"gone":   {"http://127.0.0.1:1", "metrics of the server", false},
	} {
		if w, err := WatchServer(t.Context(), Target{URL: c.url}, nil, 0); w != nil || err == nil || !strings.Contains(err.Error(), c.says) || errors.Is(err, ErrNoMetrics) != c.none {
			t.Errorf("%s: %v", name, err)
		}
	}
}
