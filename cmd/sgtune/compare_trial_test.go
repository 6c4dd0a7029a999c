package main

import (
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/store"
	"sgtune/trial"
	"sgtune/tuner"
)

var (
	todayConfig  = sglang.Config{"mem-fraction-static": 0.85}
	winnerConfig = sglang.Config{"mem-fraction-static": 0.88, "hicache-size": 48.0}
	otherConfig  = sglang.Config{"mem-fraction-static": 0.86}
)

// ran is a complete trial that made this throughput with 80 clients, and less with 40.
func ran(number int, role trial.Role, config sglang.Config, tokS float64) *trial.Trial {
	start := showNight.Add(time.Duration(number) * time.Hour)
	level := func(clients int, tokS float64) trial.Level {
		r := &benchmark.Report{OutputTokS: tokS, OutputLow: tokS * 0.98, OutputHigh: tokS * 1.02, RequestsS: tokS / 300, Steady: true, Valid: true}
		r.Requests.Sent, r.Requests.OK, r.Tokens.Prompt, r.Tokens.Got = 400, 400, 438400, 120000
		r.TTFTms = &benchmark.Distribution{P50: 100 + tokS, P95: 200 + tokS}
		return trial.Level{Concurrency: clients, Report: r}
	}
	return &trial.Trial{
		Study: "night", Number: number, Role: role, Config: config, State: trial.Complete, Value: &tokS, Best: 80, SGLang: "0.5.23",
		Levels: []trial.Level{level(40, tokS/2), level(80, tokS)}, Cache: trial.Cache{Flushed: true},
		Verdict: trial.Verdict{Outcome: trial.OK}, StartedAt: start, EndedAt: start.Add(time.Hour),
	}
}

