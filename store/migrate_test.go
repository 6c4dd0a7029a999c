package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/store"
	"sgtune/trial"
)

// older makes a database of the first schema with the study and the trials of a new one in it.
func older(t *testing.T, from *store.DB) (path string) {
	t.Helper()
	script, err := os.ReadFile("migration/0001_init.sql")
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "old.db")
	db := raw(t, path)
	db.SetMaxOpenConns(1) // the attached database belongs to the connection
	run := func(statement string) {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	run(string(script) + "; PRAGMA application_id = 0x73677475; PRAGMA user_version = 1; PRAGMA journal_mode = WAL")
	run(fmt.Sprintf("ATTACH '%s' AS new", from.Path()))
	run("BEGIN")
	for _, table := range []string{"studies", "levels", "trials"} {
		columns := columnsOf(t, db, table)
		run(fmt.Sprintf("INSERT INTO main.%s (%s) SELECT %[2]s FROM new.%[1]s", table, columns))
	}
	run("COMMIT")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func columnsOf(t *testing.T, db *sql.DB, table string) string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT name FROM pragma_table_info(?, 'main')", table)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, ", ")
}

// A database of the first schema is read as it is, and brought up to date by who may write: nothing in
// it changes, and what is new is kept from then on.
func TestFirstSchema(t *testing.T) {
	t.Parallel()
	db := open(t)
	want := full(0)
	if err := db.SaveTrial(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	path := older(t, db)
	want.Reason, want.Adoptions = nil, nil // the first schema had no place for them
	for i, open := range []func(context.Context, string) (*store.DB, error){store.OpenReadOnly, store.Open, store.OpenReadOnly} {
		name := []string{"as it is", "migrated", "migrated, read only"}[i]
		old, err := open(t.Context(), path)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := old.Study(t.Context(), "night"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got, err := old.Trials(t.Context(), "night")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff([]*trial.Trial{want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if err := old.Close(); err != nil {
			t.Fatal(err)
		}
	}
	now := openAt(t, path)
	if err := now.SaveTrial(t.Context(), want); err != nil {
		t.Errorf("the same row again: %v", err)
	}
	next := full(1)
	if err := now.SaveTrial(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	got, err := now.Trial(t.Context(), "night", 1)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(next, got); diff != "" {
		t.Errorf("a new trial in the old file (-want +got):\n%s", diff)
	}
	if _, err := raw(t, path).ExecContext(t.Context(), "UPDATE trials SET reason_json = 'null' WHERE number = 0"); err == nil {
		t.Error("the reason of a finished trial was changed")
	}
}
