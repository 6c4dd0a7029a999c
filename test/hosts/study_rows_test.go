package hosts

import (
	"crypto/sha256"
	"database/sql"
	"fmt"
	"os"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3" // rows are compared as they are stored

	"sgtune/internal/hosttest"
)

// open opens the database as another program would; nil when it is not there yet.
func (n *night) open() *sql.DB {
	n.T.Helper()
	if _, err := os.Stat(n.DB()); err != nil {
		return nil
	}
	db, err := sql.Open("sqlite3", "file:"+n.DB()+"?_busy_timeout=10000&mode=rw")
	if err != nil {
		n.T.Fatal(err)
	}
	return db
}

// awaitRow waits for a running trial that satisfies the condition.
func (n *night) awaitRow(r *hosttest.Tuning, condition string, args ...any) {
	n.T.Helper()
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		select {
		case <-r.Ended:
			n.T.Fatalf("it ended with %d before a trial was there with %s %v:\n%s", r.Code, condition, args, r.Text())
		default:
		}
		db := n.open()
		if db == nil {
			continue
		}
		found := 0
		// It fails as long as there are no tables.
		_ = db.QueryRow(`SELECT count(*) FROM trials WHERE state = 'running' AND `+condition, args...).Scan(&found)
		_ = db.Close()
		if found > 0 {
			return
		}
	}
	n.T.Fatalf("no trial with %s %v in five minutes:\n%s", condition, args, r.Text())
}

// whole checks that the database survived.
func (n *night) whole() {
	n.T.Helper()
	db := n.open()
	if db == nil {
		return
	}
	defer func() { _ = db.Close() }()
	var answer string
	if err := db.QueryRow(`PRAGMA integrity_check`).Scan(&answer); err != nil || answer != "ok" {
		n.T.Errorf("integrity_check: %s, %v", answer, err)
	}
}

// sums are the checksums of all finished trials, by number: of their row and of their load levels.
func (n *night) sums() map[int]string {
	n.T.Helper()
	sums := map[int]string{}
	db := n.open()
	if db == nil {
		return sums
	}
	defer func() { _ = db.Close() }()
	for _, query := range []string{
		`SELECT number, * FROM trials WHERE state NOT IN ('waiting', 'running') ORDER BY number`,
		`SELECT number, * FROM levels WHERE (study_id, number) IN (SELECT study_id, number FROM trials WHERE state NOT IN ('waiting', 'running')) ORDER BY number, position`,
	} {
		if err := addSums(db, query, sums); err != nil {
			n.T.Logf("no rows yet: %v", err) // killed before the tables were made
			return map[int]string{}
		}
	}
	return sums
}

func addSums(db *sql.DB, query string, sums map[int]string) error {
	rows, err := db.Query(query)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		number := 0
		values[0] = &number
		if err := rows.Scan(values...); err != nil {
			return err
		}
		text := sums[number]
		for _, v := range values[1:] {
			text += fmt.Sprintf("|%v", *v.(*any))
		}
		sums[number] = fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
	}
	return rows.Err()
}

// allVerified fails when the GPU memory of a finished trial was not proven to be back where it was.
func (n *night) allVerified() {
	n.T.Helper()
	db := n.open()
	if db == nil {
		n.T.Fatal("no database")
	}
	defer func() { _ = db.Close() }()
	var all, verified int
	err := db.QueryRow(`SELECT count(*), count(*) FILTER (WHERE release = 'verified') FROM trials WHERE state <> 'cancelled'`).Scan(&all, &verified)
	if err != nil || all == 0 || verified != all {
		n.T.Errorf("%d of %d trials gave everything back for certain, %v", verified, all, err)
	}
}

// kept fails when a trial that was finished before is another one now.
func kept(t *testing.T, before, after map[int]string) {
	t.Helper()
	for number, sum := range before {
		if after[number] != sum {
			t.Errorf("finished trial %d changed: checksum %.12s, was %.12s", number, after[number], sum)
		}
	}
}
