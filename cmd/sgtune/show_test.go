package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/sglang"
	"sgtune/store"
	"sgtune/trial"
	"sgtune/tuner"
)

var showNight = time.Date(2026, 1, 1, 22, 0, 0, 0, time.UTC)

// finishedDB stores a study that found trial 1 better, a lossy one, and one that has just begun.
func finishedDB(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sgtune.db")
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	low, high, base, best := 0.116, 0.169, 1842.0, 2104.0
	today, winner := sglang.Config{"mem-fraction-static": 0.85}, sglang.Config{"mem-fraction-static": 0.88, "hicache-size": 48.0}
	server := sglang.Server{Command: []string{"python3", "-m", "sglang.launch_server"}, Model: "/models/K", Flags: sglang.Config{"tp-size": 8.0}}
	records := []*tuner.Record{
		{
			Name: "night", State: tuner.StudyComplete, Host: "gpu-box", Objective: "output_tok_s", Server: server, BaselineConfig: today,
			CreatedAt: showNight, EndedAt: showNight.Add(8 * time.Hour),
			Verdict: &tuner.Verdict{Answer: "better", Gain: 0.142, Low: &low, High: &high, Trial: 1, Config: winner, Level: 120, Launches: 5, Text: "better: trial 1 makes more"},
		},
		{Name: "lossy", State: tuner.StudyComplete, Server: server, CreatedAt: showNight.Add(-time.Hour)},
		{Name: "begun", State: tuner.StudyRunning, Simulated: true, Server: server, CreatedAt: showNight.Add(-2 * time.Hour)},
	}
	ok := trial.Verdict{Outcome: trial.OK, Phase: sglang.PhaseDecode, Cause: "none"}
	oom := trial.Verdict{Outcome: trial.GPUOOM, Phase: sglang.PhasePrefill, Cause: "prefill_activation", Text: "GPU 3 ran out of memory."}
	trials := []*trial.Trial{
		{Study: "night", Number: 0, Role: trial.RoleBaseline, State: trial.Complete, Config: today, Value: &base, Best: 120, Verdict: ok, StartedAt: showNight, EndedAt: showNight.Add(14 * time.Minute)},
		{Study: "night", Number: 1, Role: trial.RoleSearch, State: trial.Complete, Config: winner, Value: &best, Best: 120, Verdict: ok, MaxRunning: 41, StartedAt: showNight, EndedAt: showNight.Add(time.Hour)},
		{Study: "night", Number: 2, Role: trial.RoleSearch, State: trial.Failed, Config: sglang.Config{"mem-fraction-static": 0.93}, Verdict: oom, Void: "", EndedAt: showNight},
		{Study: "night", Number: 3, Role: trial.RoleSearch, State: trial.Complete, Config: sglang.Config{"mem-fraction-static": 0.86}, Value: &base, Best: 120, Verdict: ok, EndedAt: showNight},
		{Study: "lossy", Number: 0, Role: trial.RoleBaseline, State: trial.Complete, Config: sglang.Config{"kv-cache-dtype": "fp8_e4m3"}, Value: &base, Best: 120, Verdict: ok},
	}
	for _, r := range records {
		err = errors.Join(err, db.SaveStudy(t.Context(), r))
	}
	for _, tr := range trials {
		err = errors.Join(err, db.SaveTrial(t.Context(), tr))
	}
	err = errors.Join(err,
		db.AddEvent(t.Context(), "night", tuner.Event{At: showNight, Kind: "reject", Text: "quality: fp8_e4m3", Config: sglang.Config{"kv-cache-dtype": "fp8_e4m3"}}),
		db.AddEvent(t.Context(), "night", tuner.Event{At: showNight, Kind: "step", Text: "begun"}), db.Close())
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// call runs the program.
func call(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// TestShowJSON holds the exact shape that scripts rely on.
func TestShowJSON(t *testing.T) {
	t.Parallel()
	path := finishedDB(t)
	code, out, errs := call(t, "show", "night", "--db", path, "--json")
	if code != 0 || errs != "" {
		t.Fatalf("exit %d: %s", code, errs)
	}
	want := `{"study": "night", "simulated": false, "state": "complete",
		"verdict": {"answer": "better", "gain": 0.142, "gain_low": 0.116, "gain_high": 0.169, "trial": 1},
		"trials": [
		{"number": 0, "role": "baseline", "state": "complete", "outcome": "ok", "phase": "decode", "cause": "none", "config": {"mem-fraction-static": 0.85},
		 "value": 1842, "level": {"concurrency": 120}, "void": "", "adopted": false, "started_at": "2026-01-01T22:00:00Z", "ended_at": "2026-01-01T22:14:00Z"},
		{"number": 1, "role": "search", "state": "complete", "outcome": "ok", "phase": "decode", "cause": "none", "config": {"hicache-size": 48, "mem-fraction-static": 0.88},
		 "value": 2104, "level": {"concurrency": 120}, "void": "", "adopted": false, "started_at": "2026-01-01T22:00:00Z", "ended_at": "2026-01-01T23:00:00Z"},
		{"number": 2, "role": "search", "state": "failed", "outcome": "gpu_oom", "phase": "prefill", "cause": "prefill_activation", "config": {"mem-fraction-static": 0.93},
		 "void": "", "adopted": false, "ended_at": "2026-01-01T22:00:00Z"},
		{"number": 3, "role": "search", "state": "complete", "outcome": "ok", "phase": "decode", "cause": "none", "config": {"mem-fraction-static": 0.86},
		 "value": 1842, "level": {"concurrency": 120}, "void": "", "adopted": false, "ended_at": "2026-01-01T22:00:00Z"}],
		"events": [{"at": "2026-01-01T22:00:00Z", "kind": "reject", "text": "quality: fp8_e4m3", "config": {"kv-cache-dtype": "fp8_e4m3"}},
		{"at": "2026-01-01T22:00:00Z", "kind": "step", "text": "begun", "config": {}}]}`
	if diff := cmp.Diff(parse(t, want), parse(t, out)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, out, _ = call(t, "show", "begun", "--db", path, "--json")
	want = `{"study": "begun", "simulated": true, "state": "running", "verdict": {}, "trials": [], "events": []}`
	if diff := cmp.Diff(parse(t, want), parse(t, out)); diff != "" {
		t.Errorf("before the end (-want +got):\n%s", diff)
	}
}

func parse(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

func TestReadingCommands(t *testing.T) {
	t.Parallel()
	path := finishedDB(t)
	tests := []struct {
		name string
		args []string
		code int
		want []string // on stdout, or on stderr when the code is not 0
		not  string
	}{
		{"ls", []string{"ls"}, 0, []string{"STATE", "complete", "night", "gpu-box", "CHANGE: better", "begun (SIMULATED)", "RUNNING"}, ""},
		{"ls json", []string{"ls", "--json"}, 0, []string{`"study": "night"`, `"answer": "better"`}, ""},
		{"newest", []string{"show"}, 0, []string{"night  gpu-box  complete", "CHANGE  better", "mem-fraction-static  0.85", "2,104 output tok/s at 120 clients", "gpu_oom"}, "SIMULATED"},
		{"simulated", []string{"show", "begun"}, 0, []string{"SIMULATED", "no verdict yet"}, ""},
		{"trial", []string{"show", "night", "2"}, 0, []string{"Trial 2 of night (search)", "GPU 3 ran out of memory.", "gpu_oom / prefill / prefill_activation"}, ""},
		{"trial json", []string{"show", "night", "2", "--json"}, 0, []string{`"outcome": "gpu_oom"`}, ""},
		{"unknown study", []string{"show", "nigth"}, 2, []string{`holds no study "nigth"; it holds night, lossy, begun`}, ""},
		{"unknown trial", []string{"show", "night", "77"}, 2, []string{"study night has no trial 77"}, ""},
		{"no number", []string{"show", "night", "x"}, 2, []string{`"x" is no trial number`}, ""},
		{"best", []string{"export", "night"}, 0, []string{
			"#!/bin/sh", "night, trial 1", "2,104 output tok/s at 120 clients; 41 ran at once", "better than the baseline by 14.2%, 95% interval +11.6% to +16.9%, at 120 clients, 5 launches each",
			"measured 2026-01-02 06:00 UTC", "python3 -m sglang.launch_server", "--model-path /models/K", "--hicache-size 48", "--mem-fraction-static 0.88", "--tp-size 8",
		}, "UNCONFIRMED"},
		{"best yaml", []string{"export", "night", "--format", "sglang-yaml", "--trial", "best"}, 0, []string{"# night, trial 1", "model-path: /models/K", "hicache-size: 48"}, "UNCONFIRMED"},
		{"unconfirmed", []string{"export", "night", "--trial", "3"}, 0, []string{"UNCONFIRMED", "--mem-fraction-static 0.86"}, "better than the baseline by"},
		{"baseline", []string{"export", "night", "--trial", "0"}, 0, []string{"(the baseline: what ran before)", "0.85"}, "UNCONFIRMED"},
		{"failed trial", []string{"export", "night", "--trial", "2"}, 1, []string{"trial 2 of night is gpu_oom"}, ""},
		{"lossy", []string{"export", "lossy"}, 1, []string{"trial 0 of lossy is not exported", "fp8_e4m3", "quality"}, ""},
		{"nothing yet", []string{"export", "begun"}, 1, []string{"has no trial yet"}, ""},
		{"format", []string{"export", "night", "--format", "yml"}, 2, []string{`"yml" is not one of sglang-yaml, sh`}, ""},
		{"export of what", []string{"export"}, 2, []string{"arg"}, ""},
		{"address", []string{"serve", "--web", "0.0.0.0:0"}, 1, []string{"SGTUNE_TOKEN"}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			code, out, errs := call(t, append(test.args, "--db", path)...)
			text := out
			if test.code != 0 {
				text = errs
				if out != "" || strings.Count(strings.TrimSpace(errs), "\n") != 0 {
					t.Errorf("stdout %q, stderr %q, want one line on stderr", out, errs)
				}
			}
			if code != test.code {
				t.Errorf("exit %d, want %d: %s", code, test.code, errs)
			}
			for _, want := range test.want {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in:\n%s", want, text)
				}
			}
			if test.not != "" && strings.Contains(text, test.not) {
				t.Errorf("%q in:\n%s", test.not, text)
			}
		})
	}
}

func TestReadingCommandsWithoutADatabase(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "no.db")
	for _, args := range [][]string{{"ls"}, {"show"}, {"export", "x"}, {"serve"}} {
		code, out, errs := call(t, append(args, "--db", missing)...)
		if code != 2 || out != "" || !strings.Contains(errs, "there is no database "+missing) {
			t.Errorf("%v: exit %d, %q, %q", args, code, out, errs)
		}
		_, out, _ = call(t, args[0], "--help")
		if !strings.Contains(out, "Examples:") || !strings.Contains(out, "--db") {
			t.Errorf("%v: help %s", args, out)
		}
	}
}

func TestServeCommand(t *testing.T) {
	t.Setenv("SGTUNE_TOKEN", "")
	path := finishedDB(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reader, writer := io.Pipe()
	code := make(chan int, 1)
	go func() { code <- run(ctx, []string{"serve", "--db", path, "--web", "127.0.0.1:0"}, writer, io.Discard) }()
	line := make([]byte, 200)
	n, err := reader.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	_, address, found := strings.Cut(strings.TrimSpace(string(line[:n])), "page: ")
	if !found {
		t.Fatalf("it says %q", line[:n])
	}
	for _, page := range []string{"", "studies/night", "studies/night/trials/1", "api/v1/studies", "metrics"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+page, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK || !bytes.Contains(body, []byte("night")) {
			t.Errorf("%s: %d %s", page, response.StatusCode, body)
		}
	}
	cancel()
	if got := <-code; got != 0 {
		t.Errorf("exit %d", got)
	}
}
