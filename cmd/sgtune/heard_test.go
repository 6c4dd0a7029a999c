package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sgtune/store"
	"sgtune/tuner"
)

// TestBeHeard says that this process lives as soon as its study's row is there, and takes what was asked on a page that only reads.
func TestBeHeard(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sgtune.db")
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := db.SaveStudy(t.Context(), &tuner.Record{Name: "s", State: tuner.StudyRunning}); err != nil {
		t.Fatal(err)
	}
	stop := (&night{study: &tuner.Study{Name: "s"}, db: db}).beHeard(t.Context())
	var pulse *tuner.Summary
	for range 500 {
		if pulse, err = db.Pulse(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		if !pulse.Heard.At.IsZero() {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	if pulse.Heard.PID != os.Getpid() || time.Since(pulse.Heard.At) > time.Minute || pulse.Silent(time.Now()) {
		t.Errorf("heard %+v", pulse.Heard)
	}
	page := askLater{path}
	asked, again, err := page.Ask(t.Context(), "s", tuner.Command{Kind: tuner.StopNow, At: time.Now(), By: "anna"})
	if err != nil || again {
		t.Fatalf("ask: %v, again %v", err, again)
	}
	if c, err := db.TakeCommand(t.Context(), "s"); err != nil || c == nil || c.ID != asked.ID || c.By != "anna" {
		t.Errorf("taken %+v, %v", c, err)
	}
	refused := (*tuner.Refusal)(nil)
	if _, _, err := page.Ask(t.Context(), "s", tuner.Command{Kind: tuner.Enqueue, At: time.Now().Add(time.Minute)}); !errors.As(err, &refused) {
		t.Errorf("a process that is gone was asked: %v", err)
	}
}
