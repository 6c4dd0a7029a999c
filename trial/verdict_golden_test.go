package trial_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sgtune/sglang"
	"sgtune/trial"
)

// expect is the file beside a fixture log; see testdata/verdict/README.md.
type expect struct {
	Context  json.RawMessage `json:"context"`
	Outcome  trial.Outcome   `json:"outcome"`
	Phase    sglang.Phase    `json:"phase"`
	Cause    string          `json:"cause"`
	Blames   trial.Blame     `json:"blames_config"`
	Numbers  map[string]any  `json:"numbers"`
	Findings []string        `json:"findings"`
	Line     int             `json:"evidence_line"`
	Also     []int           `json:"evidence_also"`
	Advice   []string        `json:"advice"`
}

// fixtures are the logs of both folders: the vocabulary's own examples, and a corpus written beside them
// by somebody who had not seen the rules.
func fixtures(t testing.TB) []string {
	t.Helper()
	var all []string
	for folder, least := range map[string]int{"verdict": 18, "unseen": 1} {
		logs, err := filepath.Glob(filepath.Join("testdata", folder, "*.log"))
		if err != nil || len(logs) < least {
			t.Fatalf("testdata/%s: %d logs, want at least %d: %v", folder, len(logs), least, err)
		}
		all = append(all, logs...)
	}
	slices.Sort(all)
	return all
}

func loadFixture(t testing.TB, path string) (log []byte, want expect) {
	t.Helper()
	log, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(strings.TrimSuffix(path, ".log") + ".expect.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return log, want
}

// diagnose gives a classifier what it gets: the log's bytes and the context, nothing else.
func diagnose(log, context []byte) (trial.Verdict, error) {
	c := trial.Context{}
	if len(context) > 0 {
		var err error
		if c, err = trial.ParseContext(context); err != nil {
			return trial.Verdict{}, err
		}
	}
	reader := sglang.NewReader()
	_, _ = reader.Write(log)
	reader.Close()
	facts := reader.Facts()
	return trial.Diagnose(facts, facts.First, facts.Last, c), nil
}

func TestClassifyFixtures(t *testing.T) {
	t.Parallel()
	for _, path := range fixtures(t) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".log"), func(t *testing.T) {
			t.Parallel()
			log, want := loadFixture(t, path)
			got, err := diagnose(log, want.Context)
			if err != nil {
				t.Fatal(err)
			}
			checkVerdict(t, got, &want)
			if filepath.Base(filepath.Dir(path)) == "verdict" && !slices.Equal(got.Advice, want.Advice) {
				t.Errorf("advice %v, want %v", got.Advice, want.Advice)
			}
		})
	}
}

// logRemarks are findings about the form of the log, not about the trial.
var logRemarks = []string{"ansi_colours", "container_prefix", "long_line"}

func checkVerdict(t *testing.T, got trial.Verdict, want *expect) {
	t.Helper()
	if got.Outcome != want.Outcome || got.Phase != want.Phase || got.Cause != want.Cause || got.Blames != want.Blames {
		t.Errorf("verdict %s / %s / %s, blames %s; want %s / %s / %s, blames %s\n%s",
			got.Outcome, got.Phase, got.Cause, got.Blames, want.Outcome, want.Phase, want.Cause, want.Blames, got.Text)
	}
	if got.Line != want.Line && !slices.Contains(want.Also, got.Line) {
		t.Errorf("evidence line %d (%s), want %d", got.Line, got.Evidence, want.Line)
	}
	if len(want.Advice) > 0 && (len(got.Advice) == 0 || got.Advice[0] != want.Advice[0]) {
		t.Errorf("first advice of %v, want that of %v", got.Advice, want.Advice)
	}
	numbers := got.AllNumbers()
	for name, v := range want.Numbers {
		have, there := numbers[name]
		if number, ok := v.(float64); ok {
			n, _ := have.(float64)
			if !there || math.Abs(n-number) > 0.005*math.Max(1, math.Abs(number)) {
				t.Errorf("number %s = %v (there: %t), want %v", name, have, there, number)
			}
			continue
		}
		if fmt.Sprint(have) != fmt.Sprint(v) {
			t.Errorf("number %s = %v, want %v", name, have, v)
		}
	}
	for _, name := range want.Findings {
		if !slices.Contains(logRemarks, name) && !slices.ContainsFunc(got.Findings, func(f trial.Finding) bool { return f.Name == name }) {
			t.Errorf("finding %s is missing from %v", name, got.Findings)
		}
	}
	if got.Text == "" {
		t.Error("no sentence for a person")
	}
}
