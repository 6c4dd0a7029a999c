package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/sglang"
	"sgtune/store"
	"sgtune/trial"
	"sgtune/tuner"
)

// asked stores a study with seven trials that differ in what lists sort and filter by.
func asked(t testing.TB) *store.DB {
	t.Helper()
	db := open(t)
	if err := db.SaveStudy(t.Context(), &tuner.Record{Name: "night", State: tuner.StudyRunning, CreatedAt: night}); err != nil {
		t.Fatal(err)
	}
	save := func(n int, role trial.Role, state trial.State, outcome trial.Outcome, value float64, void string, c sglang.Config) {
		row := &trial.Trial{Study: "night", Number: n, Role: role, State: state, Config: c, Void: void, CreatedAt: night, StartedAt: night}
		row.Verdict = trial.Verdict{Outcome: outcome, Cause: "prefill_activation"}
		if value > 0 {
			row.Value, row.Best = &value, 120
		}
		if state.Finished() {
			row.EndedAt = night.Add(time.Duration(n) * time.Minute)
		}
		if err := db.SaveTrial(t.Context(), row); err != nil {
			t.Fatal(err)
		}
	}
	save(0, trial.RoleBaseline, trial.Complete, trial.OK, 1842, "", sglang.Config{"mem-fraction-static": 0.85})
	save(1, trial.RoleSearch, trial.Failed, trial.GPUOOM, 0, "", sglang.Config{"mem-fraction-static": 0.93, "hicache-size": 48.0})
	save(2, trial.RoleSearch, trial.Complete, trial.OK, 2104, "", sglang.Config{"mem-fraction-static": 0.88, "hicache-size": 48.0, "enable-mixed-chunk": true})
	save(3, trial.RoleSearch, trial.Complete, trial.OK, 2500, "another process", sglang.Config{"mem-fraction-static": 0.88, "kv-cache-dtype": "bf16"})
	save(4, trial.RoleSearch, trial.Failed, trial.GPUOOM, 0, "", sglang.Config{"mem-fraction-static": 0.915})
	save(5, trial.RoleConfirm, trial.Complete, trial.OK, 2110, "", sglang.Config{"mem-fraction-static": 0.88})
	save(6, trial.RoleSearch, trial.Running, "", 0, "", sglang.Config{"mem-fraction-static": 0.9, "kv-cache-dtype": "fp8_e5m2"})
	if err := db.AddEvent(t.Context(), "night", tuner.Event{At: night, Kind: "reject", Text: "host RAM: too large"}); err != nil {
		t.Fatal(err)
	}
	return db
}

