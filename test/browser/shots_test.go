package browser_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sgtune/test/webbed"
	"sgtune/trial"
	"sgtune/tuner"
)

// largest is how many bytes a picture in the documentation may have.
const largest = 200_000

// pictured fills a site with a finished night and one that still runs.
func pictured(ctx context.Context, s *site) error {
	running := webbed.Make("qwen-chat", 14, 5)
	running.Record.State, running.Record.EndedAt, running.Record.Releases = tuner.StudyRunning, time.Time{}, ""
	last := running.Trials[len(running.Trials)-1]
	last.State, last.Step, last.EndedAt, last.Value, last.Best = trial.Running, trial.StepMeasure, time.Time{}, nil, 0
	for _, later := range []trial.Step{trial.StepStop, trial.StepReclaim, trial.StepSave} {
		delete(last.Steps, later)
	}
	return errors.Join(webbed.Fill(ctx, s.db, webbed.Make("kimi-overnight", 30, 7)), webbed.Fill(ctx, s.db, running))
}

// TestShots takes pictures of the pages; with SGTUNE_SHOTS=DIR they are kept there (make docs-img).
func TestShots(t *testing.T) {
	need(t)
	t.Parallel()
	wide := view{width: 1440, height: 900}
	for _, tt := range []struct {
		place
		view view
		to   string // what is scrolled to, "" = the top
	}{
		{place{"studies", "picture", "/"}, wide, ""},
		{place{"study", "picture", "/studies/kimi-overnight"}, wide, ""},
		{place{"study-dark", "picture", "/studies/kimi-overnight"}, view{width: 1440, height: 900, dark: true}, ""},
		{place{"study-phone", "states", "/studies/better"}, phone, ""},
		{place{"charts", "picture", "/studies/kimi-overnight"}, wide, ".charts"},
		{place{"charts-dark", "picture", "/studies/kimi-overnight"}, view{width: 1440, height: 900, dark: true}, "#chart-area"},
		{place{"running", "picture", "/studies/qwen-chat"}, wide, ""},
		{place{"trials", "picture", "/studies/kimi-overnight/trials"}, wide, ""},
		{place{"trial", "picture", "/studies/kimi-overnight/trials/2"}, wide, ""},
		{place{"log", "states", "/studies/better/trials/1?line=1500"}, wide, "#log"},
		{place{"compare", "picture", "/studies/kimi-overnight/compare?t=0,3,18"}, wide, ""},
		{place{"profile", "picture", "/studies/kimi-overnight/export"}, wide, ""},
		{place{"new", "picture", "/new"}, wide, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tb := tt.open(t, tt.view)
			if tt.to != "" {
				eval[int](tb, `document.querySelector("`+tt.to+`").scrollIntoView(), 0`)
			}
			picture := tb.shot()
			if len(picture) < 5_000 || len(picture) > largest {
				t.Errorf("%d bytes", len(picture))
			}
			if dir := os.Getenv("SGTUNE_SHOTS"); dir != "" {
				if err := os.WriteFile(filepath.Join(dir, tt.name+".png"), picture, 0o644); err != nil { //nolint:gosec // for everybody to see
					t.Fatal(err)
				}
			}
		})
	}
}
