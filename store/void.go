package store

import (
	"context"
	"database/sql"
	"fmt"

	"sgtune/sglang"
	"sgtune/tuner"
)

// VoidTrial marks a finished trial as contaminated: it is not ranked. Nothing else of it changes.
func (db *DB) VoidTrial(ctx context.Context, study string, number int, reason string) error {
	op := fmt.Sprintf("void trial %d of %s", number, study)
	return db.write(ctx, op, func(tx *sql.Tx) error {
		id, err := studyID(ctx, tx, study)
		if err != nil {
			return err
		}
		state, err := storedState(ctx, tx, id, number)
		switch {
		case err != nil:
			return err
		case state == "":
			return fmt.Errorf("trial %d: %w", number, tuner.ErrNoTrial)
		case !state.Finished():
			return fmt.Errorf("trial %d is still %s; only a finished trial can be void", number, state)
		}
		if err := setVoid(ctx, tx, id, number, reason); err != nil {
			return err
		}
		return touch(ctx, tx, id)
	})
}

func setVoid(ctx context.Context, tx *sql.Tx, id int64, number int, reason string) error {
	return one(tx.ExecContext(ctx, `UPDATE trials SET void = ? WHERE study_id = ? AND number = ? AND state NOT IN ('waiting', 'running')`,
		sglang.Mask(reason), id, number))
}