func TestTrialPage(t *testing.T) {
	t.Parallel()
	db := asked(t)
	at := func(v float64) *float64 { return &v }
	fraction := func(low, high *float64) []tuner.KnobFilter {
		return []tuner.KnobFilter{{Knob: "mem-fraction-static", Min: low, Max: high}}
	}
	words := func(knob string, w ...string) []tuner.KnobFilter { return []tuner.KnobFilter{{Knob: knob, Words: w}} }
	tests := []struct {
		name  string
		query tuner.TrialQuery
		want  string
		total int
	}{
		{"all", tuner.TrialQuery{}, "[0 1 2 3 4 5 6]", 7},
		{"newest page", tuner.TrialQuery{Desc: true, Limit: 3}, "[6 5 4]", 7},
		{"next page", tuner.TrialQuery{Desc: true, Limit: 3, Offset: 3}, "[3 2 1]", 7},
		{"past the end", tuner.TrialQuery{Offset: 99}, "[]", 7},
		{"best first, without a value last", tuner.TrialQuery{Sort: "value", Desc: true}, "[3 5 2 0 6 4 1]", 7},
		{"worst first, without a value last", tuner.TrialQuery{Sort: "value"}, "[0 2 5 3 1 4 6]", 7},
		{"by a knob", tuner.TrialQuery{Sort: "knob.hicache-size", Desc: true, Limit: 2}, "[2 1]", 7},
		{"outcome", tuner.TrialQuery{Outcome: trial.GPUOOM}, "[1 4]", 2},
		{"state", tuner.TrialQuery{State: trial.Running}, "[6]", 1},
		{"role", tuner.TrialQuery{Role: trial.RoleConfirm}, "[5]", 1},
		{"void", tuner.TrialQuery{Void: true}, "[3]", 1},
		{"interval", tuner.TrialQuery{Knobs: fraction(at(0.88), at(0.915))}, "[2 3 4 5 6]", 5},
		{"lower bound", tuner.TrialQuery{Knobs: fraction(at(0.92), nil)}, "[1]", 1},
		{"interval of words", tuner.TrialQuery{Knobs: []tuner.KnobFilter{{Knob: "kv-cache-dtype", Min: at(0)}}}, "[]", 0},
		{"words", tuner.TrialQuery{Knobs: words("kv-cache-dtype", "bf16", "fp8_e5m2")}, "[3 6]", 2},
		{"a number as a word", tuner.TrialQuery{Knobs: words("mem-fraction-static", "0.85")}, "[0]", 1},
		{"true", tuner.TrialQuery{Knobs: words("enable-mixed-chunk", "true")}, "[2]", 1},
		{"a knob nobody set", tuner.TrialQuery{Knobs: words(`x"') OR 1=1 --`, "1")}, "[]", 0},
		{"a long name", tuner.TrialQuery{Knobs: words(strings.Repeat("x", 10_000), "1")}, "[]", 0},
	}
	for _, sort := range tuner.TrialSorts {
		tests = append(tests, struct {
			name  string
			query tuner.TrialQuery
			want  string
			total int
		}{"sort " + sort, tuner.TrialQuery{Sort: sort, Role: trial.RoleBaseline}, "[0]", 1})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			page, total, err := db.TrialPage(t.Context(), "night", tt.query)
			if err != nil {
				t.Fatal(err)
			}
			numbers := []int{}
			for _, row := range page {
				numbers = append(numbers, row.Number)
			}
			if got := fmt.Sprint(numbers); got != tt.want || total != tt.total {
				t.Errorf("%s of %d, want %s of %d", got, total, tt.want, tt.total)
			}
		})
	}
	if _, _, err := db.TrialPage(t.Context(), "night", tuner.TrialQuery{Sort: "number; DROP TABLE trials"}); err == nil {
		t.Error("an unknown sort was taken")
	}
	if _, _, err := db.TrialPage(t.Context(), "day", tuner.TrialQuery{}); !errors.Is(err, tuner.ErrNoStudy) {
		t.Errorf("no study: %v", err)
	}
}

func TestOverview(t *testing.T) {
	t.Parallel()
	db := asked(t)
	got, err := db.Overview(t.Context(), "night")
	if err != nil {
		t.Fatal(err)
	}
	baseline, best, lowest := 0, 2, 0.915
	want := &tuner.Overview{
		Total: 7, Finished: 6, Failed: 2, Void: 1, Launches: 6, Refused: 1, RefusedBy: "host RAM: too large", Baseline: &baseline, Best: &best, Running: []int{6},
		Failures: []tuner.FailureGroup{{Outcome: trial.GPUOOM, Cause: "prefill_activation", Count: 2, Newest: 4, Lowest: &lowest}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s, err := db.Summary(t.Context(), "night")
	if err != nil || s.Name != "night" || s.Trials != 7 || s.Finished != 6 || s.Revision == 0 {
		t.Errorf("summary %+v, %v", s, err)
	}
	for name, call := range map[string]func() error{
		"overview": func() error { _, err := db.Overview(t.Context(), "day"); return err },
		"summary":  func() error { _, err := db.Summary(t.Context(), "day"); return err },
	} {
		if err := call(); !errors.Is(err, tuner.ErrNoStudy) {
			t.Errorf("%s of no study: %v", name, err)
		}
	}
}

// TestSortsReadAnIndex holds the sorts by what lies inside of memory_json to their indexes: without them each page of
// 10,000 trials reads them all.
func TestSortsReadAnIndex(t *testing.T) {
	t.Parallel()
	db := raw(t, asked(t).Path())
	for _, sort := range []string{"tokens", "free"} {
		for _, desc := range []bool{false, true} {
			order, _, err := store.OrderBy(tuner.TrialQuery{Sort: sort, Desc: desc})
			if err != nil {
				t.Fatal(err)
			}
			var id, parent, unused int
			var plan string
			if err := db.QueryRowContext(t.Context(), "EXPLAIN QUERY PLAN SELECT number FROM trials WHERE study_id = 1"+order+" LIMIT 50").Scan(&id, &parent, &unused, &plan); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(plan, "INDEX trials_"+sort) {
				t.Errorf("%s, descending %v: %s", sort, desc, plan)
			}
		}
	}
}
