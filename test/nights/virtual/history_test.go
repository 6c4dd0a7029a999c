package virtual

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/store"
	"sgtune/tuner"
)

// A night in the database, whose loop reads little of trials that ended, is the same as one whose loop reads all of
// them (tuner.HistoryReader).
func TestLittleOfTheHistoryIsEnough(t *testing.T) {
	slow(t)
	t.Parallel()
	s, _ := study(t, "kimi")
	j := judge(t, s)
	play := func(name string, of func(*store.DB) tuner.Store) []string {
		db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), name+".db"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return night(t, j, Options{Seed: 3, Trials: 8, Store: of(db)}).Trace()
	}
	short := play("short", func(db *store.DB) tuner.Store { return db })
	whole := play("whole", func(db *store.DB) tuner.Store { return struct{ tuner.Store }{db} }) // no HistoryReader
	if d := cmp.Diff(whole, short); d != "" || len(whole) < 8 {
		t.Errorf("%d lines (-whole +short):\n%s", len(whole), d)
	}
}
