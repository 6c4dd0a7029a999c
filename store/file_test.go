package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/store"
	"sgtune/trial"
	"sgtune/tuner"
)

func TestOpenMakesAndReopens(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a folder with ? # % and 'quotes'", "sg tune?.db")
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		db, err := store.Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("s%d", i)
		if err := db.SaveStudy(t.Context(), &tuner.Record{Name: name, State: tuner.StudyRunning}); err != nil {
			t.Fatal(err)
		}
		all, err := db.Studies(t.Context())
		if err != nil || len(all) != i+1 {
			t.Fatalf("%d studies, %v", len(all), err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the file has another name: %v", err)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	db := open(t)
	foreign := raw(t, db.Path())
	for pragma, want := range map[string]int{"user_version": 8, "application_id": 0x73677475} {
		var got int
		if err := foreign.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %d, %v, want %d", pragma, got, err, want)
		}
	}
	var mode string
	if err := foreign.QueryRowContext(t.Context(), "PRAGMA journal_mode").Scan(&mode); err != nil || mode != "wal" {
		t.Errorf("journal mode %q, %v", mode, err)
	}
}

func TestManyProcessesMakeOneDatabase(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sgtune.db")
	var group sync.WaitGroup
	for i := range 6 {
		group.Go(func() {
			db, err := store.Open(context.Background(), path)
			if err != nil {
				t.Error(err)
				return
			}
			record := &tuner.Record{Name: fmt.Sprintf("s%d", i), State: tuner.StudyRunning}
			if err := errors.Join(db.SaveStudy(context.Background(), record), db.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	all, err := openAt(t, path).Studies(t.Context())
	if err != nil || len(all) != 6 {
		t.Errorf("%d studies, %v", len(all), err)
	}
}

// TestRefusedFiles holds the one line a person gets, and that the file was left alone.
func TestRefusedFiles(t *testing.T) {
	t.Parallel()
	applied, err := filepath.Glob("migration/*.sql")
	if err != nil || len(applied) == 0 {
		t.Fatalf("%d migrations: %v", len(applied), err)
	}
	newer := len(applied) + 1
	tests := []struct {
		name string
		make func(t *testing.T, path string)
		want string // FILE stands for the path
	}{
		{"newer", func(t *testing.T, path string) {
			if err := openAt(t, path).Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := raw(t, path).ExecContext(t.Context(), fmt.Sprintf("PRAGMA user_version = %d", newer)); err != nil {
				t.Fatal(err)
			}
		}, fmt.Sprintf("FILE was written by a newer sgtune (schema %d, this one knows %d); use that version or another --db", newer, newer-1)},
		{"other program", func(t *testing.T, path string) {
			if _, err := raw(t, path).ExecContext(t.Context(), "CREATE TABLE cookies (id)"); err != nil {
				t.Fatal(err)
			}
		}, "FILE is a database of another program; name another file with --db"},
		{"text", func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte("study: x\nserver: {model: /m}\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}, "FILE is not a database; name another file with --db"},
		{"short text", func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
				t.Fatal(err)
			}
		}, "FILE is not a database; name another file with --db"},
		{"folder", func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o755); err != nil {
				t.Fatal(err)
			}
		}, "FILE is a folder; name a database file with --db"},
		{"damaged", func(t *testing.T, path string) {
			junk := append([]byte("SQLite format 3\x00"), []byte(strings.Repeat("junk", 2000))...)
			if err := os.WriteFile(path, junk, 0o644); err != nil {
				t.Fatal(err)
			}
		}, "open FILE: the file is damaged or not a database; restore a copy, or name another file with --db"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "x.db")
			test.make(t, path)
			before, _ := os.ReadFile(path) // nothing for a folder
			for name, open := range map[string]func(context.Context, string) (*store.DB, error){"Open": store.Open, "OpenReadOnly": store.OpenReadOnly} {
				_, err := open(t.Context(), path)
				if err == nil {
					t.Fatalf("%s took it", name)
				}
				if diff := cmp.Diff(test.want, strings.ReplaceAll(err.Error(), path, "FILE")); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
			if after, _ := os.ReadFile(path); string(after) != string(before) {
				t.Error("the file was changed")
			}
		})
	}
}

func TestMissingPlaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := store.Open(t.Context(), filepath.Join(dir, "no", "x.db")); err == nil || !strings.Contains(err.Error(), "there is no folder") {
		t.Errorf("missing folder: %v", err)
	}
	missing := filepath.Join(dir, "x.db")
	if _, err := store.OpenReadOnly(t.Context(), missing); err == nil || !strings.Contains(err.Error(), "run sgtune tune") {
		t.Errorf("missing file: %v", err)
	}
	if _, err := os.Stat(missing); !errors.Is(err, os.ErrNotExist) {
		t.Error("a query made a file")
	}
	// Nobody may create files in /proc, not even root.
	_, err := store.Open(t.Context(), "/proc/sgtune.db")
	if err == nil || !strings.Contains(err.Error(), "/proc/sgtune.db: the file or its folder cannot be written") {
		t.Errorf("read-only folder: %v", err)
	}
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	db := open(t)
	if err := db.SaveTrial(t.Context(), full(0)); err != nil {
		t.Fatal(err)
	}
	reader, err := store.OpenReadOnly(t.Context(), db.Path())
	if err != nil {
		t.Fatal(err)
	}
	if err := db.SaveTrial(t.Context(), full(1)); err != nil { // beside the reader
		t.Fatal(err)
	}
	trials, err := reader.Trials(t.Context(), "night")
	if err != nil || len(trials) != 2 {
		t.Errorf("%d trials, %v", len(trials), err)
	}
	if err := reader.SaveTrial(t.Context(), full(2)); err == nil || !strings.Contains(err.Error(), "for reading only") {
		t.Errorf("a save through a reader: %v", err)
	}
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
}

// TestFullDisk lets SQLite itself report a full disk and goes on once there is room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	db := open(t)
	limit, free := store.LimitPages(t, db)
	limit()
	var err error
	number := 0
	for ; number < 2000 && err == nil; number++ {
		err = db.SaveTrial(t.Context(), full(number))
	}
	if err == nil {
		t.Fatal("the disk never filled up")
	}
	if want := db.Path() + ": the disk is full; free some space"; !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v\nwant one line with %q", err, want)
	}
	trials, readErr := db.Trials(t.Context(), "night")
	if readErr != nil || len(trials) != number-1 {
		t.Errorf("%d finished trials are left of %d, %v", len(trials), number-1, readErr)
	}
	free()
	if err := db.SaveTrial(t.Context(), full(number)); err != nil {
		t.Errorf("after space was freed: %v", err)
	}
}

