package store_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sgtune/benchmark"
	"sgtune/host"
	"sgtune/sglang"
	"sgtune/store"
	"sgtune/trial"
	"sgtune/tuner"
)

var night = time.Date(2026, 1, 1, 22, 0, 0, 123456789, time.UTC)

// open opens a new database with one study in it.
func open(t testing.TB) *store.DB {
	t.Helper()
	db := openAt(t, filepath.Join(t.TempDir(), "sgtune.db"))
	if err := db.SaveStudy(t.Context(), &tuner.Record{Name: "night", State: tuner.StudyRunning, CreatedAt: night}); err != nil {
		t.Fatal(err)
	}
	return db
}

func openAt(t testing.TB, path string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// raw opens a second connection that knows nothing of our rules.
func raw(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func report(tokS float64) *benchmark.Report {
	r := &benchmark.Report{OutputTokS: tokS, OutputLow: tokS - 10, OutputHigh: tokS + 10, Valid: true, Steady: true, Seconds: 120}
	r.Requests.Sent, r.Requests.OK = 10, 9
	r.Requests.Failed = map[string]int{"http_status": 1}
	r.TTFTms = &benchmark.Distribution{P95: 41.5}
	r.Windows = []benchmark.Window{{Start: night.Add(time.Minute), Seconds: 60, Output: tokS, Steady: true}}
	r.Errors = []string{"status 503"}
	return r
}

// full is a finished trial with every field set.
func full(number int) *trial.Trial {
	value := 2345.6
	return &trial.Trial{
		Study: "night", Number: number, Role: trial.RoleSearch, Why: "explore", Sampler: "sobol", Plan: []int{80, 120},
		Config: sglang.Config{
			"mem-fraction-static": 0.85, "hicache-size": 48.0, "enable-mixed-chunk": true, "kv-cache-dtype": "bf16",
			"cuda-graph-bs-decode": []any{1.0, 2.0, 4.0}, "env.NCCL_ALGO": "Ring",
		},
		State: trial.Complete, Step: trial.StepSave, Value: &value, Best: 120, Void: "", Adopted: true, Release: trial.ReleaseVerified, CanaryShrunk: true, GPUBaseline: []int64{1 << 30, 0},
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

// TestTrialRoundTripEveryField fails when somebody adds a field to trial.Trial that the store loses.
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

func TestStudyRoundTrip(t *testing.T) {
	t.Parallel()
	db := open(t)
	var want tuner.Record
	fill(t, &want)
	want.Name, want.State = "a_b-c.1", tuner.StudyComplete
	config := sglang.Config{"hicache-size": 48.0}
	want.Candidate, want.BaselineConfig, want.Verdict.Config, want.Server.Flags = config, config, config, config
	want.Server.Env = map[string]string{"HF_TOKEN": "${HF_TOKEN}", "NCCL_IB_DISABLE": "1"}
	for range 2 { // insert, then update
		if err := db.SaveStudy(t.Context(), &want); err != nil {
			t.Fatal(err)
		}
	}
	got, err := db.Study(t.Context(), want.Name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Errorf("study changed in the store (-want +got):\n%s", diff)
	}
	all, err := db.Studies(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].Name != want.Name {
		t.Errorf("studies %+v, want the newest first", all)
	}
	for _, bad := range []string{"", "a b", "ü", "a/b", strings.Repeat("x", 129)} {
		if err := db.SaveStudy(t.Context(), &tuner.Record{Name: bad, State: tuner.StudyRunning}); err == nil {
			t.Errorf("name %q was taken", bad)
		}
	}
	if _, err := db.Study(t.Context(), "nobody"); !errors.Is(err, tuner.ErrNoStudy) {
		t.Errorf("unknown study: %v", err)
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

// TestTriggers goes around the package: the file itself refuses.
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

func TestEvents(t *testing.T) {
	t.Parallel()
	db := open(t)
	number := 4
	want := []tuner.Event{
		{At: night, Kind: "admit", Text: "a", Config: sglang.Config{"hicache-size": 56.0}, Trial: &number},
		{At: night.Add(time.Second), Kind: "step", Text: "b"},
		{At: night.Add(2 * time.Second), Kind: "finding", Text: "c"},
	}
	for _, e := range want {
		if err := db.AddEvent(t.Context(), "night", e); err != nil {
			t.Fatal(err)
		}
	}
	var got []tuner.Event
	var after int64
	for {
		page, last, err := db.Events(t.Context(), "night", after, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			if last != after {
				t.Errorf("last %d after an empty page, want %d", last, after)
			}
			break
		}
		got, after = append(got, page...), last
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	newest, last, err := db.Events(t.Context(), "night", -2, 10)
	if err != nil || last != after {
		t.Fatalf("last %d, %v", last, err)
	}
	if diff := cmp.Diff(want[1:], newest); diff != "" {
		t.Errorf("newest two (-want +got):\n%s", diff)
	}
	if err := db.AddEvent(t.Context(), "nobody", want[0]); !errors.Is(err, tuner.ErrNoStudy) {
		t.Errorf("event of an unknown study: %v", err)
	}
}

// TestCommandsAreTakenOnce lets two handles on one file, as two processes have, fight over commands.
func TestCommandsAreTakenOnce(t *testing.T) {
	t.Parallel()
	first := open(t)
	handles := []*store.DB{first, openAt(t, first.Path())}
	const count = 20
	for i := range count {
		c := tuner.Command{Kind: "enqueue", Trial: i, Config: sglang.Config{"hicache-size": float64(i)}, Text: "please", At: night}
		if _, err := handles[i%2].AddCommand(t.Context(), "night", c); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	taken := map[int64]int{}
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			last := int64(0)
			for {
				c, err := handles[worker%2].TakeCommand(context.Background(), "night")
				if err != nil {
					t.Error(err)
					return
				}
				if c == nil {
					return
				}
				if c.ID <= last || c.Config["hicache-size"] != float64(c.Trial) || !c.At.Equal(night) {
					t.Errorf("command %+v after %d", c, last)
				}
				last = c.ID
				mu.Lock()
				taken[c.ID]++
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if len(taken) != count {
		t.Errorf("%d commands taken, want %d", len(taken), count)
	}
	for id, n := range taken {
		if n != 1 {
			t.Errorf("command %d was taken %d times", id, n)
		}
	}
	if _, err := first.AddCommand(t.Context(), "night", tuner.Command{Kind: "dance"}); err == nil {
		t.Error("an unknown command was stored")
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

func TestRetire(t *testing.T) {
	t.Parallel()
	db := open(t)
	if err := db.SaveTrial(t.Context(), full(0)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"night.old-1", "night.old-2"} {
		got, err := db.Retire(t.Context(), "night")
		if err != nil || got != want {
			t.Fatalf("got %q, %v, want %q", got, err, want)
		}
		if err := db.SaveStudy(t.Context(), &tuner.Record{Name: "night", State: tuner.StudyRunning}); err != nil {
			t.Fatal(err)
		}
	}
	old, err := db.Trial(t.Context(), "night.old-1", 0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(full(0), old, cmpopts.IgnoreFields(trial.Trial{}, "Study")); diff != "" {
		t.Errorf("history changed (-want +got):\n%s", diff)
	}
	record, err := db.Study(t.Context(), "night.old-1")
	if err != nil || record.State != tuner.StudyStopped || record.Reason == "" {
		t.Errorf("retired study: %+v, %v", record, err)
	}
	if trials, err := db.Trials(t.Context(), "night"); err != nil || len(trials) != 0 {
		t.Errorf("the fresh study has %d trials, %v", len(trials), err)
	}
	long := strings.Repeat("x", 128)
	if err := db.SaveStudy(t.Context(), &tuner.Record{Name: long, State: tuner.StudyRunning}); err != nil {
		t.Fatal(err)
	}
	if name, err := db.Retire(t.Context(), long); err != nil || len(name) > 128 {
		t.Errorf("long name: %q, %v", name, err)
	}
}

func TestSamplesAndSummary(t *testing.T) {
	t.Parallel()
	db := open(t)
	running := &trial.Trial{Study: "night", Number: 1, Role: trial.RoleSearch, State: trial.Running}
	if err := errors.Join(db.SaveTrial(t.Context(), full(0)), db.SaveTrial(t.Context(), running)); err != nil {
		t.Fatal(err)
	}
	want := []store.SampleFile{{File: "0/level-80.jsonl", Concurrency: 80, Count: 9, Bytes: 900}, {File: "0/level-120.jsonl", Concurrency: 120, Count: 7}}
	for range 2 {
		if err := db.SaveSamples(t.Context(), "night", 0, want...); err != nil {
			t.Fatal(err)
		}
	}
	got, err := db.Samples(t.Context(), "night", 0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := db.SaveSamples(t.Context(), "night", 7, want...); err == nil {
		t.Error("samples of a missing trial were stored")
	}
	before := summary(t, db)
	if before.Trials != 2 || before.Finished != 1 {
		t.Errorf("summary %+v", before)
	}
	if err := db.AddEvent(t.Context(), "night", tuner.Event{Kind: "step"}); err != nil {
		t.Fatal(err)
	}
	if after := summary(t, db); after.Revision <= before.Revision {
		t.Errorf("revision %d after %d", after.Revision, before.Revision)
	}
}

func summary(t *testing.T, db *store.DB) tuner.Summary {
	t.Helper()
	all, err := db.Studies(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("%d studies, %v", len(all), err)
	}
	return all[0]
}

func TestSecretsNeverReachTheFile(t *testing.T) {
	t.Parallel()
	db := open(t)
	const secret = "s3cr3t-Zx81qq"
	tr := full(0)
	tr.Argv = []string{"serve", "--api-key", secret}
	tr.Process.Argv = tr.Argv
	tr.Verdict.Evidence = "server_args={'api_key': '" + secret + "'}"
	tr.Why = "Authorization: Bearer " + secret
	tr.Config["env.HF_TOKEN"] = secret
	tr.Levels[0].Report.Errors = []string{"api_key='" + secret + "'"}
	record := &tuner.Record{
		Name: "night", State: tuner.StudyRunning, Reason: "HF_TOKEN=" + secret,
		Server: sglang.Server{Flags: sglang.Config{"api-key": secret}, Env: map[string]string{"MY_PASSWORD": secret}},
	}
	_, commandErr := db.AddCommand(t.Context(), "night", tuner.Command{Kind: "enqueue", Text: "--api-key " + secret, Config: tr.Config})
	err := errors.Join(db.SaveTrial(t.Context(), tr), db.SaveStudy(t.Context(), record), commandErr,
		db.AddEvent(t.Context(), "night", tuner.Event{Kind: "host", Text: "https://me:" + secret + "@x", Config: tr.Config}),
		db.VoidTrial(t.Context(), "night", 0, "X_SECRET="+secret))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(db.Path() + "*")
	if err != nil || len(files) < 2 {
		t.Fatalf("files %v, %v", files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(content), secret) {
			t.Errorf("%s holds the secret", filepath.Base(file))
		}
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
