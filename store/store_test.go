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

// full is a finished trial with every field set.

// TestTrialRoundTripEveryField fails when somebody adds a field to trial.Trial that the store loses.

func TestStudyRoundTrip(t *testing.T) {
	t.Parallel()
	db := open(t)
	var want tuner.Record
	fill(t, &want)
	want.Name, want.State = "a_b-c.1", tuner.StudyComplete
	config := sglang.Config{"hicache-size": 48.0}
	want.Candidate, want.Second, want.BaselineConfig, want.Verdict.Config, want.Server.Flags = config, config, config, config, config
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
	if trials, err := db.Trials(t.Context(), "nobody"); err != nil || trials != nil {
		t.Errorf("trials of an unknown study: %v, %v", trials, err)
	}
	if _, err := db.Study(t.Context(), "nobody"); !errors.Is(err, tuner.ErrNoStudy) {
		t.Errorf("unknown study: %v", err)
	}
}

// TestTriggers goes around the package: the file itself refuses.

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
		if _, _, err := handles[i%2].Ask(t.Context(), "night", c); err != nil {
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
	if _, _, err := first.Ask(t.Context(), "night", tuner.Command{Kind: "dance"}); err == nil {
		t.Error("an unknown command was stored")
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
	record.Server.Flags["admin-api-key"] = 884220197735.0
	_, _, commandErr := db.Ask(t.Context(), "night", tuner.Command{Kind: "enqueue", Text: "--api-key " + secret, Config: tr.Config})
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
		if strings.Contains(string(content), "884220197735") {
			t.Errorf("%s holds the key that is a number", filepath.Base(file))
		}
	}
}
