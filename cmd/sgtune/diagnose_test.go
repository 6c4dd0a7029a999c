package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"sgtune/trial"
)

// example is the log of a catalog entry.
func example(t *testing.T, outcome trial.Outcome, cause string) trial.Example {
	t.Helper()
	e := trial.Explain(outcome, cause).Example
	if e.Log == "" {
		t.Fatalf("no example of %s / %s", outcome, cause)
	}
	return e
}

func put(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func gzipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zstded(t *testing.T, text string, window int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, zstd.WithWindowSize(window))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// judged runs sgtune diagnose --json.
func judged(t *testing.T, stdin io.Reader, args ...string) (outcome, cause string, line int, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	err = diagnose(t.Context(), args, diagnoseOptions{json: true}, stdin, &out, &errs)
	var v struct {
		Outcome string `json:"outcome"`
		Cause   string `json:"cause"`
		Line    int    `json:"evidence_line"`
	}
	if out.Len() > 0 {
		if err := json.Unmarshal(out.Bytes(), &v); err != nil {
			t.Fatalf("%v: %s", err, out.String())
		}
	}
	return v.Outcome, v.Cause, v.Line, err
}

func TestDiagnoseReadsEveryForm(t *testing.T) {
	t.Parallel()
	log := example(t, trial.GPUOOM, "prefill_activation").Log
	half := strings.Index(log, "The server is fired up")
	_, _, line, err := judged(t, nil, put(t, "server.log", []byte(log)))
	if err != nil || line == 0 {
		t.Fatalf("plain: line %d, %v", line, err)
	}
	parts := []string{put(t, "old", gzipped(t, log[:half])), put(t, "new", []byte(log[half:]))}
	for _, tt := range []struct {
		name  string
		stdin io.Reader
		args  []string
	}{
		{"gzip under any name", nil, []string{put(t, "x.log", gzipped(t, log))}},
		{"gzip of two members", nil, []string{put(t, "x.gz", append(gzipped(t, log[:half]), gzipped(t, log[half:])...))}},
		{"zstd under any name", nil, []string{put(t, "x.txt", zstded(t, log, maxWindow))}},
		{"standard input", strings.NewReader(log), []string{"-"}},
		{"compressed standard input", bytes.NewReader(zstded(t, log, 1<<20)), nil},
		{"two parts", nil, parts},
		{"a part and standard input", strings.NewReader(log[half:]), []string{parts[0], "-"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			outcome, cause, at, err := judged(t, tt.stdin, tt.args...)
			if err != nil || outcome != "gpu_oom" || cause != "prefill_activation" || at != line {
				t.Errorf("%s / %s at line %d, want line %d, %v", outcome, cause, at, line, err)
			}
		})
	}
}

func TestDiagnoseDamagedFiles(t *testing.T) {
	t.Parallel()
	log := example(t, trial.ConfigRejected, "bad_value").Log
	whole := gzipped(t, strings.Repeat("filler "+log, 200))
	huge := zstded(t, strings.Repeat("x", 70<<20), 64<<20)
	broken := zstded(t, log, 1<<20)
	broken[len(broken)/2] ^= 0xff
	for _, tt := range []struct {
		name    string
		content []byte
		want    string
	}{
		{"empty", nil, "is empty"},
		{"no gzip at all", whole[:5], "damaged"},
		{"flipped bits", broken, "damaged"},
		{"a window too large for our memory", huge, "zstd -dc"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, _, _, err := judged(t, nil, put(t, "x", tt.content))
			if err == nil || exitCode(err) != exitUsage || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("cut off", func(t *testing.T) {
		t.Parallel()
		outcome, _, _, err := judged(t, nil, put(t, "x", whole[:len(whole)-20]))
		if err != nil || outcome != "config_rejected" {
			t.Errorf("%s, %v: what is there should be judged", outcome, err)
		}
	})
}

// TestDiagnosePage shows every example to a person: in 80 columns, without anything that steers a terminal.
func TestDiagnosePage(t *testing.T) {
	t.Parallel()
	for _, e := range trial.Catalog() {
		if e.Example.Log == "" {
			continue
		}
		t.Run(string(e.Outcome)+"/"+e.Cause, func(t *testing.T) {
			t.Parallel()
			o := diagnoseOptions{}
			if e.Example.Context != "" {
				o.context = put(t, "context.json", []byte(e.Example.Context))
			}
			var out, errs bytes.Buffer
			err := diagnose(t.Context(), []string{put(t, "server.log", []byte(e.Example.Log))}, o, nil, &out, &errs)
			if want := e.Outcome == trial.Unknown; (exitCode(err) == exitFailed) != want || errs.Len() > 0 {
				t.Errorf("ended with %v, %s", err, errs.String())
			}
			page := out.String()
			for line := range strings.Lines(page) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > pageWidth && !strings.Contains(line, "context.json") {
					t.Errorf("%d columns: %s", n, line)
				}
			}
			if strings.ContainsAny(page, "\x1b\r\a") {
				t.Errorf("steers the terminal: %q", page)
			}
			for _, want := range []string{"verdict   " + string(e.Outcome) + " / ", " / " + e.Cause + "\n", "What it means"} {
				if !strings.Contains(page, want) {
					t.Errorf("%q is missing from\n%s", want, page)
				}
			}
		})
	}
}

func TestPageColours(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := &page{out: &out, width: pageWidth, colour: true}
	v := trial.Verdict{Outcome: trial.GPUOOM, Cause: "prefill_activation", Text: "it died \x1b[31mof\x1b[0m memory", Line: 3, Evidence: "a\x1b[2Jb"}
	p.print(newDiagnosis(), v, &source{})
	if text := out.String(); !strings.HasPrefix(text, "\x1b[1;31mIt died ") || strings.Contains(text, "\x1b[2J") {
		t.Errorf("got %q", text)
	}
	if newPage(&out).colour {
		t.Error("colours without a terminal")
	}
}

// writer collects what is printed while it is printed.
type writer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *writer) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// await waits until what was printed matches.
func (w *writer) await(t *testing.T, pattern string) {
	t.Helper()
	re := regexp.MustCompile(pattern)
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if re.MatchString(w.String()) {
			return
		}
	}
	t.Fatalf("%s is not in\n%s", pattern, w.String())
}

