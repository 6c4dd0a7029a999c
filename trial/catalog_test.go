package trial_test

import (
	"slices"
	"strings"
	"testing"

	"sgtune/trial"
)

// TestCatalogIsComplete holds the table against the closed lists, both ways.
func TestCatalogIsComplete(t *testing.T) {
	t.Parallel()
	var want, got []string
	for _, o := range trial.Outcomes {
		if trial.OutcomeMeaning(o) == "" {
			t.Errorf("outcome %s has no sentence", o)
		}
		for _, c := range trial.Causes[o] {
			want = append(want, string(o)+" "+c)
		}
	}
	for _, e := range trial.Catalog() {
		name := string(e.Outcome) + " " + e.Cause
		got = append(got, name)
		if e.Meaning == "" || e.Blames == "" || e.Remedy == "" && e.Outcome != trial.OK {
			t.Errorf("%s: meaning, remedy or blame is missing", name)
		}
		if (e.Example.Log == "") == (e.Example.Live == "") {
			t.Errorf("%s: wanted either a log or who finds it without one", name)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("entries\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, code := range trial.AdviceCodes {
		if text := trial.AdviceText(code); text == code || !strings.HasSuffix(text, ".") {
			t.Errorf("advice %s has no sentence: %q", code, text)
		}
	}
}

// TestCatalogExamples reads each example as a log and wants its own entry back.
func TestCatalogExamples(t *testing.T) {
	t.Parallel()
	for _, e := range trial.Catalog() {
		if e.Example.Log == "" {
			continue
		}
		t.Run(string(e.Outcome)+"/"+e.Cause, func(t *testing.T) {
			t.Parallel()
			v := diagnoseExample(t, e.Example)
			if v.Outcome != e.Outcome || v.Cause != e.Cause {
				t.Fatalf("verdict %s / %s / %s: %s", v.Outcome, v.Phase, v.Cause, v.Text)
			}
			if v.Blames != e.Blames {
				t.Errorf("blames %s, the catalog says %s", v.Blames, e.Blames)
			}
			if v.Line == 0 && e.Outcome != trial.Unknown || v.Line > strings.Count(e.Example.Log, "\n") {
				t.Errorf("evidence line %d", v.Line)
			}
			for _, code := range v.Advice {
				if !slices.Contains(trial.AdviceCodes, code) {
					t.Errorf("advice %s is not in the closed list", code)
				}
			}
		})
	}
}

func diagnoseExample(t *testing.T, e trial.Example) trial.Verdict {
	t.Helper()
	v, err := diagnose([]byte(e.Log), []byte(e.Context))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestExplainKnowsEveryVerdict: where only the outcome is known, it is explained alone.
func TestExplainKnowsEveryVerdict(t *testing.T) {
	t.Parallel()
	for _, o := range trial.Outcomes {
		if e := trial.Explain(o, "unknown"); e.Meaning == "" || e.Outcome != o {
			t.Errorf("%s without a cause is not explained: %+v", o, e)
		}
	}
}
