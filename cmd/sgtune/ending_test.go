package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

func TestHead(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		edit   func(*tuner.Study)
		stored int
		want   string
	}{
		{"real", func(*tuner.Study) {}, 0, "study night on host here: 3 configurations, 40, 80 clients; 19 launches for the search; then the confirmation\n"},
		{"resumed", func(s *tuner.Study) {
			s.Budget, s.Confirm = tuner.Budget{Wall: 9 * time.Hour, Until: "07:00"}, 4
			s.Workload.Concurrency, s.Notes = []int{1}, []string{"hicache is off"}
		}, 1, "study night on host here: 3 configurations, 1 client; 9 h in all, done by 07:00; then 4 + 4 to confirm\n" +
			"it is continued: 1 trial stored in night.db\nnote: hicache is off\n"},
		{"simulated host", func(s *tuner.Study) {
			s.Simulated, s.Budget = true, tuner.Budget{}
			s.Host = tuner.HostSpec{Kind: tuner.HostSimulated, Startup: 90 * time.Second, TimeScale: 150}
		}, 0, "study night on host here: 3 configurations, 40, 80 clients; no limit but the space itself; then the confirmation\n" +
			"SIMULATED: no GPU is used; a start-up takes 1 min 30 s of simulated time (a real one of this model 3 to 15 minutes), time runs 150 times faster\n"},
		{"simulated server", func(s *tuner.Study) { s.Simulated = true }, 0, "study night on host here: 3 configurations, 40, 80 clients; 19 launches for the search; then the confirmation\n" +
			"SIMULATED: the server is sim-server, no GPU is used\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			term, out := screen(t, false, false, 80)
			term.study.Space = tuner.Space{{Name: "mem-fraction-static", Values: []any{0.8, 0.85, 0.9}}}
			tt.edit(term.study)
			term.Head("here", tt.stored)
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	record := tuner.Record{
		Name: "night", State: tuner.StudyComplete, BaselineConfig: today.Config, Releases: "clean: verified after the last trial", AfterDone: "after: ok: systemctl start sglang",
		StartedAt: evening, EndedAt: evening.Add(8*time.Hour + 5*time.Minute),
	}
	tail := "machine: clean: verified after the last trial\nafter: ok: systemctl start sglang\ntook 8h05m\nall trials: sgtune show night --db 'my night.db'\n"
	for _, tt := range []struct {
		name string
		v    tuner.Verdict
		want string
	}{
		{"better", tuner.Verdict{Answer: benchmark.AnswerBetter, Trial: 1, Config: winner.Config, Text: "better: trial 1", Why: "it is the farthest from the line"}, "\nCHANGE  better: trial 1\n" +
			"  kv-cache-dtype               not set -> bf16\n  mem-fraction-static          0.85 -> 0.88\nwhy this one: it is the farthest from the line\n" + tail +
			"its profile: sgtune export night --db 'my night.db' --format sh > launch.sh\n"},
		{"no difference", tuner.Verdict{Answer: benchmark.AnswerNoDifference, Trial: 1, Config: winner.Config, Text: "no difference found"}, "\nKEEP  no difference found\n  tried: mem-fraction-static 0.88\n" + tail},
		{"not confirmed", tuner.Verdict{Answer: benchmark.AnswerNotConfirmed, Trial: 1, Gain: 0.2, Config: winner.Config, Text: "not confirmed"}, "\nNO VERDICT  not confirmed\n  tried: mem-fraction-static 0.88\n" + tail +
			"unconfirmed profile: sgtune export night --db 'my night.db' --trial 1 --format sh > launch.sh\n"},
		{"nothing ran", tuner.Verdict{Answer: benchmark.AnswerNotConfirmed, Config: today.Config, Text: "not confirmed: the baseline never ran"}, "\nNO VERDICT  not confirmed: the baseline never ran\n" + tail},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			term, out := screen(t, false, false, 80)
			term.db = "my night.db"
			r := record
			r.Verdict = &tt.v
			term.Verdict(&tt.v, &r)
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSettled(t *testing.T) {
	t.Parallel()
	s := &tuner.Study{Baseline: sglang.Config{"mem-fraction-static": 0.85}}
	candidate := sglang.Config{"mem-fraction-static": 0.9}
	launch := func(c sglang.Config, void string) *trial.Trial {
		return &trial.Trial{Role: trial.RoleConfirm, State: trial.Complete, Value: value(1), Config: c, Void: void}
	}
	for _, tt := range []struct {
		name   string
		state  tuner.StudyState
		answer string
		trials []*trial.Trial
		want   bool
	}{
		{"running", tuner.StudyRunning, "", nil, false},
		{"stopped", tuner.StudyStopped, benchmark.AnswerBetter, nil, false},
		{"answered", tuner.StudyComplete, benchmark.AnswerWorse, nil, true},
		{"one side is missing", tuner.StudyComplete, benchmark.AnswerNotConfirmed, []*trial.Trial{launch(candidate, "")}, false},
		{"one is void", tuner.StudyComplete, benchmark.AnswerNotConfirmed, []*trial.Trial{launch(candidate, ""), launch(s.Baseline, "hot")}, false},
		{"as many as asked for", tuner.StudyComplete, benchmark.AnswerNotConfirmed, []*trial.Trial{launch(candidate, ""), launch(s.Baseline, "")}, true},
	} {
		r := &tuner.Record{State: tt.state, Candidate: candidate, Confirm: 1}
		if tt.answer != "" {
			r.Verdict = &tuner.Verdict{Answer: tt.answer}
		}
		if got := settled(s, r, tt.trials); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
