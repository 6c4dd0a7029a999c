package chart_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/test/webbed"
	"sgtune/trial"
	"sgtune/tuner"
	"sgtune/web/chart"
)

// collect folds trials as a store would show them.
func collect(t testing.TB, night webbed.Night) *chart.Data {
	t.Helper()
	d, err := chart.Collect(night.Record, night.Events, func(visit func(*trial.Trial) error) error {
		for _, one := range night.Trials {
			if err := visit(one); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// small is a night of six trials whose figures are known.
func small() webbed.Night {
	start := time.Date(2026, 1, 1, 22, 0, 0, 0, time.UTC)
	one := func(n int, role trial.Role, value float64, ttft float64, c sglang.Config) *trial.Trial {
		t := &trial.Trial{
			Study: "n", Number: n, Role: role, State: trial.Complete, Config: c, Best: 120, Value: &value,
			Verdict: trial.Verdict{Outcome: trial.OK}, StartedAt: start.Add(time.Duration(n) * time.Hour), EndedAt: start.Add(time.Duration(n)*time.Hour + 20*time.Minute),
			Steps: map[trial.Step]time.Duration{trial.StepWait: 8 * time.Minute, trial.StepMeasure: 12 * time.Minute},
		}
		t.Levels = []trial.Level{{Concurrency: 120, Report: &benchmark.Report{OutputTokS: value, OutputLow: value - 20, OutputHigh: value + 20, TTFTms: &benchmark.Distribution{P95: 1000 * ttft}}}}
		return t
	}
	failed := one(2, trial.RoleSearch, 0, 0, sglang.Config{"mem-fraction-static": 0.93, "hicache-size": 0.0})
	failed.State, failed.Value, failed.Levels = trial.Failed, nil, nil
	failed.Verdict = trial.Verdict{Outcome: trial.GPUOOM, Phase: sglang.PhasePrefill, Cause: "prefill_activation", Blames: trial.BlameYes}
	void := one(4, trial.RoleSearch, 9000, 1, sglang.Config{"mem-fraction-static": 0.86, "hicache-size": 32.0})
	void.Void = "somebody else used the GPUs"
	return webbed.Night{
		Record: &tuner.Record{Name: "n", State: tuner.StudyComplete, Objective: "output_tok_s", BaselineConfig: sglang.Config{"mem-fraction-static": 0.85}},
		Trials: []*trial.Trial{
			one(0, trial.RoleBaseline, 1842, 4.1, sglang.Config{"mem-fraction-static": 0.85}),
			one(1, trial.RoleSearch, 1800, 3.0, sglang.Config{"mem-fraction-static": 0.8, "hicache-size": 0.0}),
			failed,
			one(3, trial.RoleSearch, 2104, 4.4, sglang.Config{"mem-fraction-static": 0.88, "hicache-size": 48.0}),
			void,
			one(5, trial.RoleConfirm, 2200, 4.0, sglang.Config{"mem-fraction-static": 0.88, "hicache-size": 48.0}),
		},
	}
}

func figure(t *testing.T, d *chart.Data, name string) chart.Figure {
	t.Helper()
	f, ok := d.Figure(name, nil, 0)
	if !ok {
		t.Fatalf("there is no chart %q", name)
	}
	return f
}

func TestSentences(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, want string }{
		{"best", "Best rose from 1,842 to 2,104 output tok/s in 5 trials (trial 3, unconfirmed)."},
		{"levels", "Baseline makes 1,842 output tok/s at 120 clients, TTFT p95 4.1 s; trial 3 makes 2,104 output tok/s at 120 clients, TTFT p95 4.4 s."},
		{"tradeoff", "No other trial of 4 is faster than trial 5 (2,200 output tok/s, TTFT p95 4 s); trial 1 waits least: 3 s at 1,800."},
		{"area", "5 of 15 places were tried; GPU memory ran out in 1 trial, from mem-fraction-static 0.93 on; trial 3 is at 0.88 with 48 GB host pool a rank."},
		{"knobs", "The best tenth (1 trial) has mem-fraction-static 0.88, hicache-size 48."},
		{"matter", "The models cannot tell yet what matters."},
	}
	d := collect(t, small())
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := figure(t, d, tt.name).Sentence; got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
	if got := figure(t, d, "night").Sentence; !strings.HasSuffix(got, ": 5 ok, 1 GPU memory.") || !strings.HasPrefix(got, "6 trials from ") {
		t.Errorf("night: %s", got)
	}
	if _, ok := d.Figure("../night", nil, 0); ok {
		t.Error("a chart that is none was drawn")
	}
}

func TestConfirmedIsSaid(t *testing.T) {
	t.Parallel()
	night := small()
	low, high := 0.1, 0.2
	night.Record.Verdict = &tuner.Verdict{Answer: "better", Trial: 3, Low: &low, High: &high, Launches: 5, BaselineValue: 1840}
	d := collect(t, night)
	if got := figure(t, d, "best").Sentence; strings.Contains(got, "unconfirmed") {
		t.Errorf("after better: %s", got)
	}
	if got := figure(t, d, "area").Sentence; !strings.Contains(got, "the confirmed trial 3") {
		t.Errorf("after better: %s", got)
	}
	night.Record.Verdict.Answer = "no difference found"
	if got := figure(t, collect(t, night), "best").Sentence; !strings.Contains(got, "unconfirmed") {
		t.Errorf("without a difference: %s", got)
	}
}

func TestEmptyStudies(t *testing.T) {
	t.Parallel()
	waiting := small()
	waiting.Trials = []*trial.Trial{{Study: "n", State: trial.Waiting, Config: sglang.Config{}}}
	none := small()
	none.Trials = nil
	for name, night := range map[string]webbed.Night{"no trial": none, "one waits": waiting} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := collect(t, night)
			for _, f := range d.Figures(nil) {
				if !f.Empty || f.Sentence == "" || f.Drawing != "" {
					t.Errorf("%s: empty %v, %q, drawing of %d bytes", f.Name, f.Empty, f.Sentence, len(f.Drawing))
				}
			}
			if _, err := json.Marshal(d.Columns(nil)); err != nil {
				t.Error(err)
			}
		})
	}
}

