package store_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/benchmark"
	"sgtune/store"
	"sgtune/trial"
	"sgtune/tuner"
)

func TestWalkTrials(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "sgtune.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := db.SaveStudy(t.Context(), &tuner.Record{Name: "walked", State: tuner.StudyRunning}); err != nil {
		t.Fatal(err)
	}
	for n := range 4 {
		one := &trial.Trial{Study: "walked", Number: n, Role: trial.RoleSearch, State: trial.Running}
		for c := range n { // none, one, two, three levels
			r := &benchmark.Report{OutputTokS: float64(100*n + c), OutputLow: 90, OutputHigh: 400, Arrivals: &benchmark.ArrivalReport{}, TPOTms: &benchmark.Distribution{P95: 9}, TTFTms: &benchmark.Distribution{P95: 7}, Series: make([]benchmark.Point, 600), Windows: []benchmark.Window{{Seconds: 1}}}
			one.Levels = append(one.Levels, trial.Level{Concurrency: 10 * (c + 1), Report: r})
		}
		if n == 2 {
			one.Levels[1].Report = nil
		}
		if err := db.SaveTrial(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
	want, err := db.Trials(t.Context(), "walked")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range want {
		for _, l := range one.Levels {
			if l.Report != nil {
				*l.Report = benchmark.Report{OutputTokS: l.Report.OutputTokS, OutputLow: l.Report.OutputLow, OutputHigh: l.Report.OutputHigh, TTFTms: l.Report.TTFTms}
			}
		}
	}
	var got []*trial.Trial
	keep := func(one *trial.Trial) error { got = append(got, one); return nil }
	if err := db.WalkTrials(t.Context(), "walked", keep); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("as Trials, with the first figures of each report: %s", d)
	}
	stop := errors.New("enough")
	if err := db.WalkTrials(t.Context(), "walked", func(*trial.Trial) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("the visitor's error: %v", err)
	}
	if err := db.WalkTrials(t.Context(), "unknown", keep); err != nil || len(got) != 4 {
		t.Errorf("a study that is not stored: %v, %d trials", err, len(got))
	}
}
