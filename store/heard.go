package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"sgtune/tuner"
)

// Hear notes a sign of life of the process that runs a study. Live pages are not told: they look at it themselves.
func (db *DB) Hear(ctx context.Context, study string, h tuner.Heard) error {
	return db.write(ctx, "note that the tuner of "+study+" lives", func(tx *sql.Tx) error {
		id, err := studyID(ctx, tx, study)
		if err != nil {
			return err
		}
		return hear(ctx, tx, id, h)
	})
}

// Pulse is Summary without what takes time to read and count: name, state, sign of life and revision.
func (db *DB) Pulse(ctx context.Context, study string) (*tuner.Summary, error) {
	all, err := db.pulses(ctx, "look at study "+study, "WHERE name = ?", study)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("study %s: %w", study, tuner.ErrNoStudy)
	}
	return &all[0], nil
}

// Pulses is Pulse of every study, by name.
func (db *DB) Pulses(ctx context.Context) ([]tuner.Summary, error) {
	return db.pulses(ctx, "look at the studies", "ORDER BY name")
}

func (db *DB) pulses(ctx context.Context, op, tail string, args ...any) ([]tuner.Summary, error) {
	var out []tuner.Summary
	err := db.read(ctx, op, func(tx *sql.Tx) error {
		heard, err := heardColumns(ctx, tx)
		if err != nil {
			return err
		}
		rows, err := tx.QueryContext(ctx, "SELECT name, state, revision, "+heard+" FROM studies "+tail, args...)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }() // rows.Err is asked below
		for rows.Next() {
			var d decoder
			var s tuner.Summary
			err := rows.Scan(&s.Name, &s.State, &s.Revision, d.time(&s.Heard.At), d.time(&s.Heard.Since), &s.Heard.PID)
			if err == nil {
				err = d.finish()
			}
			if err != nil {
				return err
			}
			out = append(out, s)
		}
		return rows.Err()
	})
	return out, err
}

// Arrive is Hear for a process that takes a study up. A stop that an earlier process did not take any more was meant for
// that one: it is closed and told as an event, and does not stop this one.
func (db *DB) Arrive(ctx context.Context, study string, h tuner.Heard) error {
	op := "take up " + study
	return db.write(ctx, op, func(tx *sql.Tx) error {
		id, err := studyID(ctx, tx, study)
		if err != nil {
			return err
		}
		late, err := lateStops(ctx, tx, id, h)
		if err != nil {
			return err
		}
		for _, c := range late {
			text := fmt.Sprintf("%q, asked for at %s, came too late for the run it was meant for: nothing was stopped",
				strings.ReplaceAll(c.Kind, "_", " "), c.At.Local().Format("15:04:05"))
			_, err := tx.ExecContext(ctx, "INSERT INTO events (study_id, at, kind, text, config_json) VALUES (?, ?, 'command', ?, 'null')", id, h.At.UnixNano(), text)
			if err != nil {
				return err
			}
		}
		return errors.Join(hear(ctx, tx, id, h), touch(ctx, tx, id))
	})
}

func hear(ctx context.Context, tx *sql.Tx, id int64, h tuner.Heard) error {
	return one(tx.ExecContext(ctx, `INSERT INTO heard (study_id, at, since, pid) VALUES (?, ?, ?, ?)
		ON CONFLICT (study_id) DO UPDATE SET at = excluded.at, since = excluded.since, pid = excluded.pid`,
		id, h.At.UnixNano(), h.Since.UnixNano(), h.PID))
}

// lateStops closes the stops that nobody took before h's process came.
func lateStops(ctx context.Context, tx *sql.Tx, id int64, h tuner.Heard) ([]tuner.Command, error) {
	rows, err := tx.QueryContext(ctx, `UPDATE commands SET taken = 1 WHERE study_id = ? AND taken = 0 AND at < ?
		AND kind IN ('stop_after_trial', 'stop_now') RETURNING kind, at`, id, h.Since.UnixNano())
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err is asked below
	var out []tuner.Command
	for rows.Next() {
		var d decoder
		var c tuner.Command
		err := rows.Scan(&c.Kind, d.time(&c.At))
		if err == nil {
			err = d.finish()
		}
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, rows.Err()
}

// heardColumns are what to select beside a study for its Heard: databases of older versions, which are only read, have
// none.
func heardColumns(ctx context.Context, tx *sql.Tx) (string, error) {
	there, err := hasColumn(ctx, tx, "heard", "at")
	if err != nil || !there {
		return "NULL, NULL, 0", err
	}
	const of = " FROM heard WHERE study_id = studies.id)"
	return "(SELECT at" + of + ", (SELECT since" + of + ", coalesce((SELECT pid" + of + ", 0)", nil
}

func hasColumn(ctx context.Context, tx *sql.Tx, table, column string) (bool, error) {
	var n int
	err := tx.QueryRowContext(ctx, "SELECT count(*) FROM pragma_table_info(?) WHERE name = ?", table, column).Scan(&n)
	return n > 0, err
}
