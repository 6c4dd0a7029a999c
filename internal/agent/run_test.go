package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/benchmark"
	"sgtune/internal/agent"
	"sgtune/internal/replayjob"
)

// TestMain lets this test binary be the agent: started with SGTUNE_TEST_AGENT set it serves one job.
func TestMain(m *testing.M) {
	if os.Getenv("SGTUNE_TEST_AGENT") != "" {
		if err := replayjob.Serve(context.Background(), os.Stdin, os.Stdout, "test"); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// serve is an agent in this process.
func serve(t testing.TB) agent.Conn {
	t.Helper()
	in, inWriter := io.Pipe()
	out, outWriter := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = replayjob.Serve(context.Background(), in, outWriter, "test")
		_ = outWriter.Close()
	}()
	t.Cleanup(func() {
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			t.Error("the agent did not end")
		}
	})
	return agent.Conn{In: inWriter, Out: out}
}

// process starts a program as an agent.
func process(t testing.TB, program string, args ...string) (*exec.Cmd, agent.Conn) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "SGTUNE_TEST_AGENT=1", "SGTUNE_TEST_KEY=s3cret")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, agent.Conn{In: in, Out: out}
}

// counts are the figures of a report that do not depend on time.
func counts(r *benchmark.Report) any {
	type figures struct{ Requests, Tokens, Peak, Passes, Valid any }
	return figures{r.Requests, r.Tokens, r.Concurrency.Peak, r.Passes, r.Valid}
}

// samplesOf are the parts of requests that do not depend on time, in the order of their rows.
func samplesOf(all []benchmark.Request) []string {
	var out []string
	for _, q := range all {
		out = append(out, q.Failed+" "+q.Error+" "+jsonText([]int{q.Row, q.Prompt, q.Cached, q.Output, q.Wanted}))
	}
	slices.Sort(out)
	return out
}

