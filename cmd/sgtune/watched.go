package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"sgtune/store"
	"sgtune/trial"
	"sgtune/tuner"
)

// watchedStore passes everything on to the database, shows what was stored, and names the files of
// raw samples in the database once a trial has ended.
type watchedStore struct {
	*store.DB
	show  *terminal
	files string // evidence of the study
}

var _ tuner.HistoryReader = watchedStore{}

// SaveTrial implements trial.Saver.
func (w watchedStore) SaveTrial(ctx context.Context, t *trial.Trial) error {
	if err := w.DB.SaveTrial(ctx, t); err != nil {
		return err
	}
	w.show.Saved(t)
	if !t.State.Finished() {
		return nil
	}
	// The row is safe; samples that cannot be named must not fail the trial.
	if err := w.SaveSamples(ctx, t.Study, t.Number, sampleFiles(w.files, t)...); err != nil {
		w.show.Say("the sample files of trial %d are not listed in the database: %v", t.Number, err)
	}
	return nil
}

// AddEvent implements tuner.Store.
func (w watchedStore) AddEvent(ctx context.Context, study string, e tuner.Event) error {
	if err := w.DB.AddEvent(ctx, study, e); err != nil {
		return err
	}
	w.show.Event(e)
	return nil
}

// sampleFiles lists the raw samples a trial left, one file a load level, one line a request.
func sampleFiles(files string, t *trial.Trial) []store.SampleFile {
	var out []store.SampleFile
	for _, l := range t.Levels {
		name := filepath.Join(fmt.Sprint(t.Number), fmt.Sprintf("level-%d.samples.jsonl", l.Concurrency))
		text, err := os.ReadFile(filepath.Join(files, name))
		if err != nil {
			continue
		}
		out = append(out, store.SampleFile{
			File: name, Concurrency: l.Concurrency, Count: int64(bytes.Count(text, []byte("\n"))), Bytes: int64(len(text)),
		})
	}
	return out
}
