package tuner_test

import (
	"strings"
	"testing"
	"time"

	"sgtune/tuner"
)

// Every limit of the study file reaches the objective and the study's identity.
func TestStudyFileSLO(t *testing.T) {
	t.Parallel()
	s, err := parse(t, `study: night
server: {model: /models/m}
space: {mem-fraction-static: [0.85, 0.88]}
workload: {file: prompts.jsonl}
slo: {ttft_p95: 30s, tpot_p95: 200ms, e2e_p95: 5m}
`)
	if err != nil {
		t.Fatal(err)
	}
	if want := (tuner.SLO{TTFTP95: 30 * time.Second, TPOTP95: 200 * time.Millisecond, E2EP95: 5 * time.Minute}); s.Objective.SLO != want {
		t.Errorf("slo %+v, want %+v", s.Objective.SLO, want)
	}
	if text := s.Identity()["objective"]; !strings.Contains(text, "e2e_p95: 5m") {
		t.Errorf("identity of the objective: %s", text)
	}
}

// check repeats every limit, and the size of the whole job.
func TestCheckNamesEveryLimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ slo, want string }{
		{"{ttft_p95: 30s, tpot_p95: 200ms, e2e_p95: 5m}", "concurrency where p95 TTFT 30 s and p95 TPOT 200 ms and p95 E2E 5 min hold"},
		{"{e2e_p95: 5m}", "concurrency where p95 E2E 5 min holds"},
	} {
		s, err := parse(t, "server: {model: /models/m}\nspace: {mem-fraction-static: [0.85, 0.88]}\nworkload: {file: prompts.jsonl, total: 88000}\nobjective: concurrency\nslo: "+c.slo+"\n")
		if err != nil {
			t.Fatal(err)
		}
		rows := map[string]string{}
		for _, section := range tuner.Check(s, tuner.CheckInput{Facts: idle, Now: evening}).Understood {
			for _, row := range section.Rows {
				rows[section.Title+"/"+row.Name] = row.Text
			}
		}
		if got := rows["Measuring/objective"]; got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
		if got := rows["Workload/whole job"]; !strings.Contains(got, "88000 requests") {
			t.Errorf("whole job: %q", got)
		}
	}
}