func jsonText(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// direct is the same level without an agent.
func direct(t testing.TB, url, path string, opts benchmark.Options) (*benchmark.Report, []benchmark.Request) {
	t.Helper()
	target := benchmark.Target{URL: url}
	w, err := benchmark.ReadWorkload(path)
	if err != nil {
		t.Fatal(err)
	}
	palette, err := benchmark.LoadPalette(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	var all []benchmark.Request
	report, err := benchmark.Run(t.Context(), target, benchmark.NewFeed(w, 0, w.Len(), "test", palette), opts,
		func(q benchmark.Request) { all = append(all, q) })
	if err != nil {
		t.Fatal(err)
	}
	return report, all
}

func TestRunMirrorsBenchmarkRun(t *testing.T) {
	t.Parallel()
	path := workloadFile(t, 50)
	opts := benchmark.Options{Concurrency: 1, Requests: 120, Window: 100 * time.Millisecond}
	servers := [2]*fakeServer{{failing: true}, {failing: true}}
	want, wantSamples := direct(t, servers[0].start(t), path, opts)

	var got []benchmark.Request
	var windows []benchmark.Window
	var hello replayjob.Hello
	var prepared replayjob.Prepared
	var end replayjob.Result
	report, err := agent.Run(t.Context(), serve(t), newJob(servers[1].start(t), path, opts), agent.Callbacks{
		Started:  func(h replayjob.Hello) { hello = h },
		Prepared: func(p replayjob.Prepared) { prepared = p },
		Each:     func(q benchmark.Request) { got = append(got, q) },
		OnWindow: func(w benchmark.Window) { windows = append(windows, w) },
		Ended:    func(r replayjob.Result) { end = r },
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(counts(want), counts(report)); d != "" {
		t.Errorf("counts: %s", d)
	}
	if d := cmp.Diff(samplesOf(wantSamples), samplesOf(got)); d != "" {
		t.Errorf("requests: %s", d)
	}
	if len(windows) == 0 || !windows[0].Start.Equal(report.Windows[0].Start) {
		t.Errorf("windows were not told: %v", windows)
	}
	if hello.PID != os.Getpid() || hello.Version != "test" || prepared.Workload.Kept != 50 || prepared.Workload.Format != "mooncake" {
		t.Errorf("hello %+v, prepared %+v", hello, prepared)
	}
	if end.Next != 120 || end.Stopped {
		t.Errorf("next %d, stopped %v; want 120", end.Next, end.Stopped)
	}
	for _, q := range got {
		if q.Intended.IsZero() || q.E2E <= 0 || q.Failed == "" && q.TTFT <= 0 {
			t.Fatalf("times were lost: %+v", q)
		}
	}
}

// The next level of a feed goes on with the next rows.
func TestSkipContinuesTheFeed(t *testing.T) {
	t.Parallel()
	path, url := workloadFile(t, 30), (&fakeServer{}).start(t)
	rows := func(skip, requests int) (seen []int, next int) {
		job := newJob(url, path, benchmark.Options{Concurrency: 1, Requests: requests})
		job.Feed.From, job.Feed.To, job.Feed.Skip = 10, 30, skip
		_, err := agent.Run(t.Context(), serve(t), job, agent.Callbacks{
			Each:  func(q benchmark.Request) { seen = append(seen, q.Row) },
			Ended: func(r replayjob.Result) { next = r.Next },
		})
		if err != nil {
			t.Fatal(err)
		}
		return seen, next
	}
	first, next := rows(0, 7)
	second, end := rows(next, 5)
	if want := []int{10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21}; !slices.Equal(append(first, second...), want) || end != 12 {
		t.Errorf("rows %v then %v, next %d; want %v, 12", first, second, end, want)
	}
}

func TestGeneratedSetWithAWarmupOfItsOwn(t *testing.T) {
	t.Parallel()
	server := &fakeServer{}
	set := benchmark.DefaultGenerateOptions("random-ids")
	set.Requests, set.RandomInputLen, set.RandomOutputLen, set.RandomRangeRatio = 20, 40, 3, 1
	job := newJob(server.start(t), "", benchmark.Options{Concurrency: 2, Requests: 10, WarmupRequests: 4})
	job.Workload = replayjob.Workload{Generate: &set}
	job.Warmup = &replayjob.Feed{Salt: "warm-up"}
	next := 0
	report, err := agent.Run(t.Context(), serve(t), job, agent.Callbacks{Ended: func(r replayjob.Result) { next = r.Next }})
	if err != nil {
		t.Fatal(err)
	}
	if report.Requests.OK != 10 || report.Tokens.Got != 30 || report.Tokens.Prompt != 400 || server.requests.Load() != 14 || next != 10 {
		t.Errorf("ok %d, got %d, prompt %d, server %d, next %d", report.Requests.OK, report.Tokens.Got, report.Tokens.Prompt, server.requests.Load(), next)
	}
}

func TestPruneEndsTheLevelAtItsWindow(t *testing.T) {
	t.Parallel()
	url := (&fakeServer{pace: 5 * time.Millisecond}).start(t)
	job := newJob(url, workloadFile(t, 50), benchmark.Options{Concurrency: 2, Cap: time.Minute, Window: 600 * time.Millisecond})
	asked := 0
	report, err := agent.Run(t.Context(), serve(t), job, agent.Callbacks{Prune: func(windows []float64) bool {
		asked++
		return len(windows) == 2 && windows[1] > 0
	}})
	if err != nil {
		t.Fatal(err)
	}
	if !report.Pruned || len(report.Windows) != 2 || asked != 2 {
		t.Errorf("pruned %v after %d windows, asked %d times; want 2 and 2", report.Pruned, len(report.Windows), asked)
	}
}

var errEnough = errors.New("enough")

func TestStopReportsWhatWasDone(t *testing.T) {
	t.Parallel()
	server := &fakeServer{pace: 5 * time.Millisecond}
	job := newJob(server.start(t), workloadFile(t, 50), benchmark.Options{Concurrency: 2, Cap: time.Minute})
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	seen := 0
	report, err := agent.Run(ctx, serve(t), job, agent.Callbacks{Each: func(benchmark.Request) {
		if seen++; seen == 5 {
			cancel(errEnough)
		}
	}})
	if !errors.Is(err, errEnough) || report == nil || report.Requests.OK < 5 {
		t.Fatalf("error %v, report %+v; want %v and at least 5 requests", err, report, errEnough)
	}
}

// TestCallerGone: an agent whose input is closed ends its load and itself within a second.
func TestCallerGone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		pace time.Duration // an answer of 4 tokens
	}{{"busy", 2 * time.Millisecond}, {"one long request", 10 * time.Second}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := &fakeServer{pace: c.pace}
			cmd, conn := process(t, os.Args[0])
			job := newJob(server.start(t), workloadFile(t, 50), benchmark.Options{Concurrency: 4, Cap: time.Minute})
			job.Protocol = replayjob.Protocol
			if err := json.NewEncoder(conn.In).Encode(replayjob.Control{Job: &job}); err != nil {
				t.Fatal(err)
			}
			waitFor(t, func() bool { return server.inFlight.Load() > 0 })
			left := time.Now()
			_ = conn.In.Close()
			if _, err := io.ReadAll(conn.Out); err != nil {
				t.Fatal(err)
			}
			var exit *exec.ExitError
			if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
				t.Errorf("the agent ended with %v, want status 1", err)
			}
			if took := time.Since(left); took > time.Second {
				t.Errorf("it took %s", took)
			}
			waitFor(t, func() bool { return server.inFlight.Load() == 0 })
		})
	}
}