// TestCrash copies the files of a database in use, as a power cut would leave them, and opens the
// copy: every save that had returned is there, the one in progress is not.
func TestCrash(t *testing.T) {
	t.Parallel()
	db := open(t)
	for i := range 5 {
		if err := db.SaveTrial(t.Context(), full(i)); err != nil {
			t.Fatal(err)
		}
	}
	running := &trial.Trial{Study: "night", Number: 5, Role: trial.RoleSearch, State: trial.Running}
	if err := db.SaveTrial(t.Context(), running); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "sgtune.db")
	copyFile(t, db.Path(), copied, -1)
	wal, err := os.Stat(db.Path() + "-wal")
	if err != nil || wal.Size() == 0 {
		t.Fatalf("nothing is in the log: %v", err)
	}
	copyFile(t, db.Path()+"-wal", copied+"-wal", -1)
	torn, err := os.OpenFile(copied+"-wal", os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := torn.Write(make([]byte, 1500)); err != nil { // half of a write that never ended
		t.Fatal(err)
	}
	if err := torn.Close(); err != nil {
		t.Fatal(err)
	}
	after := openAt(t, copied)
	trials, err := after.Trials(t.Context(), "night")
	if err != nil {
		t.Fatal(err)
	}
	if len(trials) != 6 {
		t.Fatalf("%d trials, want 6", len(trials))
	}
	if diff := cmp.Diff(full(4), trials[4]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	running.State = trial.Failed
	if err := after.SaveTrial(t.Context(), running); err != nil {
		t.Errorf("the next run cannot close the open trial: %v", err)
	}
}

// TestCrashInTheMiddleOfASave cuts the log at many places: what is left is always a whole state.
func TestCrashInTheMiddleOfASave(t *testing.T) {
	t.Parallel()
	db := open(t)
	tr := full(0)
	tr.State = trial.Running
	if err := db.SaveTrial(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	wal, err := os.Stat(db.Path() + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	done := full(0)
	if err := db.SaveTrial(t.Context(), done); err != nil {
		t.Fatal(err)
	}
	end, err := os.Stat(db.Path() + "-wal")
	if err != nil || end.Size() <= wal.Size() {
		t.Fatalf("the log did not grow from %d: %v", wal.Size(), err)
	}
	states := map[trial.State]int{}
	for cut := wal.Size(); cut < end.Size()+1024; cut += 1024 {
		copied := filepath.Join(t.TempDir(), fmt.Sprintf("%d.db", cut))
		copyFile(t, db.Path(), copied, -1)
		copyFile(t, db.Path()+"-wal", copied+"-wal", cut)
		got, err := openAt(t, copied).Trial(t.Context(), "night", 0)
		if err != nil {
			t.Fatal(err)
		}
		want := tr
		if got.State == trial.Complete {
			want = done
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("cut at %d (-want +got):\n%s", cut, diff)
		}
		states[got.State]++
	}
	if states[trial.Running] == 0 || states[trial.Complete] == 0 {
		t.Errorf("states %v, want both", states)
	}
}

// copyFile copies the first limit bytes, all when negative.
func copyFile(t *testing.T, from, to string, limit int64) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	var source io.Reader = in
	if limit >= 0 {
		source = io.LimitReader(in, limit)
	}
	if _, err := io.Copy(out, source); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}
