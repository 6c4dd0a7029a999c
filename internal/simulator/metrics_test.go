package simulator

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// samples reads a page of metrics: name and sorted label names -> sum over the label values.
type samples map[string]float64

var sampleLine = regexp.MustCompile(`^(sglang:[a-z0-9_A-Z]+)(?:\{(.*)\})? (\S+)$`)

// readSamples adds up values by name, and once more by name with label="value" for each label asked for.
func readSamples(t *testing.T, page string, label string) samples {
	t.Helper()
	out := samples{}
	var family string
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "# TYPE "); ok {
			family, _, _ = strings.Cut(name, " ")
			continue
		}
		if strings.HasPrefix(line, "#") || line == "" {
			continue
		}
		m := sampleLine.FindStringSubmatch(line)
		if m == nil || !strings.HasPrefix(m[1], family) {
			t.Fatalf("line %q after family %q", line, family)
		}
		v, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			t.Fatal(err)
		}
		out[m[1]] += v
		if i := strings.Index(m[2], label+`="`); label != "" && i >= 0 {
			value, _, _ := strings.Cut(m[2][i+len(label)+2:], `"`)
			out[m[1]+" "+value] += v
		}
	}
	return out
}

func (c *client) scrape(label string) samples {
	c.t.Helper()
	code, page := c.send("GET", "/metrics", "")
	if code != 200 {
		c.t.Fatalf("/metrics: %d %s", code, page)
	}
	return readSamples(c.t, page, label)
}

// The counters are the sum of what the answers said, for every version.
func TestMetricsAreTheSumOfUsage(t *testing.T) {
	t.Parallel()
	for _, version := range Versions() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			c := serve(t, "--sim-version", version, "--enable-metrics", "--enable-cache-report", "--served-model-name", `ki"mi`)
			if s := c.scrape(""); s["sglang:num_requests_total"] != 0 || s["sglang:num_running_reqs"] != 0 {
				t.Errorf("before the first request: %v", s)
			}
			var mu sync.Mutex
			var wg sync.WaitGroup
			var sum counts
			cached, streams := 0, 0
			for i := range 24 {
				wg.Go(func() {
					path, body := "/v1/completions", fmt.Sprintf(`{"model":"x","prompt":"%s","max_tokens":%d%%s}`, wordsText(1000*(i%5), 200+i), 10+i)
					if i%2 == 0 {
						path, body = "/v1/chat/completions", fmt.Sprintf(`{"model":"x","messages":[{"role":"user","content":"%s"}],"max_tokens":%d%%s}`, wordsText(1000*(i%5), 200+i), 10+i)
					}
					more := ""
					if i%3 == 0 {
						more = `,"stream":true,"stream_options":{"include_usage":true}`
					}
					h := c.ask(path, fmt.Sprintf(body, more))
					mu.Lock()
					defer mu.Unlock()
					sum.Prompt += h.usage.Prompt
					sum.Completion += h.usage.Completion
					cached += h.usage.Details.Cached
					if more != "" {
						streams++
					}
				})
			}
			wg.Wait()
			c.post("/generate", `{"input_ids":[1,2,3],"sampling_params":{"max_new_tokens":1}}`)
			c.send("GET", "/health_generate", "")
			s := c.scrape("is_streaming")
			for name, want := range map[string]int{
				"prompt_tokens_total": sum.Prompt + 3, "generation_tokens_total": sum.Completion + 1, "cached_tokens_total": cached,
				"num_requests_total": 25, "e2e_request_latency_seconds_count": 25, "time_to_first_token_seconds_count": 25,
				"inter_token_latency_seconds_count": sum.Completion + 1 - 25, "num_queue_reqs": 0, "num_running_reqs": 0, "num_used_tokens": 0,
			} {
				if got := s["sglang:"+name]; got != float64(want) {
					t.Errorf("%s is %g, want %d", name, got, want)
				}
			}
			if version == "0.5.23" && (s["sglang:num_requests_total true"] != float64(streams) || s["sglang:prompt_tokens_histogram_sum"] != float64(sum.Prompt+3)) {
				t.Errorf("%d streams: %v", streams, s)
			}
			if cached == 0 {
				t.Error("nothing was cached: the test shows little")
			}
		})
	}
}

