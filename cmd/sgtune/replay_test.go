package main

import (
	"encoding/base64"
	"encoding/csv"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"sgtune/benchmark"
)

// replayFlags are options as a command line gives them.
func replayFlags(t *testing.T, args ...string) (*replayOptions, func(string) bool) {
	t.Helper()
	var o replayOptions
	set := pflag.NewFlagSet("replay", pflag.ContinueOnError)
	o.register(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	return &o, set.Changed
}

func TestReplayRefusesFlagsThatContradict(t *testing.T) {
	t.Parallel()
	const url, file = "--url=http://127.0.0.1:1", "--workload=w.jsonl"
	for _, test := range []struct {
		name string
		args []string
		want []string // a part of each line
	}{
		{"fine", []string{url, file}, nil},
		{"fine without a server", []string{file, "--dry-run"}, nil},
		{"fine with everything", []string{
			url, file, "--rate=2", "--arrivals=gamma", "--burstiness=0.5", "--duration=1m", "--target=3%", "--max-in-flight=9", "--warmup=0",
		}, nil},
		{"fine, two ends", []string{url, file, "--requests=5", "--duration=1m"}, nil},
		{"no workload", []string{url}, []string{"--workload is missing"}},
		{"no server", []string{file}, []string{"--url is missing"}},
		{"two loads", []string{url, file, "--rate=2", "--concurrency=3"}, []string{"--concurrency and --rate: only one of them"}},
		{"three loads", []string{url, file, "--rate=2", "--concurrency=3", "--as-recorded"}, []string{"--concurrency and --rate and --as-recorded"}},
		{"burstiness alone", []string{url, file, "--burstiness=2"}, []string{"--burstiness needs --rate"}},
		{"speed alone", []string{url, file, "--speed=2", "--spread"}, []string{"--speed needs --as-recorded", "--spread needs --as-recorded"}},
		{"ramp of an open loop", []string{url, file, "--rate=2", "--ramp=5s"}, []string{"--ramp belongs to --concurrency"}},
		{"limit of a closed loop", []string{url, file, "--concurrency=2", "--max-in-flight=5"}, []string{"--max-in-flight belongs to --rate"}},
		{"unknown arrivals", []string{url, file, "--rate=2", "--arrivals=weibull"}, []string{`--arrivals "weibull" is unknown`}},
		{"burst of a constant rate", []string{url, file, "--rate=2", "--arrivals=constant", "--burstiness=2"}, []string{"--burstiness belongs to gamma"}},
		{"no burstiness at all", []string{url, file, "--rate=2", "--burstiness=0"}, []string{"--burstiness 0: must be above 0"}},
		{"target and requests", []string{url, file, "--target=3%", "--requests=5"}, []string{"--target and --requests exclude each other"}},
		{"no requests", []string{url, file, "--requests=0"}, []string{"--requests 0: must be at least 1"}},
		{"less than no warm-up", []string{url, file, "--warmup=-1"}, []string{"--warmup -1: must be at least 0"}},
		{"no time", []string{url, file, "--duration=0s"}, []string{"--duration 0s: must be above 0"}},
		{"window without room", []string{url, file, "--duration=5s", "--window=10s"}, []string{"--window 10s is longer than --duration 5s"}},
		{"unit", []string{url, file, "--time-unit=min"}, []string{`--time-unit "min"`}},
		{"endpoint", []string{url, file, "--endpoint=embeddings"}, []string{`--endpoint "embeddings" is unknown`}},
		{"report of a dry run", []string{file, "--dry-run", "--out=r.json", "--csv=s.csv"}, []string{"--out needs a run", "--csv needs a run"}},
		{"all at once", []string{"--endpoint=x", "--requests=0", "--retries=-1"}, []string{"--workload is missing", "--requests 0", "--retries -1", "--endpoint"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o, given := replayFlags(t, test.args...)
			err := o.check(given)
			if err == nil {
				if test.want != nil {
					t.Fatalf("nothing was found; want %q", test.want)
				}
				return
			}
			if code := exitCode(err); code != exitUsage {
				t.Errorf("exit code %d, want %d", code, exitUsage)
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(test.want) {
				t.Fatalf("got %q\nwant %q", lines, test.want)
			}
			for i, line := range lines {
				if !strings.HasPrefix(line, "sgtune replay: ") || !strings.Contains(line, test.want[i]) || len(line) > 400 {
					t.Errorf("line %d: %q, want %q in it", i, line, test.want[i])
				}
			}
		})
	}
}

func TestReplayLoads(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args string
		want []string // as reports name them
		err  string
	}{
		{"", []string{"32 clients"}, ""},
		{"--concurrency=1", []string{"1 client"}, ""},
		{"--concurrency=8,16, 32", []string{"8 clients", "16 clients", "32 clients"}, ""},
		{"--rate=500", []string{"500 requests/s, Poisson"}, ""},
		{"--rate=0.25,2", []string{"0.25 requests/s, Poisson", "2 requests/s, Poisson"}, ""},
		{"--rate=2|--arrivals=constant", []string{"2 requests/s, evenly spaced"}, ""},
		{"--rate=2|--burstiness=0.5", []string{"2 requests/s, gamma, burstiness 0.5"}, ""},
		{"--as-recorded", []string{"as recorded"}, ""},
		{"--as-recorded|--speed=2.5", []string{"as recorded, 2.5x as fast"}, ""},
		{"--concurrency=0", nil, "number of clients"},
		{"--concurrency=8,", nil, "number of clients"},
		{"--concurrency=1000000", nil, "number of clients"},
		{"--concurrency=2.5", nil, "number of clients"},
		{"--rate=inf", nil, "use --concurrency"},
		{"--rate=-1", nil, "above 0"},
		{"--rate=NaN", nil, "above 0"},
		{"--rate=1e9", nil, "at most a million"},
	} {
		t.Run(test.args, func(t *testing.T) {
			t.Parallel()
			var args []string
			if test.args != "" {
				args = strings.Split(test.args, "|")
			}
			o, _ := replayFlags(t, args...)
			loads, err := o.loads()
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) || exitCode(err) != exitUsage {
					t.Fatalf("error %v, want %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, l := range loads {
				got = append(got, l.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseSLOAndTarget(t *testing.T) {
	t.Parallel()
	slo, err := parseSLO("ttft=2s, tpot=50ms,e2e=1m")
	if want := (benchmark.SLO{TTFT: 2 * time.Second, TPOT: 50 * time.Millisecond, E2E: time.Minute}); err != nil || slo != want {
		t.Errorf("got %v, %v; want %v", slo, err, want)
	}
	for _, text := range []string{"ttft", "ttft=2", "ttft=-2s", "itl=2s", "ttft=2s,ttft=3s", ","} {
		if _, err := parseSLO(text); err == nil || exitCode(err) != exitUsage {
			t.Errorf("parseSLO(%q): error %v, want a usage error", text, err)
		}
	}
	for text, want := range map[string]float64{"3%": 0.03, "0.03": 0.03, " 2.5 %": 0.025} {
		if got, err := parseTarget(strings.ReplaceAll(text, " %", "%")); err != nil || got != want {
			t.Errorf("parseTarget(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"3", "0", "0%", "-1%", "100%", "x%"} {
		if _, err := parseTarget(text); err == nil {
			t.Errorf("parseTarget(%q): no error", text)
		}
	}
}

func TestReplayTarget(t *testing.T) {
	t.Parallel()
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("me:correct-horse"))
	for _, test := range []struct {
		name    string
		args    []string
		env     map[string]string
		url     string
		header  http.Header
		secrets []string // at least these
		note    string
		err     string
	}{
		{name: "plain", args: []string{"--url=http://127.0.0.1:30000"}, url: "http://127.0.0.1:30000"},
		{name: "socket", args: []string{"--url=unix:///run/s.sock"}, url: "unix:///run/s.sock"},
		{
			name: "own key", args: []string{"--url=http://gpu-box:8000"}, env: map[string]string{"SGTUNE_API_KEY": "sk-own", "OPENAI_API_KEY": "sk-other"},
			url: "http://gpu-box:8000", header: http.Header{"Authorization": {"Bearer sk-own"}}, secrets: []string{"sk-own"}, note: "SGTUNE_API_KEY",
		},
		{
			name: "the common key stays at home", args: []string{"--url=http://gpu-box:8000"}, env: map[string]string{"OPENAI_API_KEY": "sk-other"},
			url: "http://gpu-box:8000", secrets: []string{"sk-other"}, note: "is not sent unencrypted",
		},
		{
			name: "unless it is named", args: []string{"--url=http://gpu-box:8000", "--api-key-env=OPENAI_API_KEY"}, env: map[string]string{"OPENAI_API_KEY": "sk-other"},
			url: "http://gpu-box:8000", header: http.Header{"Authorization": {"Bearer sk-other"}}, secrets: []string{"sk-other"},
		},
		{
			name: "or the way is safe", args: []string{"--url=https://api.example"}, env: map[string]string{"OPENAI_API_KEY": "sk-other"},
			url: "https://api.example", header: http.Header{"Authorization": {"Bearer sk-other"}},
		},
		{
			name: "or short", args: []string{"--url=http://localhost:30000"}, env: map[string]string{"OPENAI_API_KEY": "sk-other"},
			url: "http://localhost:30000", header: http.Header{"Authorization": {"Bearer sk-other"}},
		},
		{
			name: "headers", args: []string{"--url=http://127.0.0.1:1", "--header=X-Route=blue", "--header", "Authorization=Bearer my-long-token"},
			env: map[string]string{"SGTUNE_API_KEY": "unused"},
			url: "http://127.0.0.1:1", header: http.Header{"X-Route": {"blue"}, "Authorization": {"Bearer my-long-token"}}, secrets: []string{"my-long-token", "unused"},
		},
		{
			name: "short secret", args: []string{"--url=http://127.0.0.1:1", "--header=X-Api-Key=abc123"},
			url: "http://127.0.0.1:1", header: http.Header{"X-Api-Key": {"abc123"}}, secrets: []string{"abc123"},
		},
		{
			name: "password in the address", args: []string{"--url=https://me:correct-horse@gpu-box/llm"},
			url: "https://gpu-box/llm", header: http.Header{"Authorization": {basic}}, secrets: []string{"correct-horse"},
		},
		{name: "no scheme", args: []string{"--url=127.0.0.1:30000"}, err: "http://"},
		{name: "no host", args: []string{"--url=http://"}, err: "host"},
		{name: "no header", args: []string{"--url=http://a:1", "--header=Authorization"}, err: "--header"},
		{name: "two lines", args: []string{"--url=http://a:1", "--header=X=a\r\nY: b"}, err: "--header"},
		{name: "empty key", args: []string{"--url=http://a:1", "--api-key-env=NOT_THERE"}, err: "NOT_THERE"},
		{name: "certificates without TLS", args: []string{"--url=http://a:1", "--insecure"}, err: "belong to https"},
		{name: "both", args: []string{"--url=https://a:1", "--insecure", "--cacert=x"}, err: "exclude each other"},
		{name: "no certificates", args: []string{"--url=https://a:1", "--cacert=/nowhere.pem"}, err: "--cacert"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o, _ := replayFlags(t, test.args...)
			got, err := newReplayTarget(o, func(name string) string { return test.env[name] })
			if test.err != "" {
				if err == nil || exitCode(err) != exitUsage || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("error %v, want %q and exit code 2", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.URL != test.url || got.shown != test.url {
				t.Errorf("URL %q, shown %q; want %q", got.URL, got.shown, test.url)
			}
			if diff := cmp.Diff(test.header, got.Header); diff != "" {
				t.Error(diff)
			}
			for _, secret := range test.secrets {
				if !slices.Contains(got.secrets, secret) {
					t.Errorf("%q would be shown: secrets are %q", secret, got.secrets)
				}
			}
			if !strings.Contains(strings.Join(got.notes, "\n"), test.note) {
				t.Errorf("notes %q, want %q", got.notes, test.note)
			}
		})
	}
}

func TestReportFileIsWholeOrNotThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "r.json")
	if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := newReportFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(path); string(text) != "before" {
		t.Errorf("the report of the last run is gone before there is another: %q", text)
	}
	if err := f.Write([]byte("after")); err != nil {
		t.Fatal(err)
	}
	f.Drop()
	if text, _ := os.ReadFile(path); string(text) != "after" {
		t.Errorf("the file holds %q", text)
	}
	g, err := newReportFile(path)
	if err != nil {
		t.Fatal(err)
	}
	g.Drop()
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("%d files are left, want the report alone", len(left))
	}
	for _, bad := range []string{dir, filepath.Join(dir, "none", "r.json")} {
		if _, err := newReportFile(bad); err == nil || exitCode(err) != exitUsage {
			t.Errorf("%s: error %v, want a usage error", bad, err)
		}
	}
}

func TestCSVOfRequests(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.csv")
	c, err := newCSVFile(path, func(text string) string { return strings.ReplaceAll(text, "secret", "***") })
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 1, 1, 22, 0, 0, 0, time.UTC)
	c.Level(1, "2 clients", start)
	c.Write(benchmark.Request{
		Row: 7, Turn: 1, Intended: start.Add(1500 * time.Millisecond), Sent: start.Add(1501 * time.Millisecond), TTFT: 100 * time.Millisecond, E2E: 1100 * time.Millisecond,
		Prompt: 20, Cached: 5, Output: 11, Wanted: 11, InputWanted: 20, Attempts: 2,
	})
	if text, _ := os.ReadFile(path); !strings.Contains(string(text), "2 clients") {
		t.Error("nothing is in the file while the load runs")
	}
	c.Write(benchmark.Request{Row: 8, Intended: start, Sent: start, E2E: time.Second, Wanted: 3, Failed: "http_status", Error: "status 500: \"secret\", sorry"})
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	got, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		csvHead,
		{"1", "2 clients", "7", "1", "2026-01-01T22:00:01.5Z", "1.500000", "1.000", "100.000", "100.000", "1100.000", "20", "20", "5", "11", "11", "2", "", ""},
		{"1", "2 clients", "8", "0", "2026-01-01T22:00:00Z", "0.000000", "0.000", "", "", "1000.000", "0", "0", "0", "0", "3", "1", "http_status", `status 500: "***", sorry`},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestProgressLine(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 22, 0, 0, 0, time.UTC)
	p := &progress{title: "4 clients", started: start, requests: 100}
	for i := range 20 {
		p.Finished(benchmark.Request{Output: 50}, start.Add(time.Duration(i+1)*500*time.Millisecond))
	}
	p.Finished(benchmark.Request{Failed: "reset"}, start.Add(10*time.Second))
	want := "4 clients: 10s, 21 of 100 requests, 1 failed, 2.105 requests/s, 100 tok/s, done in about 38s"
	if got := p.line(start.Add(10 * time.Second)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	p.Window(benchmark.Window{Output: 1234, InFlight: 3.9})
	want = "4 clients: 10s, 21 of 100 requests, 1 failed, 4 in flight, 2.105 requests/s, 1,234 tok/s, done in about 38s"
	if got := p.line(start.Add(10 * time.Second)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	p = &progress{title: "as recorded", started: start, length: time.Minute}
	want = "as recorded: 20s, 0 requests, done in about 40s"
	if got := p.line(start.Add(20 * time.Second)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestScreenWithoutTerminal(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	s := newReplayScreen(&out, func(text string) string { return strings.ReplaceAll(text, "secret", "***") })
	start := time.Date(2026, 1, 1, 22, 0, 0, 0, time.UTC)
	now := start
	s.now = func() time.Time { return now }
	s.Say("two\nlines with a \x1b[31msecret")
	s.level, s.said = &progress{title: "1 client", started: start}, start
	wait := plainFirst
	for range 600 { // five minutes, each half a second
		now = now.Add(500 * time.Millisecond)
		wait = s.tick(wait)
	}
	text := out.String()
	if !strings.HasPrefix(text, "two\nlines with a [31m***\n1 client: 5s, ") || strings.Contains(text, "\x1b") {
		t.Errorf("got %q", text)
	}
	if n := strings.Count(text, "1 client: "); n < 5 || n > 9 {
		t.Errorf("%d lines of progress in five minutes, want a few", n)
	}
}

func TestScreenOnATerminal(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	s := newReplayScreen(&out, func(text string) string { return text })
	start := time.Date(2026, 1, 1, 22, 0, 0, 0, time.UTC)
	s.now = func() time.Time { return start.Add(3 * time.Second) }
	s.live, s.width = true, func() int { return 20 }
	s.level = &progress{title: "1 client", started: start, requests: 5}
	s.tick(plainFirst)
	s.Say("a line")
	s.Stop() // nothing was started
	s.mu.Lock()
	s.erase()
	s.mu.Unlock()
	const line = "1 client: 3s, 0 of…"
	if want := "\r\x1b[J" + line + "\r\x1b[Ja line\n\r\x1b[J" + line + "\r\x1b[J"; out.String() != want {
		t.Errorf("got  %q\nwant %q", out.String(), want)
	}
}
