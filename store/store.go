package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	_ "github.com/mattn/go-sqlite3" // registers the driver "sqlite3"
)

// busyTimeoutMs is how long a call waits for another process that holds the file.
const busyTimeoutMs = 10_000

// logLimit keeps the log beside the database at half a megabyte (pages of 4 KiB), where SQLite's own limit is
// four: a disk that is nearly full is full later.
const logLimit = "PRAGMA wal_autocheckpoint = 128"

// DB is an open database. It is safe for concurrent use, also by several processes on one file. It
// satisfies trial.Saver, tuner.Store and web.Reader.
type DB struct {
	path   string
	reader *sql.DB
	writer *sql.DB // one connection, nil when read-only
}

// Open opens the database at path for reading and writing, creates it where there is none and
// migrates an older one. Its errors are single lines that name the file and say what to do.
func Open(ctx context.Context, path string) (*DB, error) {
	if err := checkFile(path, true); err != nil {
		return nil, err
	}
	if err := peek(ctx, path); err != nil { // before WAL mode would change somebody else's file
		return nil, err
	}
	writer, err := connect(path, url.Values{"_txlock": {"immediate"}, "_journal_mode": {"WAL"}, "_synchronous": {"FULL"}})
	if err != nil {
		return nil, explain(path, "open", err)
	}
	writer.SetMaxOpenConns(1)
	if err := migrate(ctx, path, writer); err != nil {
		return nil, errors.Join(err, writer.Close())
	}
	if _, err := writer.ExecContext(ctx, logLimit); err != nil {
		return nil, errors.Join(explain(path, "open", err), writer.Close())
	}
	reader, err := connect(path, url.Values{"_query_only": {"true"}})
	if err != nil {
		return nil, errors.Join(explain(path, "open", err), writer.Close())
	}
	return &DB{path: path, reader: reader, writer: writer}, nil
}

// OpenReadOnly opens an existing database for queries only; it creates nothing and changes nothing.
// It works beside a running tune, in a folder that cannot be written, and on databases of older
// versions, whose rows lack what came later (addedColumns).
func OpenReadOnly(ctx context.Context, path string) (*DB, error) {
	if err := checkFile(path, false); err != nil {
		return nil, err
	}
	reader, err := connectReadOnly(ctx, path)
	if err != nil {
		return nil, explain(path, "open", err)
	}
	version, err := schemaVersion(ctx, path, reader)
	if err == nil && version == 0 {
		err = fmt.Errorf("%s holds nothing yet; run sgtune tune STUDY.yaml first, or name another file with --db", path)
	}
	if err != nil {
		return nil, errors.Join(err, reader.Close())
	}
	return &DB{path: path, reader: reader}, nil
}

// Close ends all use of the database.
func (db *DB) Close() error {
	err := db.reader.Close()
	if db.writer != nil {
		err = errors.Join(err, db.writer.Close())
	}
	if err != nil {
		return explain(db.path, "close", err)
	}
	return nil
}

// Path is the file this database lives in.
func (db *DB) Path() string { return db.path }

// connect prepares a pool of connections. The settings lie in the DSN so that each has them.
func connect(path string, settings url.Values) (*sql.DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	settings.Set("_busy_timeout", strconv.Itoa(busyTimeoutMs))
	settings.Set("_foreign_keys", "on")
	return sql.Open("sqlite3", "file:"+(&url.URL{Path: abs}).EscapedPath()+"?"+settings.Encode())
}

// connectReadOnly opens without the right to write. A database in WAL mode wants two helper files
// beside it; where they are missing and cannot be made, for want of rights or of room, nobody writes, and it can
// be read as it is.
func connectReadOnly(ctx context.Context, path string) (*sql.DB, error) {
	reader, err := connect(path, url.Values{"mode": {"ro"}, "_query_only": {"true"}})
	if err != nil {
		return nil, err
	}
	_, err = reader.ExecContext(ctx, "SELECT count(*) FROM sqlite_master")
	if err == nil {
		return reader, nil
	}
	_ = reader.Close() // it could not be used; err says why
	wal, missing := os.Stat(path + "-wal")
	if empty := errors.Is(missing, os.ErrNotExist) || missing == nil && wal.Size() == 0; !empty || !isCode(err, cannotOpen...) && !full(err) {
		return nil, err
	}
	return connect(path, url.Values{"mode": {"ro"}, "immutable": {"1"}, "_query_only": {"true"}})
}

// write runs change in one transaction that has the only right to write from its start.
func (db *DB) write(ctx context.Context, op string, change func(tx *sql.Tx) error) error {
	if db.writer == nil {
		return fmt.Errorf("%s: %s was opened for reading only", op, db.path)
	}
	tx, err := db.writer.BeginTx(ctx, nil)
	if err != nil {
		return explain(db.path, op, err)
	}
	defer func() { _ = tx.Rollback() }() // does nothing after a commit
	if err := change(tx); err != nil {
		return explain(db.path, op, err)
	}
	if err := tx.Commit(); err != nil {
		return explain(db.path, op, err)
	}
	return nil
}

// read runs queries in one transaction, so that they all see the same state.
func (db *DB) read(ctx context.Context, op string, query func(tx *sql.Tx) error) error {
	tx, err := db.reader.BeginTx(ctx, nil)
	if err != nil {
		return explain(db.path, op, err)
	}
	defer func() { _ = tx.Rollback() }() // there is nothing to commit
	if err := query(tx); err != nil {
		return explain(db.path, op, err)
	}
	return nil
}
