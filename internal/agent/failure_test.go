package agent_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sgtune/benchmark"
	"sgtune/internal/agent"
	"sgtune/internal/replayjob"
)

func TestFailuresSayWhatToDo(t *testing.T) {
	t.Parallel()
	path, url := workloadFile(t, 5), (&fakeServer{}).start(t)
	empty := filepath.Join(t.TempDir(), "empty.jsonl")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	volley := filepath.Join(t.TempDir(), "volley.jsonl")
	row := `{"timestamp":5,"input_length":9,"output_length":4,"hash_ids":[1]}` + "\n"
	if err := os.WriteFile(volley, []byte(strings.Repeat(row, 200)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, kind, text string
		change           func(*replayjob.Job)
	}{
		{"no level end", replayjob.FailedJob, "needs an end", func(j *replayjob.Job) { j.Load.Requests = 0 }},
		{"another machine", replayjob.FailedJob, "any_host", func(j *replayjob.Job) { j.Target.URL = "http://203.0.113.7:30000" }},
		{"no URL", replayjob.FailedJob, "has no http:// before it", func(j *replayjob.Job) { j.Target.URL = "gpu-host" }},
		{"no variable", replayjob.FailedJob, "SGTUNE_TEST_NONE", func(j *replayjob.Job) {
			j.Target.HeaderEnv = map[string]replayjob.FromEnv{"Authorization": {Env: "SGTUNE_TEST_NONE"}}
		}},
		{"no file", replayjob.FailedWorkload, "nowhere.jsonl", func(j *replayjob.Job) { j.Workload.Path = "/nowhere.jsonl" }},
		{"empty file", replayjob.FailedWorkload, "empty", func(j *replayjob.Job) { j.Workload.Path = empty }},
		{"no workload", replayjob.FailedWorkload, "names no workload", func(j *replayjob.Job) { j.Workload.Path = "" }},
		{"file and set", replayjob.FailedWorkload, "leave one", func(j *replayjob.Job) { j.Workload.Generate = &benchmark.GenerateOptions{Name: "random"} }},
		{"unknown set", replayjob.FailedWorkload, "sharegpt", func(j *replayjob.Job) {
			j.Workload = replayjob.Workload{Generate: &benchmark.GenerateOptions{Name: "sharegpt"}}
		}},
		{"absurd rate", replayjob.FailedWorkload, "at the same moment", func(j *replayjob.Job) {
			j.Workload.Path = volley
			j.Load.Arrivals = &benchmark.Arrivals{Process: benchmark.ArrivalsRecorded}
		}},
		{"backwards", replayjob.FailedJob, "negative", func(j *replayjob.Job) { j.Feed.Skip = -1 }},
		{"no server", replayjob.FailedPalette, "refused", func(j *replayjob.Job) { j.Target.URL = "http://127.0.0.1:1" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			job := newJob(url, path, benchmark.Options{Concurrency: 1, Requests: 1})
			c.change(&job)
			report, err := agent.Run(t.Context(), serve(t), job, agent.Callbacks{})
			var f *replayjob.Failure
			if !errors.As(err, &f) || f.Kind != c.kind || !strings.Contains(f.Text, c.text) || report != nil {
				t.Errorf("%v; want kind %s and %q", err, c.kind, c.text)
			}
		})
	}
}

// says is an agent that says lines, then ends or, with hang, does nothing more.
func says(t *testing.T, hang bool, lines ...string) agent.Conn {
	t.Helper()
	in, inWriter := io.Pipe()
	out, outWriter := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.WriteString(outWriter, strings.Join(lines, "\n")+"\n")
		if hang {
			_, _ = bufio.NewReader(in).ReadString(0) // until the caller gives up
		}
		_ = outWriter.Close()
		_ = in.Close()
	}()
	t.Cleanup(func() { <-done })
	return agent.Conn{In: inWriter, Out: out, Silence: 200 * time.Millisecond}
}

func hello(protocol int) string {
	return fmt.Sprintf(`{"hello":{"program":"sgtune-agent","protocol":%d,"version":"v9","platform":"linux/amd64","pid":1}}`, protocol)
}

func TestLostAgents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		hang  bool
		lines []string
		want  string
	}{
		{"no agent at all", false, []string{"sh: 1: ./sgtune-agent: not found"}, "./sgtune-agent: not found"},
		{"ended", false, []string{hello(replayjob.Protocol)}, "before the result"},
		{"silent from the start", true, []string{"welcome"}, "nothing was heard of it for 200ms"},
		{"silent later", true, []string{hello(replayjob.Protocol), `{"beat":{"at":"2026-01-01T00:00:00Z","finished":0,"failed":0}}`}, "nothing was heard"},
		{"nonsense", true, []string{hello(replayjob.Protocol), "Segmentation fault"}, "Segmentation fault"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := agent.Run(t.Context(), says(t, c.hang, c.lines...), replayjob.Job{}, agent.Callbacks{})
			if !errors.Is(err, agent.ErrLost) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want ErrLost and %q", err, c.want)
			}
		})
	}
}

func TestAgentOfAnotherProtocol(t *testing.T) {
	t.Parallel()
	_, err := agent.Run(t.Context(), says(t, true, "noise of a shell", hello(replayjob.Protocol+1)), replayjob.Job{}, agent.Callbacks{})
	var f *replayjob.Failure
	if !errors.As(err, &f) || f.Kind != replayjob.FailedProtocol || !strings.Contains(f.Text, "version v9") {
		t.Errorf("%v; want a protocol failure", err)
	}
}

func TestStoppedBeforeItBegan(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errEnough)
	if report, err := agent.Run(ctx, says(t, true, "nothing yet"), replayjob.Job{}, agent.Callbacks{}); report != nil || !errors.Is(err, errEnough) {
		t.Errorf("%v, %v", report, err)
	}
}
