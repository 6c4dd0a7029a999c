package main

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

var evening = time.Date(2026, 1, 1, 22, 0, 0, 0, time.Local)

// nightStudy is a study on a real host with two load levels.
func nightStudy() *tuner.Study {
	return &tuner.Study{
		Name: "night", Host: tuner.HostSpec{Kind: tuner.HostLocal}, Budget: tuner.Budget{Trials: 19}, Passed: sglang.Config{"kv-cache-dtype": "bf16"},
		Workload: tuner.WorkloadSpec{Concurrency: []int{40, 80}},
	}
}

// screen is a terminal over a buffer whose clock stands still.
func screen(t *testing.T, live, asJSON bool, width int) (*terminal, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	term := newTerminal(&out, live, asJSON, nightStudy(), "night.db", func() time.Time { return evening })
	term.size = func() (int, int) { return width, 24 }
	return term, &out
}

func value(v float64) *float64 { return &v }

// Trials of a night: the baseline, a better one, and one that ran out of memory.
var (
	today = &trial.Trial{
		Number: 0, Role: trial.RoleBaseline, State: trial.Complete, Value: value(1842), Best: 80, MaxRunning: 41, Config: sglang.Config{"mem-fraction-static": 0.85},
		Why: "the baseline: what runs today", StartedAt: evening, EndedAt: evening.Add(14 * time.Minute), Levels: make([]trial.Level, 2),
		Steps: map[trial.Step]time.Duration{trial.StepWait: 6 * time.Minute, trial.StepMeasure: 8 * time.Minute},
	}
	winner = &trial.Trial{
		Number: 1, Role: trial.RoleSearch, State: trial.Complete, Value: value(2104), Best: 80, MaxRunning: 55, Why: "start 1 of 8: even cover; 2 points passed over",
		Config: sglang.Config{"mem-fraction-static": 0.88, "kv-cache-dtype": "bf16"}, StartedAt: evening, EndedAt: evening.Add(15*time.Minute + 30*time.Second),
	}
	failed = &trial.Trial{
		Number: 2, Role: trial.RoleSearch, State: trial.Failed, Why: "start 2 of 8: even cover", Config: sglang.Config{"mem-fraction-static": 0.93, "kv-cache-dtype": "bf16"},
		Verdict:   trial.Verdict{Outcome: trial.GPUOOM, Text: "GPU 3 ran out of memory in a prefill."},
		StartedAt: evening, EndedAt: evening.Add(9 * time.Minute),
	}
)

// launched is a copy of a trial as it is launched.
func launched(t *trial.Trial, step trial.Step) *trial.Trial {
	row := *t
	row.State, row.Step, row.Value, row.EndedAt, row.Plan = trial.Running, step, nil, time.Time{}, []int{80}
	return &row
}

// status is where the night stands after a number of launches.
func status(launches int, next *trial.Trial) tuner.Status {
	return tuner.Status{
		Baseline: today, Best: winner, Next: next,
		Plan: tuner.Plan{Now: evening, Launches: launches, Limit: 19, Search: 15 * time.Minute, Full: 20 * time.Minute, Pairs: 3},
	}
}

// feed tells a terminal the beginning of a night.
func feed(t *terminal) {
	t.Status(tuner.Status{Plan: tuner.Plan{Now: evening, Launches: 1, Limit: 19, Pairs: 3}})
	for _, step := range []trial.Step{trial.StepAdmit, trial.StepWait} {
		t.Saved(launched(today, step))
	}
	t.Saved(today)
	after := status(1, nil)
	after.Best = today
	t.Status(after)
	zero, one := 0, 1
	t.Event(tuner.Event{At: evening, Kind: "plan", Trial: &zero, Text: "trial 0 is complete: 1842. 18 more trials fit"})
	t.Event(tuner.Event{At: evening, Kind: "reject", Text: "host RAM: 56 GB x 8 do not fit"})
	t.Status(after)
	t.Saved(launched(winner, trial.StepAdmit))
	t.Saved(winner)
	t.Status(status(2, nil))
	t.Event(tuner.Event{At: evening, Kind: "plan", Trial: &one, Text: "trial 1 is complete: 2104. 17 more trials fit"})
	t.Status(status(3, failed))
	t.Saved(launched(failed, trial.StepAdmit))
	t.Saved(failed)
	t.Event(tuner.Event{At: evening, Kind: "verdict", Text: "printed whole at the end"})
}

