package store

import (
	"context"
	"database/sql"

	"sgtune/trial"
)

// levelWidth is the number of column values of one level: those after study_id and number.
const levelWidth = 7

// encodeLevels lists the column values of all levels of a trial, one level after the other.
func encodeLevels(t *trial.Trial) ([]any, error) {
	var e encoder
	var out []any
	for i, l := range t.Levels {
		var output, valid any
		if l.Report != nil {
			output, valid = l.Report.OutputTokS, l.Report.Valid
		}
		out = append(out, i, l.Concurrency, output, valid, e.time(l.StartedAt), e.time(l.EndedAt), e.json(cleanReport(l.Report)))
	}
	return out, e.err
}

// saveLevels replaces the levels of an unfinished trial.
func saveLevels(ctx context.Context, tx *sql.Tx, id int64, number int, values []any) error {
	if _, err := tx.ExecContext(ctx, "DELETE FROM levels WHERE study_id = ? AND number = ?", id, number); err != nil {
		return err
	}
	for ; len(values) > 0; values = values[levelWidth:] {
		_, err := tx.ExecContext(ctx, `INSERT INTO levels
			(study_id, number, position, concurrency, output_tok_s, valid, started_at, ended_at, report_json)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`, append([]any{id, number}, values[:levelWidth]...)...)
		if err != nil {
			return err
		}
	}
	return nil
}

// addLevels reads the levels that where picks and appends each to its trial; report is the expression for its report.
func addLevels(ctx context.Context, tx *sql.Tx, trials map[int]*trial.Trial, report, where string, args ...any) error {
	rows, err := tx.QueryContext(ctx, `SELECT number, concurrency, started_at, ended_at, `+report+`
		FROM levels `+where+" ORDER BY number, position", args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err is asked below
	for rows.Next() {
		var d decoder
		var l trial.Level
		var number int
		err := rows.Scan(&number, &l.Concurrency, d.time(&l.StartedAt), d.time(&l.EndedAt), d.json(&l.Report))
		if err == nil {
			err = d.finish()
		}
		if err != nil {
			return err
		}
		if t := trials[number]; t != nil {
			t.Levels = append(t.Levels, l)
		}
	}
	return rows.Err()
}