var inHaste = pace{poll: time.Millisecond, settle: 30 * time.Millisecond, quiet: time.Hour, alive: time.Hour}

// following runs sgtune diagnose -f until stop is called, which returns how it ended.
func following(t *testing.T, path string, asJSON bool) (out *writer, stop func() error) {
	t.Helper()
	log, err := openLog([]string{path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	out = &writer{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		defer log.close()
		ended <- follow(ctx, log, trial.Context{}, &page{out: out, width: pageWidth}, asJSON, inHaste)
	}()
	return out, func() error {
		cancel()
		return <-ended
	}
}

func grow(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func TestFollow(t *testing.T) {
	t.Parallel()
	log := example(t, trial.GPUOOM, "prefill_activation").Log
	ready := strings.Index(log, "[2026-01-10 23:41:02")
	path := put(t, "server.log", nil)
	out, stop := following(t, path, false)
	grow(t, path, "[2026-01-10 22:20:31 TP0] Load weight begin. avail mem=94.44 GB\n")
	out.await(t, `\d\d:\d\d:\d\d  loading the weights\n`)
	grow(t, path, log[:ready-4]) // in the middle of a line
	grow(t, path, log[ready-4:ready])
	out.await(t, `  ready\n`)
	grow(t, path, log[ready:])
	out.await(t, `a fatal line: .*out of memory`)
	out.await(t, `gpu_oom / prefill / prefill_activation`)

	if err := os.Truncate(path, 0); err != nil { // started anew with > server.log
		t.Fatal(err)
	}
	out.await(t, `emptied: starting over`)
	grow(t, path, example(t, trial.EnvFault, "port_in_use").Log)
	out.await(t, `env_fault / http_start / port_in_use`)

	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	grow(t, path, "[2026-01-10 22:40:00] server_args=ServerArgs(model_path='m', tp_size=1)\n")
	out.await(t, `a new server: starting over`)
	grow(t, path, log[:ready])
	out.await(t, `starting over\n(?s:.*)  ready\n`)
	before := len(out.String())
	if err := stop(); err != nil {
		t.Errorf("Ctrl-C with a verdict is no failure: %v", err)
	}
	if last := out.String()[before:]; !strings.Contains(last, "ok / ready / none") {
		t.Errorf("the last word is\n%s", last)
	}
}

func TestFollowRotated(t *testing.T) {
	t.Parallel()
	log := example(t, trial.GPUOOM, "prefill_activation").Log
	ready := strings.Index(log, "[2026-01-10 23:41:02")
	path := put(t, "server.log", []byte(log[:ready]))
	out, stop := following(t, path, true)
	time.Sleep(20 * time.Millisecond)
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	grow(t, path, log[ready:])
	out.await(t, `"max_total_num_tokens": 231323`) // from the first file
	if err := stop(); err != nil {
		t.Error(err)
	}
	var v struct {
		Cause string `json:"cause"`
	}
	if err := json.Unmarshal([]byte(out.String()), &v); err != nil || v.Cause != "prefill_activation" {
		t.Errorf("wanted one object: %v\n%s", err, out.String())
	}
}

func TestFollowNothingYet(t *testing.T) {
	t.Parallel()
	path := put(t, "server.log", []byte("[2026-01-10 22:20:31 TP0] Load weight begin. avail mem=94.44 GB\n"))
	out, stop := following(t, path, false)
	out.await(t, "loading the weights")
	if err := stop(); exitCode(err) != exitFailed || !strings.Contains(out.String(), "no verdict yet") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestFollowStandardInput(t *testing.T) {
	t.Parallel()
	log := example(t, trial.GPUOOM, "prefill_activation").Log
	from, to := io.Pipe()
	source, err := openLog([]string{stdinName}, from)
	if err != nil {
		t.Fatal(err)
	}
	out := &writer{}
	ended := make(chan error, 1)
	go func() {
		ended <- follow(t.Context(), source, trial.Context{}, &page{out: out, width: pageWidth}, false, inHaste)
	}()
	half := len(log) / 2
	if _, err := io.WriteString(to, log[:half]); err != nil {
		t.Fatal(err)
	}
	out.await(t, `weights loaded|ready`)
	if _, err := io.WriteString(to, log[half:]); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(to.Close(), <-ended); err != nil || !strings.Contains(out.String(), "prefill_activation") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestFigure(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{0: "0", 0.88: "0.88", 159277: "159,277", 1146.875: "1,146.875", -9: "-9", 999: "999", 1000: "1,000", -123456.5: "-123,456.5", 5.3157958984375: "5.316"} {
		if got := figure(v); got != want {
			t.Errorf("%v is %s, want %s", v, got, want)
		}
	}
}
