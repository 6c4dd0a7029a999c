package store

import (
	"fmt"
	"testing"
)

// LimitPages gives tests a full disk: limit lets the file grow by 40 pages more, free by as many
// as it likes.
func LimitPages(t *testing.T, db *DB) (limit, free func()) {
	t.Helper()
	set := func(pages int) {
		if _, err := db.writer.ExecContext(t.Context(), fmt.Sprintf("PRAGMA max_page_count = %d", pages)); err != nil {
			t.Fatal(err)
		}
	}
	var pages int
	if err := db.writer.QueryRowContext(t.Context(), "PRAGMA page_count").Scan(&pages); err != nil {
		t.Fatal(err)
	}
	return func() { set(pages + 40) }, func() { set(1 << 30) }
}

// OrderBy is how a query sorts.
var OrderBy = orderBy
