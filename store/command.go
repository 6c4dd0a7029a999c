package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"sgtune/sglang"
	"sgtune/tuner"
)

// AddCommand leaves a request for the process that runs the study and returns its id; c.ID is not
// looked at.
func (db *DB) AddCommand(ctx context.Context, study string, c tuner.Command) (int64, error) {
	var e encoder
	op := fmt.Sprintf("store command %q for %s", c.Kind, study)
	at, config := e.time(c.At), e.json(maskConfig(c.Config))
	if e.err != nil {
		return 0, fmt.Errorf("%s: %w", op, e.err)
	}
	var id int64
	err := db.write(ctx, op, func(tx *sql.Tx) error {
		studyKey, err := studyID(ctx, tx, study)
		if err != nil {
			return err
		}
		err = tx.QueryRowContext(ctx, `INSERT INTO commands (study_id, kind, trial, text, config_json, at) VALUES (?, ?, ?, ?, ?, ?)
			RETURNING id`, studyKey, c.Kind, c.Trial, sglang.Mask(c.Text), config, at).Scan(&id)
		if err != nil {
			return err
		}
		return touch(ctx, tx, studyKey)
	})
	return id, err
}

// TakeCommand hands out the oldest command that nobody has taken, nil when there is none. Each is
// handed out once, whichever process asks.
func (db *DB) TakeCommand(ctx context.Context, study string) (*tuner.Command, error) {
	var taken *tuner.Command
	err := db.write(ctx, "take a command of "+study, func(tx *sql.Tx) error {
		id, err := studyID(ctx, tx, study)
		if err != nil {
			return err
		}
		var d decoder
		var c tuner.Command
		err = tx.QueryRowContext(ctx, `UPDATE commands SET taken = 1 WHERE taken = 0 AND id =
			(SELECT min(id) FROM commands WHERE study_id = ? AND taken = 0)
			RETURNING id, kind, trial, text, config_json, at`, id).
			Scan(&c.ID, &c.Kind, &c.Trial, &c.Text, d.json(&c.Config), d.time(&c.At))
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err == nil {
			err = d.finish()
		}
		if err != nil {
			return err
		}
		taken = &c
		return touch(ctx, tx, id)
	})
	if err != nil {
		return nil, err
	}
	return taken, nil
}