// sent is what a browser reads of the columns.
type sent struct {
	LeftOut int `json:"left_out"`
	Rows    struct {
		Number []int      `json:"number"`
		Class  []int      `json:"class"`
		Value  []*float64 `json:"value"`
		Void   []int      `json:"void"`
	} `json:"rows"`
	Best struct {
		Rows     []int `json:"rows"`
		Baseline *struct {
			Value []*float64 `json:"value"`
		} `json:"baseline"`
	} `json:"best"`
	Tradeoff []int `json:"tradeoff"`
	Knobs    struct {
		Names  []string   `json:"names"`
		Values [][]string `json:"values"`
		Index  [][]int    `json:"index"`
		Best   []int      `json:"best"`
		Rest   []int      `json:"rest"`
	} `json:"knobs"`
}

func send(t *testing.T, d *chart.Data, matter []tuner.Importance) (s sent, size int) {
	t.Helper()
	text, err := json.Marshal(d.Columns(matter))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	return s, len(text)
}

func TestColumns(t *testing.T) {
	t.Parallel()
	s, _ := send(t, collect(t, small()), []tuner.Importance{{Knob: "hicache-size", Effect: 0.1}})
	if d := cmp.Diff([]int{0, 1, 2, 3, 4, 5}, s.Rows.Number); d != "" {
		t.Errorf("numbers: %s", d)
	}
	if s.Rows.Value[2] != nil || *s.Rows.Value[3] != 2104 {
		t.Errorf("values: a failure must be null, trial 3 is 2104: %v", s.Rows.Value)
	}
	if d := cmp.Diff([][]int{{0, 3}, {4}, {5, 1}}, [][]int{s.Best.Rows, s.Rows.Void, s.Tradeoff}); d != "" {
		t.Errorf("best, void, tradeoff: %s", d)
	}
	if d := cmp.Diff([]string{"hicache-size", "mem-fraction-static"}, s.Knobs.Names); d != "" {
		t.Errorf("knobs, the most important first: %s", d)
	}
	if d := cmp.Diff([]string{"0", "32", "48"}, s.Knobs.Values[0]); d != "" {
		t.Errorf("values of hicache-size: %s", d)
	}
	if d := cmp.Diff([][]int{{2, -1, 0}, {3, 1, 0}}, [][]int{s.Knobs.Index[0], s.Knobs.Index[1]}); d != "" {
		t.Errorf("indexes of trial 3, 0 and 1: %s", d)
	}
	if v := *s.Best.Baseline.Value[0]; v != 1842 {
		t.Errorf("baseline %v", v)
	}
}

// TestTableSaysWhatTheChartShows compares both with each other, value by value.
func TestTableSaysWhatTheChartShows(t *testing.T) {
	t.Parallel()
	d := collect(t, webbed.Make("n", 60, 3))
	s, _ := send(t, d, nil)
	table := figure(t, d, "best").Table
	if len(table.Rows) != len(s.Rows.Number) || s.LeftOut != 0 {
		t.Fatalf("%d rows in the table, %d drawn, %d left out", len(table.Rows), len(s.Rows.Number), s.LeftOut)
	}
	for i, row := range table.Rows {
		want := "–"
		if v := s.Rows.Value[i]; v != nil {
			want = chart.Number(*v)
		}
		if row[0].Trial != s.Rows.Number[i] || row[1].Class != s.Rows.Class[i] || row[2].Text != want {
			t.Errorf("row %d: table %v, chart trial %d class %d value %s", i, row, s.Rows.Number[i], s.Rows.Class[i], want)
		}
	}
}

func TestManyTrials(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("10,000 trials take a second or two")
	}
	night := webbed.Make("n", 10_000, 7)
	d := collect(t, night)
	s, size := send(t, d, nil)
	failed, best := 0, math.Inf(-1)
	steps := []int{}
	for _, one := range night.Trials {
		if one.State == trial.Failed {
			failed++
		}
		if one.Value != nil && one.State == trial.Complete && one.Role != trial.RoleConfirm && *one.Value > best {
			best = *one.Value
			steps = append(steps, one.Number)
		}
	}
	drawn, shownSteps := 0, []int{}
	for _, c := range s.Rows.Class {
		switch chart.Classes[c].Key {
		case "ok", "degraded", "pruned", "running", "waiting", "unmeasured":
		default:
			drawn++
		}
	}
	for _, i := range s.Best.Rows {
		shownSteps = append(shownSteps, s.Rows.Number[i])
	}
	if drawn != failed {
		t.Errorf("%d failures drawn of %d", drawn, failed)
	}
	if d := cmp.Diff(steps, shownSteps); d != "" {
		t.Errorf("steps of the best so far: %s", d)
	}
	if got := len(s.Rows.Number) + s.LeftOut; got != len(night.Trials) || s.LeftOut == 0 {
		t.Errorf("%d sent and %d left out of %d", len(s.Rows.Number), s.LeftOut, len(night.Trials))
	}
	if note := figure(t, d, "best").Note; !strings.Contains(note, chart.Number(float64(s.LeftOut))+" trials left out") {
		t.Errorf("what was left out is not said: %s", note)
	}
	if size > 500_000 {
		t.Errorf("%d bytes of JSON", size)
	}
}
