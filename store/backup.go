package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"sgtune/tuner"
)

// Backup is a copy of a database that was made and proven whole.
type Backup struct {
	File    string          // where it lies
	Bytes   int64           // its size
	Schema  int             // version of its tables
	Studies []tuner.Summary // what is in it, the newest first
}

// ErrExists is wrapped by Backup's error when something lies at the destination already.
var ErrExists = errors.New("there is a file already")

// Backup copies the database to the file dest as it was at one instant, also while a study runs: the
// copy is one read transaction (VACUUM INTO), so nobody who writes waits for it. It is written under a
// name of its own in dest's folder, proven by PRAGMA integrity_check, synced, and only then named dest:
// what is called dest is whole. An existing file is never replaced. The copy is one file without helpers;
// evidence files are not in it.
func (db *DB) Backup(ctx context.Context, dest string) (*Backup, error) {
	if _, err := os.Lstat(dest); err == nil {
		return nil, fmt.Errorf("back up %s to %s: %w; name another file", db.path, dest, ErrExists)
	}
	folder := filepath.Dir(dest)
	part, err := os.CreateTemp(folder, "."+filepath.Base(dest)+".part-*") // for its owner only, as is what it copies
	if err != nil {
		return nil, fmt.Errorf("back up %s: %w; name a file in a folder that can be written", db.path, err)
	}
	name := part.Name()
	defer func() {
		for _, helper := range []string{"", "-journal"} {
			_ = os.Remove(name + helper) // gone already when all went well
		}
	}()
	if err := part.Close(); err != nil {
		return nil, fmt.Errorf("back up %s to %s: %w", db.path, dest, err)
	}
	if err := db.copyTo(ctx, name, dest); err != nil {
		return nil, err
	}
	b, err := prove(ctx, name, dest)
	if err != nil {
		return nil, err
	}
	if err := publish(name, dest); err != nil {
		return nil, fmt.Errorf("back up %s: %w", db.path, err)
	}
	return b, nil
}

// copyTo writes the copy into the empty file name. The connection refuses every statement that writes,
// whatever it writes to, so that is lifted for this one.
func (db *DB) copyTo(ctx context.Context, name, dest string) error {
	conn, err := db.reader.Conn(ctx)
	if err != nil {
		return explain(db.path, "back up", err)
	}
	defer func() { _ = conn.Close() }() // gives it back
	defer func() { _, _ = conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA query_only = on") }()
	if _, err = conn.ExecContext(ctx, "PRAGMA query_only = off"); err == nil {
		_, err = conn.ExecContext(ctx, "VACUUM INTO ?", name)
	}
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("back up %s: %w", db.path, context.Cause(ctx))
	}
	if isCode(err, damaged...) {
		return explain(db.path, "back up", err)
	}
	return explain(dest, "write the copy", err)
}

// prove opens the copy as it is, checks it and reads what is in it.
func prove(ctx context.Context, name, dest string) (*Backup, error) {
	whole, err := connect(name, url.Values{"mode": {"ro"}, "immutable": {"1"}, "_query_only": {"true"}})
	if err != nil {
		return nil, explain(dest, "check the copy", err)
	}
	copied := &DB{path: dest, reader: whole}
	defer func() { _ = whole.Close() }() // opened for reading
	if err := copied.Check(ctx); err != nil {
		return nil, err
	}
	b := &Backup{File: dest}
	if b.Schema, err = schemaVersion(ctx, dest, whole); err != nil {
		return nil, err
	}
	if b.Studies, err = copied.Studies(ctx); err != nil {
		return nil, err
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("check the copy %s: %w", dest, err)
	}
	b.Bytes = info.Size()
	return b, nil
}

// publish syncs the finished copy and gives it its name without replacing anything.
func publish(name, dest string) error {
	if err := syncFile(name); err != nil {
		return fmt.Errorf("write %s to disk: %w", dest, err)
	}
	err := os.Link(name, dest) // fails where dest exists, unlike a rename
	switch {
	case errors.Is(err, os.ErrExist):
		return fmt.Errorf("%s: %w; name another file", dest, ErrExists)
	case err != nil: // a file system without links
		if _, taken := os.Lstat(dest); taken == nil {
			return fmt.Errorf("%s: %w; name another file", dest, ErrExists)
		}
		if err := os.Rename(name, dest); err != nil {
			return fmt.Errorf("name the copy: %w", err)
		}
	}
	if err := syncFile(filepath.Dir(dest)); err != nil {
		return fmt.Errorf("write the name %s to disk: %w", dest, err)
	}
	return nil
}

// syncFile waits until a file, or the names in a folder, are on disk.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Check proves that the database is whole: PRAGMA integrity_check (pages, indexes, constraints) and
// foreign_key_check. The error names the first thing that is wrong.
func (db *DB) Check(ctx context.Context) error {
	return db.read(ctx, "check", func(tx *sql.Tx) error {
		var found string
		if err := tx.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&found); err != nil {
			return err
		}
		if found != "ok" {
			return fmt.Errorf("%w: %s", errNotWhole, found)
		}
		var orphans int
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM pragma_foreign_key_check").Scan(&orphans); err != nil {
			return err
		}
		if orphans > 0 {
			return fmt.Errorf("%w: %d rows belong to nothing", errNotWhole, orphans)
		}
		return nil
	})
}

// errNotWhole: the file can be read and what it says is not consistent.
var errNotWhole = errors.New("the file is damaged; restore a copy (sgtune backup), or name another file with --db")
