package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"sgtune/benchmark"
	"sgtune/trial"
	"sgtune/tuner"
)

// reportHead is how much of a report WalkTrials reads: the figures it keeps come first, what is long comes last.
const reportHead = 4096

// WalkTrials shows visit each trial of a study, oldest first, and keeps none: a study of 10,000 trials need not fit
// into memory. Of a report there are output tok/s with their interval, and TTFT. visit's error ends the walk and is
// returned; a study that is not stored yet has no trials.
func (db *DB) WalkTrials(ctx context.Context, study string, visit func(*trial.Trial) error) error {
	return db.read(ctx, "read the trials of "+study, func(tx *sql.Tx) error {
		id, err := studyID(ctx, tx, study)
		if errors.Is(err, tuner.ErrNoStudy) {
			return nil
		}
		if err != nil {
			return err
		}
		columns, err := readable(ctx, tx, trialColumns)
		if err != nil {
			return err
		}
		levels, err := tx.QueryContext(ctx, `SELECT number, concurrency, started_at, ended_at, substr(report_json, 1, ?)
			FROM levels WHERE study_id = ? ORDER BY number, position`, reportHead, id)
		if err != nil {
			return err
		}
		defer func() { _ = levels.Close() }() // its error is asked in next
		rows, err := tx.QueryContext(ctx, "SELECT study_id, number, "+strings.Join(columns, ", ")+" FROM trials WHERE study_id = ? ORDER BY number", id)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }() // rows.Err is asked below
		behind := levelCursor{rows: levels}
		for rows.Next() {
			t, err := scanTrial(rows, study)
			if err != nil {
				return err
			}
			if err := behind.fill(t); err != nil {
				return fmt.Errorf("levels of trial %d: %w", t.Number, err)
			}
			if err := visit(t); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

// levelCursor reads levels beside their trials: both come in the order of their numbers.
type levelCursor struct {
	rows   *sql.Rows
	number int // of next
	next   *trial.Level
	ended  bool
}

// fill gives a trial its levels.
func (c *levelCursor) fill(t *trial.Trial) error {
	for {
		if c.next == nil {
			if err := c.advance(); err != nil || c.ended {
				return err
			}
		}
		switch {
		case c.number > t.Number:
			return nil
		case c.number == t.Number:
			t.Levels = append(t.Levels, *c.next)
		}
		c.next = nil
	}
}

func (c *levelCursor) advance() error {
	if c.ended || !c.rows.Next() {
		c.ended = true
		return c.rows.Err()
	}
	var d decoder
	var l trial.Level
	var head []byte
	err := c.rows.Scan(&c.number, &l.Concurrency, d.time(&l.StartedAt), d.time(&l.EndedAt), &head)
	if err == nil {
		err = d.finish()
	}
	if err == nil {
		l.Report, err = readHead(head)
	}
	c.next = &l
	return err
}

// readHead reads the first figures of a report that may be cut off behind them; nil for none. A study has thousands of
// reports, and a whole JSON decoder would take most of the time: quotes inside of texts are escaped, so what looks like
// a key is one, and the keys wanted stand before any window that has the same.
func readHead(text []byte) (*benchmark.Report, error) {
	if !bytes.HasPrefix(text, []byte("{")) {
		return nil, nil //nolint:nilnil // a level that measured nothing has no report
	}
	r := &benchmark.Report{}
	for key, to := range map[string]any{
		`"output_tok_s":`: &r.OutputTokS, `"output_tok_s_low":`: &r.OutputLow, `"output_tok_s_high":`: &r.OutputHigh, `"ttft_ms":`: &r.TTFTms,
	} {
		_, value, found := bytes.Cut(text, []byte(key))
		end := bytes.IndexAny(value, ",}")
		if bytes.HasPrefix(value, []byte("{")) {
			end = bytes.IndexByte(value, '}') + 1
		}
		if !found || end < 1 {
			continue
		}
		if err := json.Unmarshal(value[:end], to); err != nil {
			return nil, fmt.Errorf("read %s of a report: %w", key, err)
		}
	}
	return r, nil
}
