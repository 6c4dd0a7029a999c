package store_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/benchmark"
	"sgtune/host"
	"sgtune/sglang"
	"sgtune/store"
	"sgtune/trial"
	"sgtune/tuner"
)

var _ tuner.HistoryReader = (*store.DB)(nil)

// What goes on is whole, since it is saved again; what ended lacks what is named here, and nothing else.
func TestHistoryLeavesOut(t *testing.T) {
	t.Parallel()
	db := open(t)
	for number, state := range []trial.State{trial.Complete, trial.Waiting, trial.Running, trial.Complete, trial.Pruned, trial.Failed, trial.Cancelled} {
		one := &trial.Trial{}
		fill(t, one)
		one.Study, one.Number, one.Role, one.State = "night", number, trial.RoleSearch, state
		one.Config = sglang.Config{"mem-fraction-static": 0.1 + 0.2}
		if number == 0 {
			one.Role = trial.RoleBaseline
		}
		one.Levels[1].Report.OutputTokS = 1.0 / 3
		one.Levels[0].Report = nil
		if err := db.SaveTrial(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
	want, err := db.Trials(t.Context(), "night")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range want {
		if one.State.Finished() {
			shorten(one)
		}
	}
	got, err := db.History(t.Context(), "night")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got, err := db.History(t.Context(), "unknown"); err != nil || got != nil {
		t.Errorf("a study that is not stored: %v, %v", got, err)
	}
}

// shorten leaves out of a trial what no decision needs.
func shorten(one *trial.Trial) {
	one.Argv, one.Process, one.GPUBaseline, one.Cache, one.Reason, one.Adoptions = nil, host.ID{}, nil, trial.Cache{}, nil, nil
	if one.Role != trial.RoleBaseline {
		one.Steps = nil
	}
	v := &one.Verdict
	v.Numbers, v.Findings, v.Evidence, v.Also, v.Advice, v.FailingRanks, v.RejectedFlags = nil, nil, "", nil, nil, nil, nil
	for _, l := range one.Levels {
		if r := l.Report; r != nil {
			r.Buckets, r.Series, r.ITLms, r.Arrivals, r.Client, r.SLO = nil, nil, nil, nil, benchmark.ClientReport{}, nil
			r.Setup, r.Workload, r.Energy, r.Flags, r.Errors, r.Advice = nil, nil, nil, nil, nil, ""
		}
	}
}

// mostOfTrial is what a trial that ended may hold in a tune that runs, with one level of five windows.
const mostOfTrial = 4 << 10

// The loop reads the history at every turn, so this is what a thousand trials cost it in memory. Not parallel: others
// would count.
func TestHistoryIsSmall(t *testing.T) {
	const n = 200
	db := open(t)
	if err := db.SaveTrial(t.Context(), talkative()); err != nil {
		t.Fatal(err)
	}
	foreign := raw(t, db.Path())
	foreign.SetMaxOpenConns(1)                           // the tables below are the connection's own
	for _, table := range []string{"levels", "trials"} { // a trial that ended takes no more levels
		if _, err := foreign.ExecContext(t.Context(), fmt.Sprintf(`CREATE TEMP TABLE more AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
			SELECT n.i, %s.* FROM %s, n; UPDATE more SET number = i; ALTER TABLE more DROP COLUMN i; INSERT INTO %s SELECT * FROM more; DROP TABLE more`, n-1, table, table, table)); err != nil {
			t.Fatal(err)
		}
	}
	whole := held(t, n, func() ([]*trial.Trial, error) { return db.Trials(t.Context(), "night") })
	short := held(t, n, func() ([]*trial.Trial, error) { return db.History(t.Context(), "night") })
	t.Logf("%d bytes a trial, %d whole", short, whole)
	if short > mostOfTrial || whole < 2*short {
		t.Errorf("a trial that ended holds %d bytes, %d whole, want at most %d and less than half", short, whole, mostOfTrial)
	}
}

// held is the memory that each of n trials holds.
func held(t *testing.T, n int, read func() ([]*trial.Trial, error)) int {
	t.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	trials, err := read()
	if err != nil || len(trials) != n || len(trials[n-1].Levels) != 1 {
		t.Fatalf("%d trials, %v", len(trials), err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(trials)
	return (int(after.HeapAlloc) - int(before.HeapAlloc)) / n
}

// talkative is a trial whose texts and tables are as long as those of a real one.
func talkative() *trial.Trial {
	one := full(0)
	one.Adopted, one.Adoptions = false, nil
	for i := range 40 {
		one.Argv = append(one.Argv, fmt.Sprintf("--some-flag-of-the-server-%d", i))
		one.Verdict.Numbers[fmt.Sprintf("a_number_of_the_log_%d", i)] = float64(i)
	}
	one.Process.Argv, one.Verdict.Evidence = one.Argv, strings.Repeat("a line ", 100)
	r := &benchmark.Report{OutputTokS: 1, Valid: true, Windows: make([]benchmark.Window, 5), Series: make([]benchmark.Point, 100), Buckets: make([]benchmark.Bucket, 6)}
	for _, d := range []**benchmark.Distribution{&r.TTFTms, &r.ITLms, &r.TPOTms, &r.E2Ems} {
		*d = &benchmark.Distribution{P50: 1}
	}
	one.Levels = []trial.Level{{Concurrency: 80, Report: r}}
	return one
}
