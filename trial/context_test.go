package trial_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/trial"
)

func TestParseContext(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text, wrong string
	}{
		{"nothing", `{}`, ""},
		{"nulls are unknown", `{"alive": null, "exit_code": null, "probes": null, "flags": null, "quality": null, "nvml_used_gb_before": null}`, ""},
		{"a whole expect file", `{"schema": 1, "outcome": "ok", "context": {"alive": true}}`, ""},
		{"unknown keys", `{"weather": "rain", "alive": true}`, ""},
		{"probes of each kind", `{"probes": [{"path": "/health", "status": 200}, {"status": "503"}, {"status": "refused"}, {"status": "timeout", "count": 3}, {"status": null}]}`, ""},
		{"one figure for one GPU", `{"nvml_used_gb_before": 0.5}`, ""},
		{"no object", `[1]`, "not a JSON object"},
		{"not JSON", `{"alive": tru`, "not a JSON object"},
		{"a word for a number", `{"elapsed_s": "long"}`, `key "elapsed_s": want a number, got "long"`},
		{"a number for a truth", `{"alive": 1}`, `key "alive": want true or false, got 1`},
		{"probes that are no list", `{"probes": {"path": "/health"}}`, `key "probes": want a list`},
		{"a status of another type", `{"probes": [{"status": [1]}]}`, `key "probes"`},
		{"flags that are a list", `{"flags": ["--tp-size"]}`, `key "flags": want an object`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := trial.ParseContext([]byte(c.text))
			if (err != nil) != (c.wrong != "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("error %v, want %q", err, c.wrong)
			}
		})
	}
}

// TestContextAndBack: what was read can be written and read again without loss.
func TestContextAndBack(t *testing.T) {
	t.Parallel()
	for _, path := range fixtures(t) {
		_, want := loadFixture(t, path)
		first, err := trial.ParseContext(want.Context)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		text, err := json.Marshal(first)
		if err != nil {
			t.Fatal(err)
		}
		again, err := trial.ParseContext(text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, again); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

// TestVerdictJSON: the keys are those of an expect file, and none is ever null.
func TestVerdictJSON(t *testing.T) {
	t.Parallel()
	text, err := trial.Verdict{Outcome: trial.Unknown, Numbers: map[string]float64{"port": 1}, FailingRanks: []int{3}, RejectedFlags: []string{"--x"}}.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"schema": 1.0, "outcome": "unknown", "phase": "", "cause": "", "blames_config": "", "findings": []any{}, "evidence_line": 0.0,
		"evidence_also": []any{}, "advice": []any{}, "advice_text": "",
		"numbers": map[string]any{"port": 1.0, "failing_ranks": []any{3.0}, "rejected_flags": []any{"--x"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
