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
