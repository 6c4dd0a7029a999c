package web_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/benchmark"
	"sgtune/tuner"
	"sgtune/web"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestAnswers holds the words of the five answers, which terminal, page and report share.
func TestAnswers(t *testing.T) {
	t.Parallel()
	verdict := func(answer string, gain, low, high float64) *tuner.Verdict {
		return &tuner.Verdict{Answer: answer, Gain: gain, Low: &low, High: &high, Trial: 17, BaselineValue: 1842, Value: 2104, Level: 120, Launches: 5, Looked: 0.03}
	}
	ended := time.Date(2026, 1, 1, 23, 40, 0, 0, time.Local)
	dirty := "dirty: the host is not clean: GPU 3 still holds 71.2 GB (pid 48213, python3); free it (sgtune reclaim), then run sgtune tune again"
	tests := []struct {
		name   string
		record tuner.Record
		want   string
	}{
		{
			"change",
			tuner.Record{State: tuner.StudyComplete, Verdict: verdict(benchmark.AnswerBetter, 0.142, 0.116, 0.169)},
			"CHANGE  better by 14.2%\nOutput 1,842 → 2,104 tok/s. 95% interval +11.6% to +16.9%, 5 launches each.\nTrial 17, measured at 120 clients.",
		},
		{
			"keep",
			tuner.Record{State: tuner.StudyComplete, Verdict: verdict(benchmark.AnswerNoDifference, 0.008, -0.011, 0.026)},
			"KEEP  no difference found\nBest candidate #17: +0.8%, interval −1.1% to +2.6%. That includes zero, so it is not proven faster.\nTrial 17, measured at 120 clients, 5 launches each.",
		},
		{
			"worse",
			tuner.Record{State: tuner.StudyComplete, Verdict: verdict(benchmark.AnswerWorse, -0.024, -0.039, -0.010)},
			"KEEP  the best candidate is worse\n#17 looked +3% in the search and is −2.4% (−3.9% to −1.0%) when repeated.\nTrial 17, measured at 120 clients, 5 launches each.",
		},
		{
			"no verdict",
			tuner.Record{State: tuner.StudyComplete, Confirm: 5, Verdict: &tuner.Verdict{
				Answer: benchmark.AnswerNotConfirmed, Trial: 17, Launches: 1, Text: "not confirmed: trial 17 makes 2,104, but only 1 launch of each side; an answer needs 3",
			}},
			"NO VERDICT  the night ended before the confirmation\nTrial 17 makes 2,104, but only 1 launch of each side; an answer needs 3.\nsgtune tune with the same study file continues it.",
		},
		{
			"stopped",
			tuner.Record{State: tuner.StudyStopped, Host: "gpu-box", Releases: dirty, EndedAt: ended},
			"STOPPED  gpu-box is not clean\nGPU 3 still holds 71.2 GB (pid 48213, python3).\nNothing was launched after 23:40.\nRun sgtune reclaim.",
		},
		{
			"not clean with a verdict",
			tuner.Record{State: tuner.StudyComplete, Host: "gpu-box", Releases: dirty, Verdict: verdict(benchmark.AnswerBetter, 0.142, 0.116, 0.169)},
			"STOPPED  gpu-box is not clean\nGPU 3 still holds 71.2 GB (pid 48213, python3).\nRun sgtune reclaim.\n" +
				"CHANGE  better by 14.2%\nOutput 1,842 → 2,104 tok/s. 95% interval +11.6% to +16.9%, 5 launches each.\nTrial 17, measured at 120 clients.",
		},
		{"running", tuner.Record{State: tuner.StudyRunning}, "RUNNING  no verdict yet"},
		{"running again", tuner.Record{State: tuner.StudyRunning, Releases: dirty}, "RUNNING  no verdict yet"},
		{"ended early", tuner.Record{State: tuner.StudyComplete}, "NO VERDICT  the night ended before the confirmation\nsgtune tune with the same study file continues it."},
		{"breaker", tuner.Record{State: tuner.StudyStopped, Reason: "stopped: no token came; repair that"}, "STOPPED  no token came\nRepair that.\nsgtune tune with the same study file continues it."},
		{"not compared", tuner.Record{State: tuner.StudyComplete, Verdict: &tuner.Verdict{Answer: benchmark.AnswerNotConfirmed, Text: "not confirmed: the baseline never ran"}}, "NO VERDICT  not confirmed: the baseline never ran"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var lines []string
			for _, a := range web.Answers(&tt.record) {
				lines = append(append(lines, a.Act+"  "+a.Text), a.Lines...)
			}
			if diff := cmp.Diff(tt.want, strings.Join(lines, "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if act, text := web.Headline(&tt.record); !strings.HasPrefix(tt.want, act+"  ") || text == "" {
				t.Errorf("headline %s, %s", act, text)
			}
		})
	}
}

// TestVerdictBoxes holds the verdict's box of each state as a page has it.
func TestVerdictBoxes(t *testing.T) {
	t.Parallel()
	boxes := []string{"better", "keep", "worse", "unconfirmed", "dirty", "dirty-better"}
	h := newFixture(t, boxes...).handler()
	for _, state := range boxes {
		_, box, _ := strings.Cut(get(t, h, "/studies/"+state).Body.String(), `<p class="subtitle"`)
		_, box, _ = strings.Cut(box, "</p>\n")
		box, _, _ = strings.Cut(box, `<section class="failures"`)
		ended := night.Add(8*time.Hour + 31*time.Minute).Local().Format("15:04") // wherever the test runs
		got := strings.ReplaceAll(bare(box), "after "+ended, "after HH:MM")
		path := filepath.Join("testdata", "box", state+".txt")
		if *update {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", state, diff)
		}
	}
}
