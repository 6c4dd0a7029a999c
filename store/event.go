package store

import (
	"context"
	"database/sql"
	"fmt"

	"sgtune/sglang"
	"sgtune/tuner"
)

// AddEvent appends an event to a study.
func (db *DB) AddEvent(ctx context.Context, study string, e tuner.Event) error {
	var enc encoder
	op := fmt.Sprintf("store event %q of %s", e.Kind, study)
	at, config := enc.time(e.At), enc.json(maskConfig(e.Config))
	if enc.err != nil {
		return fmt.Errorf("%s: %w", op, enc.err)
	}
	return db.write(ctx, op, func(tx *sql.Tx) error {
		id, err := studyID(ctx, tx, study)
		if err != nil {
			return err
		}
		err = one(tx.ExecContext(ctx, "INSERT INTO events (study_id, at, kind, text, trial, config_json) VALUES (?, ?, ?, ?, ?, ?)",
			id, at, e.Kind, sglang.Mask(e.Text), e.Trial, config))
		if err != nil {
			return err
		}
		return touch(ctx, tx, id)
	})
}

// Events lists at most limit events of a study that came after the event with id after (0: from
// the first), oldest first. A negative after counts from the end: -50 gives the newest 50. last is
// the id of the last event returned, or after itself when there is none.
func (db *DB) Events(ctx context.Context, study string, after int64, limit int) (events []tuner.Event, last int64, err error) {
	last = max(after, 0)
	all, err := db.Happened(ctx, study, after, limit)
	for _, e := range all {
		events, last = append(events, e.Event), e.ID
	}
	return events, last, err
}

// Happened is Events with the id of each.
func (db *DB) Happened(ctx context.Context, study string, after int64, limit int) ([]tuner.Happened, error) {
	var events []tuner.Happened
	err := db.read(ctx, "read the events of "+study, func(tx *sql.Tx) error {
		id, err := studyID(ctx, tx, study)
		if err != nil {
			return err
		}
		query := "SELECT id, at, kind, text, trial, config_json FROM events WHERE study_id = ? AND id > ? ORDER BY id LIMIT ?"
		args := []any{id, after, limit}
		if after < 0 {
			query = `SELECT * FROM (SELECT id, at, kind, text, trial, config_json FROM events WHERE study_id = ?
				ORDER BY id DESC LIMIT ?) ORDER BY id LIMIT ?`
			args = []any{id, -after, limit}
		}
		rows, err := tx.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }() // rows.Err is asked below
		for rows.Next() {
			var d decoder
			var e tuner.Happened
			err := rows.Scan(&e.ID, d.time(&e.At), &e.Kind, &e.Text, &e.Trial, d.json(&e.Config))
			if err == nil {
				err = d.finish()
			}
			if err != nil {
				return err
			}
			events = append(events, e)
		}
		return rows.Err()
	})
	return events, err
}
