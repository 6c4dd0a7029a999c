package store

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"time"
)

// applicationID marks our files in SQLite's header ("sgtu"), so that another program's database is
// never taken for ours.
const applicationID = 0x73677475

//go:embed migration/*.sql
var migrations embed.FS

// migrationNames lists the migrations in order; the schema version is the number of those applied.
func migrationNames() []string {
	names, err := fs.Glob(migrations, "migration/*.sql") // sorted; fails only on a bad pattern
	if err != nil {
		return nil
	}
	return names
}

// latest is the schema version this program writes.
func latest() int { return len(migrationNames()) }

// peek refuses, without changing a byte, an existing file that is not ours or is newer.
func peek(ctx context.Context, path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Size() == 0 {
		return nil // a new database; a folder that cannot be written shows when it is made
	}
	reader, err := connect(path, url.Values{"_query_only": {"true"}})
	if err != nil {
		return explain(path, "open", err)
	}
	defer func() { _ = reader.Close() }() // nothing was written
	_, err = schemaVersion(ctx, path, reader)
	return err
}

// schemaVersion reads the version of an open database, 0 for an empty one, and refuses what is not
// ours.
func schemaVersion(ctx context.Context, path string, q querier) (int, error) {
	var version, id, tables int
	err := q.QueryRowContext(ctx, `SELECT (SELECT user_version FROM pragma_user_version),
		(SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_master)`).Scan(&version, &id, &tables)
	switch {
	case err != nil:
		return 0, explain(path, "open", err)
	case tables > 0 && id != applicationID:
		return 0, fmt.Errorf("%s is a database of another program; name another file with --db", path)
	case version > latest():
		return 0, fmt.Errorf("%s was written by a newer sgtune (schema %d, this one knows %d); use that version or another --db",
			path, version, latest())
	}
	return version, nil
}

// querier is what *sql.DB and *sql.Tx have in common for queries.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// migrate applies what is missing in one transaction: a database is at one version or at another,
// never between. Two processes that start at once do it once.
func migrate(ctx context.Context, path string, writer *sql.DB) error {
	tx, err := begin(ctx, writer)
	if err != nil {
		return explain(path, "open", err)
	}
	defer func() { _ = tx.Rollback() }() // does nothing after a commit
	version, err := schemaVersion(ctx, path, tx)
	if err != nil || version == latest() {
		return err
	}
	for _, name := range migrationNames()[version:] {
		script, err := migrations.ReadFile(name)
		if err == nil {
			_, err = tx.ExecContext(ctx, string(script))
		}
		if err != nil {
			return explain(path, "apply "+name, err)
		}
	}
	stamp := fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, latest())
	if _, err := tx.ExecContext(ctx, stamp); err != nil {
		return explain(path, "open", err)
	}
	if err := tx.Commit(); err != nil {
		return explain(path, "open", err)
	}
	return nil
}

// begin takes the right to write. Turning on WAL mode does not wait for another process that does
// the same at this moment, so a busy answer is asked again.
func begin(ctx context.Context, writer *sql.DB) (*sql.Tx, error) {
	deadline := time.Now().Add(busyTimeoutMs * time.Millisecond)
	for {
		tx, err := writer.BeginTx(ctx, nil)
		if err == nil || !isCode(err, busy...) || time.Now().After(deadline) {
			return tx, err
		}
		timer := time.NewTimer(20 * time.Millisecond)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-timer.C:
		}
	}
}
