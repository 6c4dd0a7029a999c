package tuner_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/tuner"
)

// TestDraftIsReadByTheSameCode compares what a page says of a text with what a file's reader says, and shows that
// nothing the text names is looked at.
func TestDraftIsReadByTheSameCode(t *testing.T) {
	t.Parallel()
	const broken = "server: {model: m, flags: {mem-fraction-statc: 0.8}}\nbugdet: {trials: 3}\nspace: {hicache-size: [0]}\nworkload: {file: prompts.jsonl}\n"
	_, asFile := tuner.ParseStudy("s.yaml", []byte(broken), "testdata/study")
	_, asDraft := tuner.ParseDraft("s.yaml", []byte(broken))
	if asFile == nil || asDraft == nil || asFile.Error() != asDraft.Error() {
		t.Errorf("as a file: %v\nas a draft: %v", asFile, asDraft)
	}
	const away = "study: s\nserver: {model: /nowhere/m}\nspace: {hicache-size: [0, 16]}\nworkload: {file: /nowhere/prompts.jsonl}\nfinish: {notify: [{run: [/nowhere/notify.sh]}]}\n"
	if _, err := tuner.ParseStudy("s.yaml", []byte(away), ""); err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("a file's reader looks at both files: %v", err)
	}
	study, err := tuner.ParseDraft("s.yaml", []byte(away))
	if err != nil {
		t.Fatal(err)
	}
	if study.Workload.File != "/nowhere/prompts.jsonl" {
		t.Errorf("workload %q", study.Workload.File)
	}
	var problems tuner.Problems
	if _, err := tuner.ParseDraft("s.yaml", make([]byte, 1<<20)); !errors.As(err, &problems) {
		t.Errorf("1 MB of nothing: %v", err)
	}
}

// TestCheckDraft holds what a file alone tells: its space, what rules exclude, and its plan.
func TestCheckDraft(t *testing.T) {
	t.Parallel()
	const text = `study: s
server: {model: m, flags: {tp-size: 8}, baseline: {mem-fraction-static: 0.85}}
host: {kind: simulated, ram_budget: 400GB, ram: 449GB}
space: {hicache-size: [0, 16, 48, 56], mem-fraction-static: [0.80, 0.85]}
workload: {file: prompts.jsonl}
budget: {trials: 6}
`
	s, err := tuner.ParseDraft("s.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 1, 22, 0, 0, 0, time.UTC)
	r := tuner.CheckDraft(s, tuner.DraftFacts(s), nil, now)
	var rules []string
	for _, e := range r.Space.Excluded {
		rules = append(rules, e.Rule)
	}
	if diff := cmp.Diff([]string{"host RAM"}, rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if r.Space.Configurations != 8 || r.Space.Admitted != 6 || !r.Space.Exact {
		t.Errorf("%+v", r.Space)
	}
	if r.Plan.Trials != 6 || !r.Plan.Ends.After(now) || len(r.Against) > 0 {
		t.Errorf("plan %+v, against %v", r.Plan, r.Against)
	}
	large := strings.Replace(text, "[0.80, 0.85]", "{min: 0.5, max: 0.95, step: 0.0001}", 1)
	if s, err = tuner.ParseDraft("s.yaml", []byte(large+"seed: 3\n")); err != nil {
		t.Fatal(err)
	}
	if n := s.Space.Size(); n < 10_000 {
		t.Fatalf("%d configurations are no large space", n)
	}
	s.Space = append(s.Space, tuner.Dimension{Kind: tuner.Numeric, Name: "max-running-requests", Values: []any{1.0, 2.0, 3.0}})
	if r = tuner.CheckDraft(s, tuner.DraftFacts(s), nil, now); r.Space.Exact {
		t.Errorf("%d configurations were all looked at while somebody waits", r.Space.Configurations)
	}
}