func TestPlainLog(t *testing.T) {
	t.Parallel()
	term, out := screen(t, false, false, 80)
	feed(term)
	want := `22:00:00  trial 0, baseline: mem-fraction-static 0.85
          what runs today
22:00:00  trial 0 ok: 1842 output tok/s at 80 clients; 41 requests ran at once; took 14m00s
22:00:00  done about 04:30, in 6h30m; next: 18 trials of about 15m00s, then 6 confirmation launches
22:00:00  not tried: host RAM: 56 GB x 8 do not fit
22:00:00  trial 1, search: mem-fraction-static 0.88
          start 1 of 8: even cover; 2 points passed over; launch 1 of 19; done about 04:30, in 6h30m
22:00:00  trial 1 ok: 2104 output tok/s at 80 clients, +14.2% against the baseline, the best so far; 55 requests ran at once; took 15m30s
22:00:00  trial 2, search: mem-fraction-static 0.93
          start 2 of 8; launch 3 of 19; done about 04:15, in 6h15m
22:00:00  trial 2 failed: GPU 3 ran out of memory in a prefill; took 9m00s
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestConfirmationLog(t *testing.T) {
	t.Parallel()
	term, out := screen(t, false, false, 80)
	one := 1
	term.Event(tuner.Event{At: evening, Kind: "plan", Trial: &one, Config: winner.Config, Text: "the search is over (the budget is used)"})
	again := *winner
	again.Number, again.Role, again.Why = 19, trial.RoleConfirm, "confirmation, launch 2 of 6: the candidate"
	s := status(19, &again)
	s.Plan.Done = 1
	term.Status(s)
	term.Saved(launched(&again, trial.StepAdmit))
	if got, want := term.nextText(), "done about 23:40, in 1h40m; next: 4 confirmation launches"; got != want {
		t.Errorf("next %q, want %q", got, want)
	}
	term.Saved(&again)
	s.Plan.Done = 6
	s.Next = nil
	term.Status(s)
	if got, want := term.nextText(), "done about 22:00, in 0s; next: the verdict"; got != want {
		t.Errorf("next %q, want %q", got, want)
	}
	want := `22:00:00  the search is over (the budget is used)
          the candidate: mem-fraction-static 0.88
22:00:00  trial 19, confirmation launch 2 of 6: the candidate
          done about 23:40, in 1h40m
22:00:00  trial 19 ok: 2104 output tok/s at 80 clients; 55 requests ran at once; took 15m30s
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	term, _ := screen(t, false, false, 80)
	term.Status(status(2, nil))
	for _, tt := range []struct {
		name string
		edit func(*trial.Trial)
		want string
	}{
		{"worse", func(tr *trial.Trial) { tr.Value = value(1000) }, "trial 1 ok: 1000 output tok/s at 80 clients, -45.7% against the baseline; 55 requests ran at once; took 15m30s"},
		{"pruned", func(tr *trial.Trial) { tr.State = trial.Pruned }, "trial 1 stopped early: it cannot come near the best so far; took 15m30s"},
		{"slo", func(tr *trial.Trial) { tr.Value = nil }, "trial 1 ran, but no load level met the SLO; took 15m30s"},
		{"void", func(tr *trial.Trial) { tr.Void = "another process used GPU 2" }, "trial 1 ok: 2104 output tok/s at 80 clients, +14.2% against the baseline; 55 requests ran at once; void, it does not count: another process used GPU 2; took 15m30s"},
		{"unverified", func(tr *trial.Trial) { tr.State, tr.Release = trial.Pruned, trial.ReleaseUnverified }, "trial 1 stopped early: it cannot come near the best so far; GPU memory not verified (no GPU facts); took 15m30s"},
		{"never launched", func(tr *trial.Trial) {
			tr.State, tr.StartedAt, tr.Verdict.Text = trial.Cancelled, time.Time{}, "not launched: the search is over"
		}, "trial 1 cancelled: not launched: the search is over"},
		{"running", func(tr *trial.Trial) { tr.State = trial.Running }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			row := *winner
			tt.edit(&row)
			if got := term.resultText(&row); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestRejectsAreNotRepeatedForEver(t *testing.T) {
	t.Parallel()
	term, out := screen(t, false, false, 80)
	for range 5 {
		term.Event(tuner.Event{At: evening, Kind: "reject", Text: "host RAM: too much"})
	}
	term.Event(tuner.Event{At: evening, Kind: "reject", Text: "quality: fp8"})
	term.Event(tuner.Event{At: evening, Kind: "reject", Text: "too late", Config: sglang.Config{"tp-size": 4.0}})
	if n := strings.Count(out.String(), "not tried: host RAM"); n != rejectsShown {
		t.Errorf("%d times, want %d", n, rejectsShown)
	}
	for _, want := range []string{`more that the rule "host RAM" keeps out is stored`, "not tried: quality: fp8", "not tried: tp-size 4: too late"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}

func TestJSONEvents(t *testing.T) {
	t.Parallel()
	term, out := screen(t, true, true, 80)
	term.Start()
	feed(term)
	term.Say("a note")
	term.Verdict(&tuner.Verdict{Answer: "better"}, &tuner.Record{State: tuner.StudyComplete, Verdict: &tuner.Verdict{Answer: "better", Text: "better: trial 1"}})
	term.Close()
	kinds := map[string]int{}
	for line := range strings.Lines(out.String()) {
		var e struct {
			Kind, Text, State string
			Trial             *int
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		kinds[e.Kind]++
		if e.Kind == "trial" && e.State == "failed" && (*e.Trial != 2 || e.Text != "trial 2 failed: GPU 3 ran out of memory in a prefill; took 9m00s") {
			t.Errorf("failed trial: %s", line)
		}
	}
	if diff := cmp.Diff(map[string]int{"trial": 6, "plan": 2, "reject": 1, "verdict": 1, "note": 2}, kinds); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStatusLines(t *testing.T) {
	t.Parallel()
	measuring := trial.Progress{
		Number: 3, Step: trial.StepMeasure, Text: "measuring at 80 clients", Elapsed: 31 * time.Second, Expected: 10 * time.Minute, Window: &benchmark.Window{Output: 2040},
	}
	third := &trial.Trial{Number: 3, Role: trial.RoleSearch, Config: winner.Config}
	for _, tt := range []struct {
		name     string
		tell     func(*terminal)
		want     []string
		simulate bool
	}{
		{name: "before anything", want: []string{"choosing what comes next"}, tell: func(*terminal) {}},
		{name: "first load", tell: func(term *terminal) {
			term.Status(tuner.Status{Plan: tuner.Plan{Now: evening, Deadline: evening.Add(9 * time.Hour), Launches: 1}})
			term.Saved(launched(today, trial.StepWait))
			term.Progress(trial.Progress{Number: 0, Step: trial.StepWait, Text: "loading weights, 3 of 64 files", Elapsed: time.Minute})
		}, want: []string{
			"baseline, trial 0, 1m00s: loading weights, 3 of 64 files",
			"done by 07:00 at the latest; next: the search; how much fits is known once a trial has ended",
		}},
		{name: "middle of the night", tell: func(term *terminal) {
			s := status(4, third)
			s.Failed = failed
			term.Status(s)
			term.Saved(launched(third, trial.StepMeasure))
			term.Progress(measuring)
		}, want: []string{
			"search, trial 3, 31s of about 4m00s: measuring at 80 clients, now 2,040 tok/s",
			"best so far: trial 1, +14.2% against the baseline: 2104 output tok/s at 80 clients",
			"done about 04:00, in 6h00m; next: 15 trials of about 15m00s, then 6 confirmation launches",
			"last failure: trial 2, GPU 3 ran out of memory in a prefill.",
		}},
		{name: "a step that nobody has reported yet", tell: func(term *terminal) {
			term.Saved(launched(third, trial.StepMeasure))
			term.Progress(measuring)
			term.Saved(launched(third, trial.StepStop))
		}, want: []string{"search, trial 3: stopping the server"}},
		{name: "a limit where nothing is learnt", tell: func(term *terminal) {
			term.Saved(launched(third, trial.StepCanary))
			term.Progress(trial.Progress{Number: 3, Step: trial.StepCanary, Text: "canary", Elapsed: 5 * time.Second, Expected: 90 * time.Second})
		}, want: []string{"search, trial 3, 5s of at most 1m30s: canary"}},
		{name: "simulated", simulate: true, tell: func(term *terminal) { term.Status(status(4, nil)) }, want: []string{
			"SIMULATED choosing what comes next",
			"best so far: trial 1, +14.2% against the baseline: 2104 output tok/s at 80 clients",
			"done in about 2m18s (03:45 simulated); next: 15 trials of about 15m00s, then 6 confirmation launches",
		}},
		{name: "the baseline is the best", tell: func(term *terminal) {
			term.Status(tuner.Status{Best: today, Baseline: today})
		}, want: []string{"choosing what comes next", "best so far: the baseline, 1842 output tok/s at 80 clients"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			term, _ := screen(t, true, false, 80)
			if tt.simulate {
				term.study.Simulated, term.study.Host = true, tuner.HostSpec{Kind: tuner.HostSimulated, TimeScale: 150}
			}
			tt.tell(term)
			if diff := cmp.Diff(tt.want, term.statusLines()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// render plays what a terminal was sent on a screen of lines; it knows the few sequences that are used.
func render(t *testing.T, text string, width int) []string {
	t.Helper()
	lines, row, col := []string{""}, 0, 0
	sequence := regexp.MustCompile(`^\x1b\[(\d*)([AJ])`)
	for text != "" {
		if m := sequence.FindStringSubmatch(text); m != nil {
			switch m[2] {
			case "A":
				row -= int(m[1][0] - '0')
			case "J":
				lines = append(lines[:row:row], string([]rune(lines[row])[:col]))
			}
			text = text[len(m[0]):]
			continue
		}
		r := []rune(text)[0]
		text = text[len(string(r)):]
		switch r {
		case '\r':
			col = 0
		case '\n':
			if row, col = row+1, 0; row == len(lines) {
				lines = append(lines, "")
			}
		case '\x1b':
			t.Fatalf("unknown sequence before %.20q", text)
		default:
			cells := []rune(lines[row])
			lines[row] = string(append(cells[:col:col], r))
			if col++; col >= width {
				t.Fatalf("a line of %d characters or more wraps: %s", width, lines[row])
			}
		}
	}
	return lines
}

func TestLiveScreen(t *testing.T) {
	t.Parallel()
	const width = 60
	term, out := screen(t, true, false, width)
	term.Saved(launched(winner, trial.StepAdmit))
	s := status(2, winner)
	s.Failed = failed
	term.Status(s)
	term.Progress(trial.Progress{Number: 1, Step: trial.StepAdmit, Text: "checking the host with a text that is much longer than the line"})
	term.Say("a line\x1b[31m of\nthe log")
	want := []string{
		"22:00:00  trial 1, search: mem-fraction-static 0.88",
		"          start 1 of 8: even cover; 2 points passed over",
		"a line[31m of the log", // the escape itself is gone
		"search, trial 1, 0s: checking the host with a text that is…",
		"best so far: trial 1, +14.2% against the baseline: 2104 ou…",
		"done about 04:30, in 6h30m; next: 17 trials of about 15m00…",
		"last failure: trial 2, GPU 3 ran out of memory in a prefil…",
	}
	if diff := cmp.Diff(want, render(t, out.String(), width)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	term.size = func() (int, int) { return width, 3 } // too low for all of them
	term.Status(s)
	if got := render(t, out.String(), width); len(got) != 5 {
		t.Errorf("%d lines: %q", len(got), got)
	}
	term.Close()
	term.Say("plain again")
	if diff := cmp.Diff(append(want[:3:3], "plain again", ""), render(t, out.String(), width)); diff != "" {
		t.Errorf("after Close (-want +got):\n%s", diff)
	}
}

func TestLiveScreenCountsOn(t *testing.T) {
	t.Parallel()
	term, out := screen(t, true, false, 80)
	at := evening
	term.now = func() time.Time { at = at.Add(time.Second); return at } // under the terminal's lock
	term.Saved(launched(winner, trial.StepWait))
	term.Progress(trial.Progress{Number: 1, Step: trial.StepWait, Text: "loading", Elapsed: time.Minute})
	term.Start()
	time.Sleep(3 * redrawEvery)
	term.Close()
	if seen := regexp.MustCompile(`1m\d\ds: loading`).FindAllString(out.String(), -1); len(seen) < 2 || seen[0] == seen[len(seen)-1] {
		t.Errorf("elapsed times %q do not count on", seen)
	}
}
