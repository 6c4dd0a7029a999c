package store

import (
	"context"
	"database/sql"
	"fmt"
)

// SampleFile names a file of raw samples of one trial; the samples themselves are not in the
// database.
type SampleFile struct {
	File        string // relative to the study's evidence folder
	Concurrency int    // load level they belong to
	Count       int64
	Bytes       int64
}

// SaveSamples stores the names of a trial's sample files; a file that is known is updated.
func (db *DB) SaveSamples(ctx context.Context, study string, number int, files ...SampleFile) error {
	return db.write(ctx, fmt.Sprintf("save the samples of trial %d of %s", number, study), func(tx *sql.Tx) error {
		id, err := studyID(ctx, tx, study)
		if err != nil {
			return err
		}
		for _, f := range files {
			_, err := tx.ExecContext(ctx, `INSERT INTO samples (study_id, number, file, concurrency, count, bytes) VALUES (?, ?, ?, ?, ?, ?)
				ON CONFLICT (study_id, number, file) DO UPDATE SET
				concurrency = excluded.concurrency, count = excluded.count, bytes = excluded.bytes`,
				id, number, f.File, f.Concurrency, f.Count, f.Bytes)
			if err != nil {
				return fmt.Errorf("file %s: %w", f.File, err)
			}
		}
		return touch(ctx, tx, id)
	})
}

// Samples lists a trial's sample files by load level.
func (db *DB) Samples(ctx context.Context, study string, number int) ([]SampleFile, error) {
	var out []SampleFile
	err := db.read(ctx, fmt.Sprintf("read the samples of trial %d of %s", number, study), func(tx *sql.Tx) error {
		id, err := studyID(ctx, tx, study)
		if err != nil {
			return err
		}
		rows, err := tx.QueryContext(ctx, `SELECT file, concurrency, count, bytes FROM samples
			WHERE study_id = ? AND number = ? ORDER BY concurrency, file`, id, number)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }() // rows.Err is asked below
		for rows.Next() {
			var f SampleFile
			if err := rows.Scan(&f.File, &f.Concurrency, &f.Count, &f.Bytes); err != nil {
				return err
			}
			out = append(out, f)
		}
		return rows.Err()
	})
	return out, err
}
