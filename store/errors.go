package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	sqlite3 "github.com/mattn/go-sqlite3"
)

// Groups of SQLite's result codes that mean the same to a person.
var (
	busy       = []sqlite3.ErrNo{sqlite3.ErrBusy, sqlite3.ErrLocked}
	cannotOpen = []sqlite3.ErrNo{sqlite3.ErrCantOpen, sqlite3.ErrReadonly, sqlite3.ErrPerm, sqlite3.ErrAuth}
	damaged    = []sqlite3.ErrNo{sqlite3.ErrCorrupt, sqlite3.ErrNotADB}
)

// isCode reports whether err comes from SQLite with one of the codes.
func isCode(err error, codes ...sqlite3.ErrNo) bool {
	var e sqlite3.Error
	return errors.As(err, &e) && slices.Contains(codes, e.Code)
}

// full reports whether a disk had no room: SQLite says so by name only where it writes the database itself.
func full(err error) bool {
	var e sqlite3.Error
	return errors.As(err, &e) && (e.Code == sqlite3.ErrFull || e.ExtendedCode == sqlite3.ErrIoErrSHMSize || e.SystemErrno == syscall.ENOSPC)
}

// mendable is a failure a person can mend; its text says how and leaves SQLite's own words out.
type mendable struct {
	text string
	err  error
}

func (m *mendable) Error() string { return m.text }
func (m *mendable) Unwrap() error { return m.err }

// explain says what failed on which file, and for failures a person can mend, how.
func explain(path, op string, err error) error {
	where := op + " in " + path
	if op == "open" {
		where = "open " + path
	}
	advice := ""
	switch {
	case full(err):
		advice = "the disk is full; free some space and run the same command again, nothing finished is lost"
	case isCode(err, cannotOpen...):
		advice = "the file or its folder cannot be written; give the rights to it, or name another file with --db"
	case isCode(err, damaged...):
		advice = "the file is damaged or not a database; restore a copy, or name another file with --db"
	case isCode(err, busy...):
		advice = "another process has held the file for 10 s; end it, then run the same command again"
	case isCode(err, sqlite3.ErrIoErr):
		advice = "the disk does not answer or is full; look at it, then run the same command again"
	default:
		return fmt.Errorf("%s: %w", where, err)
	}
	return &mendable{text: where + ": " + advice, err: err}
}

// header starts every SQLite file.
var header = []byte("SQLite format 3\x00")

// checkFile refuses, in plain words, a path that cannot be a database. A missing file is fine when
// it may be created.
func checkFile(path string, create bool) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("%s is a folder; name a database file with --db", path)
	case errors.Is(err, os.ErrNotExist) && !create:
		return fmt.Errorf("there is no database %s; run sgtune tune STUDY.yaml first, or name another file with --db", path)
	case errors.Is(err, os.ErrNotExist):
		folder := filepath.Dir(path)
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			return fmt.Errorf("there is no folder %s for the database; make it, or name another file with --db", folder)
		}
		return nil
	case err != nil:
		return fmt.Errorf("open %s: %w; name another file with --db", path, err)
	case info.Size() == 0 && !create:
		return fmt.Errorf("%s is empty; run sgtune tune STUDY.yaml first, or name another file with --db", path)
	}
	return checkHeader(path)
}

func checkHeader(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%w; give the rights to it, or name another file with --db", err)
	}
	defer func() { _ = f.Close() }() // opened for reading
	start := make([]byte, len(header))
	n, err := io.ReadFull(f, start)
	switch {
	case n == 0 && errors.Is(err, io.EOF):
		return nil
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("read %s: %w; name another file with --db", path, err)
	case !bytes.Equal(start, header):
		return fmt.Errorf("%s is not a database; name another file with --db", path)
	}
	return nil
}
