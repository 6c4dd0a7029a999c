package web_test

import (
	"database/sql"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sgtune/store"
	"sgtune/test/webbed"
	"sgtune/web"
)

// keep is a folder to write the studies of these tests into, for a look at their pages: go test ./web -run
// TestEveryState -keep DIR, then sgtune serve --db DIR/sgtune.db.
var keep = flag.String("keep", "", "folder that keeps the studies of the tests")

// What the studies of the fixture hold, one for each way a study can stand.
const (
	nasty        = webbed.Nasty
	evidenceText = webbed.Evidence
)

var (
	states   = webbed.States
	measured = webbed.Measured
)

// fixture is a real database with studies in some of the states, all of them unless named, and their evidence.
type fixture struct {
	t    testing.TB
	db   *store.DB
	path string
	root *os.Root
}

func newFixture(t testing.TB, studies ...string) *fixture {
	t.Helper()
	dir := t.TempDir()
	if *keep != "" && strings.HasPrefix(t.Name(), "TestEveryState") {
		dir = *keep
	}
	f := &fixture{t: t, path: filepath.Join(dir, "sgtune.db")}
	var err error
	if f.db, err = store.Open(t.Context(), f.path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.db.Close() })
	evidence := filepath.Join(dir, "sgtune.files")
	if err := os.MkdirAll(evidence, 0o700); err != nil {
		t.Fatal(err)
	}
	if f.root, err = os.OpenRoot(evidence); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.root.Close() })
	if len(studies) == 0 {
		studies = states
	}
	for i, name := range studies {
		if err := webbed.Stand(t.Context(), f.db, f.root, name, night.Add(-time.Duration(i)*24*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// handler serves the pages of the fixture.
func (f *fixture) handler() *web.Handler {
	return web.New(f.db, web.Options{DB: "sgtune.db", Evidence: f.root.Name(), Version: "v1", Commands: f.db})
}

// write puts a file into a trial's folder.
func (f *fixture) write(study string, number int, name, text string) {
	f.t.Helper()
	dir := filepath.Join(study, fmt.Sprint(number))
	if err := f.root.MkdirAll(dir, 0o700); err != nil {
		f.t.Fatal(err)
	}
	if err := f.root.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// multiply copies a study's last trial until it has so many.
func (f *fixture) multiply(study string, total int) {
	f.t.Helper()
	raw, err := sql.Open("sqlite3", f.path)
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	var columns string
	if err := raw.QueryRowContext(f.t.Context(), "SELECT group_concat(name) FROM pragma_table_info('trials') WHERE name NOT IN ('study_id', 'number', 'role')").Scan(&columns); err != nil {
		f.t.Fatal(err)
	}
	_, err = raw.ExecContext(f.t.Context(), `WITH RECURSIVE n(i) AS (SELECT (SELECT max(number) + 1 FROM trials WHERE study_id = (SELECT id FROM studies WHERE name = ?1))
		UNION ALL SELECT i + 1 FROM n WHERE i < ?2 - 1)
		INSERT INTO trials (study_id, number, role, `+columns+`) SELECT t.study_id, n.i, 'search', `+columns+` FROM trials AS t, n
		WHERE t.study_id = (SELECT id FROM studies WHERE name = ?1) AND t.number = 2`, study, total)
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := raw.ExecContext(f.t.Context(), "UPDATE studies SET revision = revision + 1 WHERE name = ?", study); err != nil {
		f.t.Fatal(err)
	}
}
