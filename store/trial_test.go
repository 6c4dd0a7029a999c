package store_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/benchmark"
	"sgtune/host"
	"sgtune/sglang"
	"sgtune/store"
	"sgtune/trial"
	"sgtune/tuner"
)

func report(tokS float64) *benchmark.Report {
	r := &benchmark.Report{OutputTokS: tokS, OutputLow: tokS - 10, OutputHigh: tokS + 10, Valid: true, Steady: true, Seconds: 120}
	r.Requests.Sent, r.Requests.OK = 10, 9
	r.Requests.Failed = map[string]int{"http_status": 1}
	r.TTFTms = &benchmark.Distribution{P95: 41.5}
	r.Windows = []benchmark.Window{{Start: night.Add(time.Minute), Seconds: 60, Output: tokS, Steady: true}}
	r.Errors = []string{"status 503"}
	return r
}

func full(number int) *trial.Trial {
	value, gain, over := 2345.6, 0.04, 7
	return &trial.Trial{
		Study: "night", Number: number, Role: trial.RoleSearch, Why: "explore", Sampler: "physics",
		Reason: &trial.Reason{Kind: "search", Value: &value, Gain: &gain, Over: &over, Teaches: "page-size"}, Plan: []int{80, 120},
		Config: sglang.Config{
			"mem-fraction-static": 0.85, "hicache-size": 48.0, "enable-mixed-chunk": true, "kv-cache-dtype": "bf16",
			"cuda-graph-bs-decode": []any{1.0, 2.0, 4.0}, "env.NCCL_ALGO": "Ring",
		},
		State: trial.Complete, Step: trial.StepSave, Value: &value, Best: 120, Void: "", Adopted: true, Adoptions: []trial.Adoption{{At: night.Add(5 * time.Minute), By: "sgtune 1.0 (pid 7)"}}, Release: trial.ReleaseVerified, CanaryShrunk: true, SGLang: "0.5.23", GPUBaseline: []int64{1 << 30, 0},
		Verdict: trial.Verdict{
			Outcome: trial.OK, Phase: sglang.PhaseDecode, Cause: "none", Blames: trial.BlameNo,
			Numbers: map[string]float64{"max_running": 41}, Findings: []trial.Finding{{Name: "monitor_wrong", Text: "/health said no"}},
			Evidence: "[2026-01-01] Decode batch", Line: 812, Advice: []string{"none"}, Text: "It ran.",
		},
		Levels: []trial.Level{
			{Concurrency: 80, Report: report(2000), StartedAt: night, EndedAt: night.Add(time.Minute)},
			{Concurrency: 120, Report: report(value), StartedAt: night.Add(time.Minute), EndedAt: night.Add(2 * time.Minute)},
			{Concurrency: 160},
		},
		Memory:   sglang.Observation{Fraction: 0.85, TP: 8, KVDtype: "torch.bfloat16", BeforeLoadGiB: 94.04, Tokens: 116171},
		LowWater: 5_470_000_000, OwnRAM: -1, MinRAM: 31, Startup: 90 * time.Second, MaxRunning: 41,
		Steps: map[trial.Step]time.Duration{trial.StepLaunch: time.Second, trial.StepMeasure: 2 * time.Minute},
		Cache: trial.Cache{Flushed: true, FillWanted: 7, FillAdmitted: 8, Full: true, FillPasses: 1, Note: "filled"},
		Process: host.ID{
			BootID: "b", PID: 4821, PGID: 4821, StartTicks: 1<<63 + 1, Marker: "night/3", Argv: []string{"python3", "-m", "x"},
		},
		Port: 30000, Marker: "night/3", Dir: "3", Argv: []string{"python3", "-m", "sglang.launch_server"},
		CreatedAt: night, StartedAt: night.Add(time.Second), EndedAt: night.Add(14 * time.Minute),
	}
}