func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited 5 s in vain")
		}
	}
}

func TestSilentCallerEndsTheJob(t *testing.T) {
	t.Parallel()
	server := &fakeServer{pace: 10 * time.Millisecond}
	job := newJob(server.start(t), workloadFile(t, 50), benchmark.Options{Concurrency: 2, Cap: time.Minute})
	job.Protocol, job.Silence = replayjob.Protocol, replayjob.Duration(300*time.Millisecond)
	in, caller := io.Pipe()
	defer caller.Close()
	ended := make(chan error, 1)
	go func() { ended <- replayjob.Serve(context.Background(), in, io.Discard, "test") }()
	if err := json.NewEncoder(caller).Encode(replayjob.Control{Job: &job}); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, replayjob.ErrGone) || !strings.Contains(err.Error(), "300ms") {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("a silent caller was served for 5 s")
	}
}

func TestHeadersFromJobAndEnvironment(t *testing.T) {
	t.Parallel()
	for name, target := range map[string]replayjob.Target{
		"first line":  {Header: map[string]string{"Authorization": testKey}},
		"environment": {HeaderEnv: map[string]replayjob.FromEnv{"Authorization": {Env: "SGTUNE_TEST_KEY", Prefix: "Bearer "}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := &fakeServer{}
			job := newJob(server.start(t), workloadFile(t, 5), benchmark.Options{Concurrency: 2, Requests: 6})
			target.URL = job.Target.URL
			job.Target = target
			cmd, conn := process(t, os.Args[0])
			if _, err := agent.Run(t.Context(), conn, job, agent.Callbacks{}); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("the agent ended with %v", err)
			}
			if server.keys.Load() != 6 {
				t.Errorf("%d of 6 requests had the key", server.keys.Load())
			}
		})
	}
}

// TestSlowLinkDelaysNoRequest: nobody reads the agent's output, and the load goes on; nothing is lost.
func TestSlowLinkDelaysNoRequest(t *testing.T) {
	t.Parallel()
	server := &fakeServer{}
	job := newJob(server.start(t), workloadFile(t, 50), benchmark.Options{Concurrency: 4, Requests: 800, Window: 100 * time.Millisecond})
	conn := serve(t)
	conn.Out = &gate{ReadCloser: conn.Out, open: func() bool { return server.requests.Load() == 800 }}
	seen := 0
	report, err := agent.Run(t.Context(), conn, job, agent.Callbacks{Each: func(benchmark.Request) { seen++ }})
	if err != nil || seen != 800 || report.Requests.OK != 800 {
		t.Fatalf("%d samples, error %v", seen, err)
	}
}

// gate lets the hello through and then nothing until it is open.
type gate struct {
	io.ReadCloser
	hello bool
	open  func() bool
}

func (g *gate) Read(p []byte) (int, error) {
	for g.hello && !g.open() {
		time.Sleep(2 * time.Millisecond)
	}
	n, err := g.ReadCloser.Read(p)
	g.hello = g.hello || bytes.Contains(p[:n], []byte("\n"))
	return n, err
}

// A caller that was not asked may prune all the same: the present window is the last.
func TestPruneUnasked(t *testing.T) {
	t.Parallel()
	server := &fakeServer{pace: 5 * time.Millisecond}
	job := newJob(server.start(t), workloadFile(t, 50), benchmark.Options{Concurrency: 2, Cap: time.Minute, Window: 300 * time.Millisecond})
	job.Protocol = replayjob.Protocol
	conn := serve(t)
	defer conn.In.Close()
	lines, events := json.NewEncoder(conn.In), json.NewDecoder(conn.Out)
	if err := lines.Encode(replayjob.Control{Job: &job}); err != nil {
		t.Fatal(err)
	}
	for windows := 0; ; {
		var e replayjob.Event
		if err := events.Decode(&e); err != nil {
			t.Fatal(err)
		}
		switch {
		case e.Window != nil:
			if windows++; windows == 1 {
				if err := lines.Encode(replayjob.Control{Word: replayjob.Prune}); err != nil {
					t.Fatal(err)
				}
			}
		case e.Result != nil:
			if !e.Result.Report.Pruned || windows > 3 {
				t.Errorf("pruned %v after %d windows", e.Result.Report.Pruned, windows)
			}
			return
		case e.Error != nil:
			t.Fatal(e.Error)
		}
	}
}
