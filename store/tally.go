package store

import (
	"context"
	"database/sql"

	"sgtune/tuner"
)

// Tally counts the trials of all studies by how they stand, in the order of studies and states.
func (db *DB) Tally(ctx context.Context) ([]tuner.Tally, error) {
	var out []tuner.Tally
	err := db.read(ctx, "count the trials", func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT s.name, t.state, t.outcome, t.void <> '', count(*) FROM trials AS t JOIN studies AS s ON s.id = t.study_id
			GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4`)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }() // rows.Err is asked below
		for rows.Next() {
			var n tuner.Tally
			if err := rows.Scan(&n.Study, &n.State, &n.Outcome, &n.Void, &n.Count); err != nil {
				return err
			}
			out = append(out, n)
		}
		return rows.Err()
	})
	return out, err
}