// confirmedDB stores a study whose trial 1 was confirmed with three launches a side, and one more of a
// launch beyond the number; a trial 2 without confirmation, a void 3, a failed 4; and a simulated study.
func confirmedDB(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sgtune.db")
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	server := sglang.Server{Command: []string{"python3"}, Model: "/models/K"}
	identity := func(window string) map[string]string {
		return map[string]string{"workload": "file: rows.jsonl sha256:aa\nwindow: " + window, "server": "model: /models/K\nbaseline.mem-fraction-static: 0.85", "host": "kind: local"}
	}
	records := []*tuner.Record{
		{
			Name: "night", State: tuner.StudyComplete, Objective: "output_tok_s", Server: server, BaselineConfig: todayConfig, Confirm: 3, Candidate: winnerConfig,
			Identity: identity("10s"), CreatedAt: showNight, Verdict: &tuner.Verdict{Answer: "better", Trial: 1, Config: winnerConfig},
		},
		{Name: "other", State: tuner.StudyStopped, Objective: "requests_s", Server: server, Simulated: true, Identity: identity("20s"), CreatedAt: showNight.Add(-time.Hour)},
		{Name: "begun", State: tuner.StudyRunning, Objective: "output_tok_s", Server: server, CreatedAt: showNight.Add(-2 * time.Hour)},
	}
	trials := []*trial.Trial{
		ran(0, trial.RoleBaseline, todayConfig, 1700), ran(1, trial.RoleSearch, winnerConfig, 2500), ran(2, trial.RoleSearch, otherConfig, 1900),
		ran(3, trial.RoleSearch, sglang.Config{"mem-fraction-static": 0.87}, 1910), ran(4, trial.RoleSearch, sglang.Config{"mem-fraction-static": 0.93}, 1),
		ran(5, trial.RoleConfirm, todayConfig, 1842), ran(6, trial.RoleConfirm, winnerConfig, 2104), ran(7, trial.RoleConfirm, winnerConfig, 1),
		ran(8, trial.RoleConfirm, winnerConfig, 2121), ran(9, trial.RoleConfirm, todayConfig, 1838), ran(10, trial.RoleConfirm, todayConfig, 1861),
		ran(11, trial.RoleConfirm, winnerConfig, 2090), ran(12, trial.RoleConfirm, winnerConfig, 9999), ran(13, trial.RoleSearch, otherConfig, 1),
	}
	trials[3].Void = "another process was on GPU 0"
	for _, n := range []int{4, 7} {
		trials[n].State, trials[n].Value, trials[n].Levels = trial.Failed, nil, nil
		trials[n].Verdict = trial.Verdict{Outcome: trial.GPUOOM, Phase: sglang.PhasePrefill, Cause: "prefill_activation", Text: "GPU 3 ran out of memory.", Blames: trial.BlameYes}
	}
	trials[13].State, trials[13].Value, trials[13].EndedAt = trial.Waiting, nil, time.Time{}
	foreign := ran(0, trial.RoleBaseline, todayConfig, 1500)
	foreign.Study, foreign.SGLang = "other", "0.5.10"
	trials = append(trials, foreign)
	for _, r := range records {
		err = errors.Join(err, db.SaveStudy(t.Context(), r))
	}
	for _, tr := range trials {
		err = errors.Join(err, db.SaveTrial(t.Context(), tr))
	}
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// A confirmed configuration counts with its fresh launches only: trial 1's own 2,500 was why it was picked.
func TestCompareConfirmedTrials(t *testing.T) {
	t.Parallel()
	path := confirmedDB(t)
	want := benchmark.Compare([]float64{1842, 1838, 1861}, []float64{2104, 2121, 2090})
	for _, args := range [][]string{
		{"night:baseline", "night:best"},
		{"night:0", "night:1"},
		{"night:5", "night:8"},
		{"night/0", "night/best"},
		{"0", "best"},
		{"baseline", "best", "--study", "night"},
		{"0", "1", "--study", "night"},
	} {
		code, r := compared(t, append(args, "--db", path)...)
		if code != 0 || r.Answer != "better" || r.N != want.N || math.Abs(*r.Gain-want.Gain) > 1e-12 || math.Abs(*r.Low-want.Low) > 1e-12 || math.Abs(*r.High-want.High) > 1e-12 {
			t.Errorf("%v: exit %d, %s %v", args, code, r.Text, r.N)
		}
		if diff := cmp.Diff([]string{"trial 6", "trial 8", "trial 11"}, r.Candidate.Launches); diff != "" {
			t.Errorf("%v: %s", args, diff)
		}
		if diff := cmp.Diff([]string{"candidate: trial 7 is left out: it failed: GPU 3 ran out of memory"}, r.Warnings); diff != "" {
			t.Errorf("%v: %s", args, diff)
		}
	}
}

func TestCompareTrials(t *testing.T) {
	t.Parallel()
	path := confirmedDB(t)
	for _, tt := range []struct {
		name string
		args []string
		code int
		want []string // on stdout, or on stderr with exit 2
	}{
		{"without confirmation", []string{"night:0", "night:2"}, 1, []string{
			"not confirmed: output tok/s 1,900 against 1,847, +2.9%; 3 launches of base, 1 of candidate cannot tell", "2 more of candidate; a study takes them",
			"candidate: it has no confirmation launch", "mem-fraction-static 0.86", "trial 5, trial 9, trial 10",
		}},
		{"void", []string{"night:0", "night:3"}, 1, []string{"candidate has no launch that counts (trial 3: it is void: another process was on GPU 0)"}},
		{"failed", []string{"night:0", "night:4"}, 1, []string{"candidate has no launch that counts (trial 4: it failed: GPU 3 ran out of memory)"}},
		{"at another level", []string{"night:0", "night:1", "--level", "40"}, 0, []string{"better: output tok/s 1,052 against 923.5", "40 clients"}},
		{"a level that was not measured", []string{"night:0", "night:1", "--level", "41"}, 2, []string{"--level 41: night:0 was not measured at that load; it has 40, 80"}},
		{"latency", []string{"night:0", "night:1", "--metric", "ttft_p95"}, 0, []string{"worse: TTFT p95 2,305 ms against 2,047 ms"}},
		{"two studies", []string{"night:0", "other:0"}, 1, []string{
			"the studies differ in workload.window: base 10s; candidate 20s", "server differs: base sglang 0.5.23; candidate sglang 0.5.10", "candidate is SIMULATED", "SIMULATED\n", "output tok/s 1,500",
		}},
		{"waiting", []string{"night:0", "night:13"}, 1, []string{"trial 13 of night is waiting; compare it when it has ended"}},
		{"unknown trial", []string{"night:0", "night:77"}, 2, []string{"study night has no trial 77"}},
		{"unknown study", []string{"nigth:0", "night:1"}, 2, []string{`holds no study "nigth"; it holds night, other, begun`}},
		{"nothing ended", []string{"begun:baseline", "night:1"}, 1, []string{"the baseline of begun has not ended yet"}},
		{"no best", []string{"night:1", "begun:best"}, 1, []string{"study begun has no trial with a value yet"}},
		{"enormous number", []string{"night:99999999999999999999", "night:1"}, 2, []string{"is no trial of night"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			code, out, errs := call(t, append(append([]string{"compare"}, tt.args...), "--db", path)...)
			if code != tt.code || strings.Count(errs, "\n") > 1 || code == 2 && out != "" {
				t.Errorf("exit %d, want %d: %s%s", code, tt.code, out, errs)
			}
			for _, want := range tt.want {
				if !strings.Contains(out+errs, want) {
					t.Errorf("no %q in:\n%s%s", want, out, errs)
				}
			}
		})
	}
}

// More than two failed launches of a side leave the lucky ones, as in the verdict; interrupted ones do not.
func TestConfirmedLaunches(t *testing.T) {
	t.Parallel()
	launch := func(number int, change func(*trial.Trial)) *trial.Trial {
		l := ran(number, trial.RoleConfirm, winnerConfig, 2000+float64(number))
		change(l)
		return l
	}
	fine := func(*trial.Trial) {}
	noLevel := func(l *trial.Trial) { l.Value, l.Best = nil, 0 }
	failed := func(l *trial.Trial) {
		l.State, l.Value, l.Verdict = trial.Failed, nil, trial.Verdict{Outcome: trial.Crashed}
	}
	aborted := func(l *trial.Trial) {
		l.State, l.Value, l.Verdict = trial.Failed, nil, trial.Verdict{Outcome: trial.Aborted}
	}
	cancelled := func(l *trial.Trial) { l.State, l.Value = trial.Cancelled, nil }
	void := func(l *trial.Trial) { l.Void = "throttled" }
	for _, tt := range []struct {
		name           string
		changes        []func(*trial.Trial)
		counts, failed int
	}{
		{"all", []func(*trial.Trial){fine, fine, fine}, 3, 0},
		{"no more than were fixed", []func(*trial.Trial){fine, fine, fine, fine}, 3, 0},
		{"failed and without a level", []func(*trial.Trial){failed, fine, noLevel, fine, failed, fine}, 3, 3},
		{"interrupted", []func(*trial.Trial){aborted, cancelled, void, fine}, 1, 0},
	} {
		var own tuner.History
		for i, change := range tt.changes {
			own = append(own, launch(i, change))
		}
		var s side
		s.confirmed(own, &tuner.Record{Confirm: 3})
		if len(s.launches) != tt.counts || s.failed != tt.failed || len(s.out) != tt.failed {
			t.Errorf("%s: %d count, %d failed (%v), want %d, %d", tt.name, len(s.launches), s.failed, s.out, tt.counts, tt.failed)
		}
	}
}

// A trial and a replay of the same server may be compared, with a word of caution.
func TestCompareTrialWithReport(t *testing.T) {
	t.Parallel()
	code, r := compared(t, "night:0", reportFolder(t, nil, 1900, 1901, 1902), "--db", confirmedDB(t))
	if code != 0 || r.N != [2]int{3, 3} || !strings.Contains(strings.Join(r.Warnings, "\n"), "one side is a trial, the other a replay") {
		t.Errorf("exit %d: %s %q", code, r.Text, r.Warnings)
	}
}

// A study's own objective is what its trials are compared by.
func TestCompareByTheObjective(t *testing.T) {
	t.Parallel()
	if code, r := compared(t, "other:0", "other:baseline", "--db", confirmedDB(t)); code != 1 || r.Metric != "requests_s" || *r.Base.Value != 5 || !r.Base.Simulated {
		t.Errorf("exit %d: %s %+v", code, r.Metric, r.Base)
	}
}