func TestTrialRoundTrip(t *testing.T) {
	t.Parallel()
	db := open(t)
	want := []*trial.Trial{full(0), {Study: "night", Number: 1, Role: trial.RoleConfirm, State: trial.Waiting}, full(3)}
	want[2].State, want[2].Value = trial.Failed, nil
	want[2].StartedAt = want[2].StartedAt.In(time.FixedZone("CET", 3600))
	for _, tr := range want {
		if err := db.SaveTrial(t.Context(), tr); err != nil {
			t.Fatal(err)
		}
	}
	got, err := db.Trials(t.Context(), "night")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("trials changed in the store (-want +got):\n%s", diff)
	}
	if zone := got[2].StartedAt.Location(); zone != time.UTC {
		t.Errorf("time zone %v, want UTC", zone)
	}
	one, err := db.Trial(t.Context(), "night", 3)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want[2], one); diff != "" {
		t.Errorf("Trial (-want +got):\n%s", diff)
	}
	if _, err := db.Trial(t.Context(), "night", 2); !errors.Is(err, tuner.ErrNoTrial) {
		t.Errorf("missing trial: %v", err)
	}
}

func TestTrialRoundTripEveryField(t *testing.T) {
	t.Parallel()
	db := open(t)
	want := &trial.Trial{}
	fill(t, want)
	want.Study, want.Number, want.Role, want.State = "night", 5, trial.RoleSearch, trial.Running
	want.Config = sglang.Config{"mem-fraction-static": 0.5}
	if err := db.SaveTrial(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	got, err := db.Trial(t.Context(), "night", 5)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a field got lost (-want +got):\n%s", diff)
	}
}

func TestGuardedTransitions(t *testing.T) {
	t.Parallel()
	states := []trial.State{trial.Waiting, trial.Running, trial.Complete, trial.Pruned, trial.Failed, trial.Cancelled}
	for _, from := range states {
		for _, to := range states {
			t.Run(string(from)+" to "+string(to), func(t *testing.T) {
				t.Parallel()
				db := open(t)
				tr := &trial.Trial{Study: "night", Role: trial.RoleSearch, State: from, Why: "before"}
				if err := db.SaveTrial(t.Context(), tr); err != nil {
					t.Fatal(err)
				}
				tr.State, tr.Why = to, "after"
				err := db.SaveTrial(t.Context(), tr)
				allowed := from.CanBecome(to) || (from == to && !from.Finished())
				if (err == nil) != allowed {
					t.Fatalf("allowed %v, but: %v", allowed, err)
				}
				if from.Finished() && !errors.Is(err, store.ErrFinished) {
					t.Errorf("a finished row: %v", err)
				}
				got, err := db.Trial(t.Context(), "night", 0)
				if err != nil {
					t.Fatal(err)
				}
				if allowed != (got.Why == "after") || (!allowed && got.State != from) {
					t.Errorf("stored %s %q", got.State, got.Why)
				}
			})
		}
	}
}