// Aborts: one for each call; what ran counts as a request, what waited does not.
func TestMetricsOfAborts(t *testing.T) {
	t.Parallel()
	c := serve(t, "--enable-metrics", "--sim-time-scale", "10", "--max-running-requests", "1")
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			c.post("/v1/completions", fmt.Sprintf(`{"prompt":[%d,2],"max_tokens":20000,"stream":true}`, i))
		})
	}
	p := process{t: t, done: make(chan struct{})}
	p.until("one running and one waiting", func() bool {
		s := c.scrape("")
		return s["sglang:num_running_reqs"] == 1 && s["sglang:num_queue_reqs"] == 1 && s["sglang:num_used_tokens"] > 2 && s["sglang:token_usage"] > 0
	})
	c.post("/abort_request", `{"abort_all":true}`)
	wg.Wait()
	if s := c.scrape(""); s["sglang:num_requests_total"] != 1 || s["sglang:num_aborted_requests_total"] != 1 || s["sglang:generation_tokens_total"] == 0 {
		t.Errorf("%v", s)
	}
}

// A server without the flag has no page.
func TestNoMetrics(t *testing.T) {
	t.Parallel()
	if code, _ := serve(t).send("GET", "/metrics", ""); code != 404 {
		t.Errorf("%d, want 404", code)
	}
}

// Every sample of 0.5.23 is one the real server has, with the same labels and the same help.
func TestMetricsAreRealNames(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("testdata/real_metrics_0.5.23.txt")
	if err != nil {
		t.Fatal(err)
	}
	real := map[string]bool{}
	for _, line := range metricShapes(string(b)) {
		real[line] = true
	}
	c := serve(t, "--enable-metrics", "--served-model-name", "kimi")
	for range 2 {
		c.ask("/v1/completions", `{"prompt":[1,2,3],"max_tokens":3,"stream":true}`)
		c.ask("/v1/completions", `{"prompt":[1,2,3],"max_tokens":3}`)
	}
	_, page := c.send("GET", "/metrics", "")
	lines := metricShapes(page)
	if len(lines) < 80 {
		t.Errorf("only %d lines:\n%s", len(lines), page)
	}
	for _, line := range lines {
		if !real[line] {
			t.Errorf("the real server has no %s", line)
		}
	}
	if !slices.Contains(strings.Split(page, "\n"), `sglang:max_total_num_tokens{engine_type="unified",model_name="kimi",moe_ep_rank="0",pp_rank="0",tp_rank="0"} 159277.0`) {
		t.Errorf("no pool size in\n%s", page)
	}
}

var labelValue = regexp.MustCompile(`(le|model_name|pid)="[^"]*"`)

// metricShapes is the comments and the samples without their values.
func metricShapes(page string) []string {
	var out []string
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "#") {
			line = labelValue.ReplaceAllString(line[:strings.LastIndexByte(line, ' ')], `$1=""`)
		}
		out = append(out, line)
	}
	return slices.Compact(out)
}

func TestHistogram(t *testing.T) {
	t.Parallel()
	h := newHistogram([]float64{1, 2})
	h.observe(1, 1)
	h.observe(1.5, 2)
	h.observe(7, 1)
	x := exposition{d: newestDialect()}
	x.histogram("h", []label{{"z", `a"b`}}, h)
	const want = `sglang:h_sum{z="a\"b"} 11.0
sglang:h_bucket{le="1.0",z="a\"b"} 1.0
sglang:h_bucket{le="2.0",z="a\"b"} 3.0
sglang:h_bucket{le="+Inf",z="a\"b"} 4.0
sglang:h_count{z="a\"b"} 4.0
`
	if got := string(x.b); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
