package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/store"
	"sgtune/trial"
	"sgtune/tuner"
)

// A copy is the database at one instant, whole and by itself, while somebody goes on writing.
func TestBackupWhileWriting(t *testing.T) {
	t.Parallel()
	db := open(t)
	ctx, stop := context.WithCancel(t.Context())
	saved, ended := make(chan int, 1000), make(chan struct{})
	go func() {
		defer close(ended)
		for n := 0; n < cap(saved) && ctx.Err() == nil; n++ {
			if err := db.SaveTrial(context.WithoutCancel(ctx), full(n)); err != nil {
				t.Error(err)
				return
			}
			saved <- n
		}
	}()
	folder := t.TempDir()
	for i := range 5 {
		for range 3 {
			<-saved
		}
		before := db.Path()
		from, err := store.OpenReadOnly(t.Context(), before)
		if err != nil {
			t.Fatal(err)
		}
		dest := filepath.Join(folder, "a copy 'of' #"+string(rune('0'+i))+"?.db")
		b, err := from.Backup(t.Context(), dest)
		if err != nil {
			t.Fatal(err)
		}
		if err := from.Close(); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(dest)
		if err != nil || info.Size() != b.Bytes || info.Mode().Perm() != 0o600 {
			t.Fatalf("%v, %v; said %d bytes", info, err, b.Bytes)
		}
		if len(b.Studies) != 1 || b.Studies[0].Finished < 3*(i+1) {
			t.Fatalf("copy %d holds %+v", i, b.Studies)
		}
		holds(t, dest, b.Studies[0].Finished)
	}
	stop()
	<-ended
	left, err := os.ReadDir(folder)
	if err != nil || len(left) != 5 {
		t.Errorf("%d files in the folder of five copies: %v, %v", len(left), left, err)
	}
}

// holds checks that a copy can be used in the database's place, and has the trials up to number n whole.
func holds(t *testing.T, path string, n int) {
	t.Helper()
	moved := filepath.Join(t.TempDir(), "sgtune.db") // without whatever may lie beside it
	copyFile(t, path, moved, -1)
	db := openAt(t, moved)
	if err := db.Check(t.Context()); err != nil {
		t.Error(err)
	}
	trials, err := db.Trials(t.Context(), "night")
	if err != nil || len(trials) != n {
		t.Fatalf("%d trials, %v, want %d", len(trials), err, n)
	}
	for i, got := range trials {
		if diff := cmp.Diff(full(i), got); diff != "" {
			t.Fatalf("trial %d (-want +got):\n%s", i, diff)
		}
	}
	if err := db.SaveTrial(t.Context(), &trial.Trial{Study: "night", Number: n, Role: trial.RoleSearch, State: trial.Waiting}); err != nil {
		t.Errorf("the copy cannot be gone on with: %v", err)
	}
}

func TestBackupRefuses(t *testing.T) {
	t.Parallel()
	db := open(t)
	dir := t.TempDir()
	taken := filepath.Join(dir, "taken.db")
	if err := os.WriteFile(taken, []byte("somebody's"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "link.db")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, dest, want string }{
		{"a file", taken, "there is a file already; name another file"},
		{"a link", filepath.Join(dir, "link.db"), "there is a file already; name another file"},
		{"a folder", dir, "there is a file already; name another file"},
		{"itself", db.Path(), "there is a file already; name another file"},
		{"no folder", filepath.Join(dir, "no", "x.db"), "no such file or directory; name a file in a folder that can be written"},
		{"no right", "/proc/x.db", "name a file in a folder that can be written"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := db.Backup(t.Context(), tt.dest)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want one line with %q", err, tt.want)
			}
		})
	}
	if text, err := os.ReadFile(taken); err != nil || string(text) != "somebody's" {
		t.Errorf("the file is %q, %v", text, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("the folder holds %v, %v", left, err)
	}
}

// A damaged database is not copied: a copy that exists is whole.
func TestBackupOfDamage(t *testing.T) {
	t.Parallel()
	db := open(t)
	for n := range 40 {
		if err := db.SaveTrial(t.Context(), full(n)); err != nil {
			t.Fatal(err)
		}
	}
	good := filepath.Join(t.TempDir(), "good.db")
	if _, err := db.Backup(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	for at := 3 * 4096; at < len(text); at += 8 * 4096 { // whole pages, somewhere behind the schema
		copy(text[at:], make([]byte, 4096))
	}
	bad := filepath.Join(t.TempDir(), "bad.db")
	if err := os.WriteFile(bad, text, 0o600); err != nil {
		t.Fatal(err)
	}
	damaged, err := store.OpenReadOnly(t.Context(), bad)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = damaged.Close() }()
	if err := damaged.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("Check: %v", err)
	}
	dest := filepath.Join(t.TempDir(), "copy.db")
	if _, err := damaged.Backup(t.Context(), dest); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("Backup: %v", err)
	}
	if _, err := os.Stat(dest); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a copy: %v", err)
	}
}

// A copy that is given up leaves nothing.
func TestBackupCancelled(t *testing.T) {
	t.Parallel()
	db := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	folder := t.TempDir()
	if _, err := db.Backup(ctx, filepath.Join(folder, "x.db")); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// An empty study list is a copy too, and one line of it says so.
func TestBackupOfNothing(t *testing.T) {
	t.Parallel()
	db := openAt(t, filepath.Join(t.TempDir(), "sgtune.db"))
	dest := filepath.Join(t.TempDir(), "copy.db")
	b, err := db.Backup(t.Context(), dest)
	if err != nil || len(b.Studies) != 0 || b.Schema < 2 {
		t.Fatalf("%+v, %v", b, err)
	}
	if err := openAt(t, dest).SaveStudy(t.Context(), &tuner.Record{Name: "n", State: tuner.StudyRunning}); err != nil {
		t.Error(err)
	}
}
