package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// Ask leaves a request for the process that runs the study and returns it as it is stored; c.ID is not looked at. The
// same request, from the same form or from somebody else while the first one waits or is in force, is stored once:
// again is then true and the first one returned. A request that nobody could take is a *tuner.Refusal.
func (db *DB) Ask(ctx context.Context, study string, c tuner.Command) (stored tuner.Command, again bool, err error) {
	op := fmt.Sprintf("store command %q for %s", c.Kind, study)
	var e encoder
	c.Config, c.Text, c.By = maskConfig(c.Config), sglang.Mask(c.Text), sglang.Mask(c.By)
	at, config := e.time(c.At), e.json(c.Config)
	if e.err != nil {
		return c, false, fmt.Errorf("%s: %w", op, e.err)
	}
	err = db.write(ctx, op, func(tx *sql.Tx) error {
		id, s, err := standing(ctx, tx, study)
		if err != nil {
			return err
		}
		first, err := asked(ctx, tx, id, s, c, config)
		if err != nil || first != nil {
			if first != nil {
				stored, again = *first, true
			}
			return err
		}
		target, err := targeted(ctx, tx, id, c)
		if err != nil {
			return err
		}
		if err := tuner.MayAsk(s, &c, target, c.At); err != nil {
			return err
		}
		err = tx.QueryRowContext(ctx, `INSERT INTO commands (study_id, kind, trial, text, config_json, at, asked_by, once)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`, id, c.Kind, c.Trial, c.Text, config, at, c.By, c.Once).Scan(&c.ID)
		if err != nil {
			return err
		}
		stored = c
		return touch(ctx, tx, id)
	})
	if refused := (*tuner.Refusal)(nil); errors.As(err, &refused) {
		err = refused // it is for a person: the file's name says nothing there
	}
	return stored, again, err
}

// standing is what tuner.MayAsk has to know of a study.
func standing(ctx context.Context, tx *sql.Tx, study string) (int64, *tuner.Summary, error) {
	var d decoder
	var id int64
	s := &tuner.Summary{Record: tuner.Record{Name: study}}
	err := tx.QueryRowContext(ctx, `SELECT s.id, s.state, h.at, h.since, coalesce(h.pid, 0) FROM studies AS s
		LEFT JOIN heard AS h ON h.study_id = s.id WHERE s.name = ?`, study).
		Scan(&id, &s.State, d.time(&s.Heard.At), d.time(&s.Heard.Since), &s.Heard.PID)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil, fmt.Errorf("study %s: %w", study, tuner.ErrNoStudy)
	}
	if err == nil {
		err = d.finish()
	}
	return id, s, err
}

// targeted is the trial that a command is about, nil without one.
func targeted(ctx context.Context, tx *sql.Tx, study int64, c tuner.Command) (*trial.Trial, error) {
	if c.Kind != tuner.VoidTrial {
		return nil, nil
	}
	t := &trial.Trial{Number: c.Trial}
	err := tx.QueryRowContext(ctx, "SELECT state, void FROM trials WHERE study_id = ? AND number = ?", study, c.Trial).Scan(&t.State, &t.Void)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return t, err
}

const commandColumns = "id, kind, trial, text, config_json, at, asked_by, once, taken_at"

// asked is the command that c repeats, nil without one: of the same form; or, while somebody runs the study, the same one that still
// waits, or that this process has taken, so that it is in force for as long as the process lives. What became of configurations that
// were taken is the tuner's to know.
func asked(ctx context.Context, tx *sql.Tx, study int64, s *tuner.Summary, c tuner.Command, config string) (*tuner.Command, error) {
	alive := s.State == tuner.StudyRunning && !s.Silent(c.At)
	since := s.Heard.Since
	if since.IsZero() { // nobody was heard: what was taken is past
		since = c.At
	}
	first, err := scanCommand(tx.QueryRowContext(ctx, "SELECT "+commandColumns+` FROM commands WHERE study_id = ?1 AND (once <> '' AND once = ?2 OR ?7 AND (
		kind = ?3 AND kind = 'enqueue' AND config_json = ?4 AND taken = 0
		OR kind = ?3 AND kind = 'void' AND trial = ?5 AND (taken = 0 OR at >= ?6)
		OR kind IN (?3, 'stop_now') AND ?3 IN ('stop_now', 'stop_after_trial') AND (taken = 0 OR at >= ?6))) ORDER BY id LIMIT 1`,
		study, c.Once, c.Kind, config, c.Trial, since.UnixNano(), alive))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return first, err
}

// scanner is what *sql.Row and *sql.Rows have in common.
type scanner interface{ Scan(dest ...any) error }

func scanCommand(row scanner) (*tuner.Command, error) {
	var d decoder
	var c tuner.Command
	err := row.Scan(&c.ID, &c.Kind, &c.Trial, &c.Text, d.json(&c.Config), d.time(&c.At), &c.By, &c.Once, d.time(&c.TakenAt))
	if err == nil {
		err = d.finish()
	}
	return &c, err
}

// Asked lists the newest commands of a study, newest first, at most limit.
func (db *DB) Asked(ctx context.Context, study string, limit int) ([]tuner.Command, error) {
	var out []tuner.Command
	err := db.read(ctx, "read the commands of "+study, func(tx *sql.Tx) error {
		id, err := studyID(ctx, tx, study)
		if err != nil {
			return err
		}
		if there, err := hasColumn(ctx, tx, "commands", "asked_by"); err != nil || !there {
			return err // an older database that is only read: nobody runs it, nothing is asked
		}
		rows, err := tx.QueryContext(ctx, "SELECT "+commandColumns+" FROM commands WHERE study_id = ? ORDER BY id DESC LIMIT ?", id, limit)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }() // rows.Err is asked below
		for rows.Next() {
			c, err := scanCommand(rows)
			if err != nil {
				return err
			}
			out = append(out, *c)
		}
		return rows.Err()
	})
	return out, err
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
		c, err := scanCommand(tx.QueryRowContext(ctx, `UPDATE commands SET taken = 1, taken_at = ?2 WHERE taken = 0 AND id =
			(SELECT min(id) FROM commands WHERE study_id = ?1 AND taken = 0) RETURNING `+commandColumns, id, time.Now().UnixNano()))
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		taken = c
		return touch(ctx, tx, id)
	})
	if err != nil {
		return nil, err
	}
	return taken, nil
}