func TestFinishedTrialTakesOnlyAVoidMark(t *testing.T) {
	t.Parallel()
	db := open(t)
	tr := full(0)
	if err := db.SaveTrial(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	if err := db.SaveTrial(t.Context(), tr); err != nil {
		t.Errorf("saving the same row again: %v", err)
	}
	tr.Void = "somebody else used the GPUs"
	if err := db.SaveTrial(t.Context(), tr); err != nil {
		t.Errorf("void mark by SaveTrial: %v", err)
	}
	if err := db.VoidTrial(t.Context(), "night", 0, "throttled"); err != nil {
		t.Errorf("void mark by VoidTrial: %v", err)
	}
	changed := *tr
	changed.Levels = changed.Levels[:1]
	if err := db.SaveTrial(t.Context(), &changed); !errors.Is(err, store.ErrFinished) {
		t.Errorf("a level was taken away: %v", err)
	}
	got, err := db.Trial(t.Context(), "night", 0)
	if err != nil {
		t.Fatal(err)
	}
	tr.Void = "throttled"
	if diff := cmp.Diff(tr, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	running := &trial.Trial{Study: "night", Number: 1, Role: trial.RoleSearch, State: trial.Running}
	if err := db.SaveTrial(t.Context(), running); err != nil {
		t.Fatal(err)
	}
	if err := db.VoidTrial(t.Context(), "night", 1, "x"); err == nil {
		t.Error("a running trial was voided")
	}
	if err := db.VoidTrial(t.Context(), "night", 9, "x"); !errors.Is(err, tuner.ErrNoTrial) {
		t.Errorf("void of a missing trial: %v", err)
	}
}

func TestTriggers(t *testing.T) {
	t.Parallel()
	db := open(t)
	if err := db.SaveTrial(t.Context(), full(0)); err != nil {
		t.Fatal(err)
	}
	foreign := raw(t, db.Path())
	rows, err := foreign.QueryContext(t.Context(), "SELECT name FROM pragma_table_info('trials')")
	if err != nil {
		t.Fatal(err)
	}
	var columns []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		columns = append(columns, name)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil || len(columns) < 30 {
		t.Fatalf("%d columns, %v", len(columns), err)
	}
	for _, column := range columns {
		_, err := foreign.ExecContext(t.Context(), "UPDATE trials SET "+column+" = "+column)
		if refused := err != nil && strings.Contains(err.Error(), "a finished trial does not change"); refused != (column != "void") {
			t.Errorf("column %s: %v", column, err)
		}
	}
	for _, statement := range []string{
		"DELETE FROM trials", "DELETE FROM levels", "UPDATE levels SET concurrency = 1",
		"INSERT INTO levels (study_id, number, position, concurrency, report_json) SELECT study_id, number, 9, 1, 'null' FROM trials",
	} {
		if _, err := foreign.ExecContext(t.Context(), statement); err == nil {
			t.Errorf("%s was done", statement)
		}
	}
}

func TestRowAndLevelsAreOneTransaction(t *testing.T) {
	t.Parallel()
	db := open(t)
	tr := full(0)
	tr.State, tr.EndedAt = trial.Running, time.Time{}
	if err := db.SaveTrial(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	// A level that the file refuses must take the whole save with it.
	if _, err := raw(t, db.Path()).ExecContext(t.Context(), `CREATE TRIGGER fault BEFORE INSERT ON levels WHEN NEW.concurrency = 160
		BEGIN SELECT RAISE(ABORT, 'disk broke'); END`); err != nil {
		t.Fatal(err)
	}
	done := *tr
	done.State = trial.Complete
	if err := db.SaveTrial(t.Context(), &done); err == nil {
		t.Fatal("the save went through")
	}
	got, err := db.Trial(t.Context(), "night", 0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tr, got); diff != "" {
		t.Errorf("half a save is in the file (-want +got):\n%s", diff)
	}
}

func TestTwoWritersFinishATrialOnce(t *testing.T) {
	t.Parallel()
	first := open(t)
	second := openAt(t, first.Path())
	tr := &trial.Trial{Study: "night", Role: trial.RoleSearch, State: trial.Running}
	if err := first.SaveTrial(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	results := make([]error, 2)
	var group sync.WaitGroup
	for i, db := range []*store.DB{first, second} {
		group.Go(func() {
			mine := *tr
			mine.State = []trial.State{trial.Complete, trial.Failed}[i]
			results[i] = db.SaveTrial(context.Background(), &mine)
		})
	}
	group.Wait()
	if (results[0] == nil) == (results[1] == nil) {
		t.Errorf("both or none finished the trial: %v", results)
	}
}

func BenchmarkTrials10k(b *testing.B) {
	db := open(b)
	for i := range 10_000 {
		if err := db.SaveTrial(b.Context(), full(i)); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	for b.Loop() {
		trials, err := db.Trials(b.Context(), "night")
		if err != nil || len(trials) != 10_000 {
			b.Fatalf("%d trials, %v", len(trials), err)
		}
	}
}

func BenchmarkSaveTrial(b *testing.B) {
	db := open(b)
	for i := 0; b.Loop(); i++ {
		if err := db.SaveTrial(b.Context(), full(i)); err != nil {
			b.Fatal(err)
		}
	}
}
