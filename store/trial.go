package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"sgtune/trial"
	"sgtune/tuner"
)

// ErrFinished is wrapped by the error of a save that would change a finished trial.
var ErrFinished = errors.New("a finished trial does not change")

// SaveTrial stores a trial's row and its load levels in one transaction. A new number is inserted, a
// known one is updated if its stored state may become the new one. A finished row takes nothing but
// a void mark; saving it again as it is does nothing, so a save may be retried.
func (db *DB) SaveTrial(ctx context.Context, t *trial.Trial) error {
	op := fmt.Sprintf("save trial %d of %s", t.Number, t.Study)
	values, err := encodeTrial(t)
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	levels, err := encodeLevels(t)
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return db.write(ctx, op, func(tx *sql.Tx) error {
		id, err := studyID(ctx, tx, t.Study)
		if err != nil {
			return err
		}
		stored, err := storedState(ctx, tx, id, t.Number)
		switch {
		case err != nil:
			return err
		case stored != "" && stored.Finished():
			return resave(ctx, tx, id, t, values, levels)
		}
		if err := saveLevels(ctx, tx, id, t.Number, levels); err != nil {
			return err
		}
		if stored == "" {
			err = insertTrial(ctx, tx, id, t.Number, values)
		} else {
			err = updateTrial(ctx, tx, id, t, values, stored)
		}
		if err != nil {
			return err
		}
		return touch(ctx, tx, id)
	})
}

// Trials lists all trials of a study, oldest first; none for a study that is not stored yet.
func (db *DB) Trials(ctx context.Context, study string) ([]*trial.Trial, error) {
	return db.trials(ctx, study, allOf)
}

func (db *DB) trials(ctx context.Context, study string, f form) ([]*trial.Trial, error) {
	var out []*trial.Trial
	err := db.read(ctx, "read the trials of "+study, func(tx *sql.Tx) error {
		id, err := studyID(ctx, tx, study)
		if errors.Is(err, tuner.ErrNoStudy) {
			return nil
		}
		if err != nil {
			return err
		}
		out, err = selectAs(ctx, tx, f, study, "WHERE study_id = ? ORDER BY number", id)
		return err
	})
	return out, err
}

// Trial reads one trial; tuner.ErrNoTrial when there is none.
func (db *DB) Trial(ctx context.Context, study string, number int) (*trial.Trial, error) {
	var out []*trial.Trial
	err := db.read(ctx, fmt.Sprintf("read trial %d of %s", number, study), func(tx *sql.Tx) error {
		id, err := studyID(ctx, tx, study)
		if err != nil {
			return err
		}
		out, err = selectTrials(ctx, tx, study, "WHERE study_id = ? AND number = ?", id, number)
		if err == nil && len(out) == 0 {
			err = fmt.Errorf("trial %d: %w", number, tuner.ErrNoTrial)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// storedState is the state of a stored trial, "" when there is no such row.
func storedState(ctx context.Context, tx *sql.Tx, id int64, number int) (trial.State, error) {
	var state trial.State
	err := tx.QueryRowContext(ctx, "SELECT state FROM trials WHERE study_id = ? AND number = ?", id, number).Scan(&state)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return state, err
}

func insertTrial(ctx context.Context, tx *sql.Tx, id int64, number int, values []any) error {
	query := "INSERT INTO trials (study_id, number, " + strings.Join(trialColumns, ", ") + ") VALUES (?, ?" +
		strings.Repeat(", ?", len(trialColumns)) + ")"
	return one(tx.ExecContext(ctx, query, append([]any{id, number}, values...)...))
}

// updateTrial moves a row on, guarded by the states that may become the new one: of two writers
// only one can finish a trial.
func updateTrial(ctx context.Context, tx *sql.Tx, id int64, t *trial.Trial, values []any, stored trial.State) error {
	from := []any{}
	for _, s := range []trial.State{trial.Waiting, trial.Running} {
		if s.CanBecome(t.State) || s == t.State {
			from = append(from, s)
		}
	}
	query := "UPDATE trials SET " + strings.Join(trialColumns, " = ?, ") + " = ? WHERE study_id = ? AND number = ? AND state IN (?" +
		strings.Repeat(", ?", max(len(from)-1, 0)) + ")"
	if len(from) == 0 {
		from = []any{nil}
	}
	args := append(append([]any{}, values...), id, t.Number)
	if err := one(tx.ExecContext(ctx, query, append(args, from...)...)); err != nil {
		return fmt.Errorf("trial %d cannot go from %s to %s: %w", t.Number, stored, t.State, err)
	}
	return nil
}

// resave is a save of a row that is already finished.
func resave(ctx context.Context, tx *sql.Tx, id int64, t *trial.Trial, values, levels []any) error {
	stored, err := selectTrials(ctx, tx, t.Study, "WHERE study_id = ? AND number = ?", id, t.Number)
	if err != nil {
		return err
	}
	old := stored[0]
	void := old.Void
	old.Void = t.Void
	oldValues, err := encodeTrial(old)
	if err != nil {
		return err
	}
	oldLevels, err := encodeLevels(old)
	if err != nil {
		return err
	}
	switch {
	case !equal(values, oldValues) || !equal(levels, oldLevels):
		return fmt.Errorf("trial %d is already %s: %w", t.Number, old.State, ErrFinished)
	case t.Void == void:
		return nil
	}
	if err := setVoid(ctx, tx, id, t.Number, t.Void); err != nil {
		return err
	}
	return touch(ctx, tx, id)
}

// equal compares column values, all of which are comparable.
func equal(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// one turns the result of a statement that must touch exactly one row into an error.
func one(result sql.Result, err error) error {
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n != 1 {
		err = fmt.Errorf("%d rows changed, want 1", n)
	}
	return err
}
