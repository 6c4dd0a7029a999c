package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sgtune/sglang"
	"sgtune/tuner"
)

// maxName is the longest name of a study.
const maxName = 128

var validName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

// studyColumns are the columns of a record; encodeStudy and scanRecord follow their order.
var studyColumns = []string{
	"name", "state", "reason", "simulated", "host", "objective", "confirm", "after_due", "after_done", "releases", "source",
	"identity_json", "verdict_json", "candidate_json", "second_json", "baseline_json", "server_json", "created_at", "started_at", "ended_at", "machine_json",
}

// SaveStudy inserts or updates the study's row, found by its name.
func (db *DB) SaveStudy(ctx context.Context, r *tuner.Record) error {
	if !validName.MatchString(r.Name) {
		return fmt.Errorf("save study %q: a name is 1 to %d letters, digits and . _ -", r.Name, maxName)
	}
	values, err := encodeStudy(r)
	if err != nil {
		return fmt.Errorf("save study %s: %w", r.Name, err)
	}
	var sets []string
	for _, column := range studyColumns[1:] {
		sets = append(sets, column+" = excluded."+column)
	}
	query := "INSERT INTO studies (" + strings.Join(studyColumns, ", ") + ") VALUES (?" +
		strings.Repeat(", ?", len(studyColumns)-1) + ") ON CONFLICT (name) DO UPDATE SET " + strings.Join(sets, ", ") +
		", revision = revision + 1"
	return db.write(ctx, "save study "+r.Name, func(tx *sql.Tx) error {
		return one(tx.ExecContext(ctx, query, values...))
	})
}

// Study reads one study; tuner.ErrNoStudy when there is none.
func (db *DB) Study(ctx context.Context, name string) (*tuner.Record, error) {
	all, err := db.summaries(ctx, "read study "+name, "WHERE name = ?", name)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("study %s in %s: %w", name, db.path, tuner.ErrNoStudy)
	}
	return &all[0].Record, nil
}

// Studies lists all studies, the newest first.
func (db *DB) Studies(ctx context.Context) ([]tuner.Summary, error) {
	return db.summaries(ctx, "read the studies", "ORDER BY created_at DESC, id DESC")
}

// Retire gives a study and all its history another name (NAME.old-1, ...), so that its name is free
// for a fresh start and nothing is lost. One that was still running is stopped. The folder of
// evidence files has to be renamed alike by the caller.
func (db *DB) Retire(ctx context.Context, name string) (newName string, err error) {
	err = db.write(ctx, "retire study "+name, func(tx *sql.Tx) error {
		id, err := studyID(ctx, tx, name)
		if err != nil {
			return err
		}
		newName, err = freeName(ctx, tx, name)
		if err != nil {
			return err
		}
		return one(tx.ExecContext(ctx, `UPDATE studies SET name = ?, revision = revision + 1,
			reason = CASE state WHEN 'running' THEN 'replaced by a fresh start' ELSE reason END,
			state = CASE state WHEN 'running' THEN 'stopped' ELSE state END WHERE id = ?`, newName, id))
	})
	return newName, err
}

// freeName is the first of NAME.old-1, NAME.old-2, ... that is not taken.
func freeName(ctx context.Context, tx *sql.Tx, name string) (string, error) {
	for n := 1; ; n++ {
		suffix := fmt.Sprintf(".old-%d", n)
		candidate := name[:min(len(name), maxName-len(suffix))] + suffix
		_, err := studyID(ctx, tx, candidate)
		if errors.Is(err, tuner.ErrNoStudy) {
			return candidate, nil
		}
		if err != nil {
			return "", err
		}
	}
}

// encodeStudy lists a record's column values, secrets masked.
func encodeStudy(r *tuner.Record) ([]any, error) {
	var e encoder
	verdict := r.Verdict
	if verdict != nil {
		v := *verdict
		v.Why, v.Text, v.Config = sglang.Mask(v.Why), sglang.Mask(v.Text), maskConfig(v.Config)
		v.Notes = slices.Clone(v.Notes)
		for i := range v.Notes {
			v.Notes[i] = sglang.Mask(v.Notes[i])
		}
		verdict = &v
	}
	row := []any{
		r.Name, string(r.State), sglang.Mask(r.Reason), r.Simulated, r.Host, r.Objective, r.Confirm, r.AfterDue,
		sglang.Mask(r.AfterDone), sglang.Mask(r.Releases), r.Source,
		e.json(r.Identity), e.json(verdict), e.json(maskConfig(r.Candidate)), e.json(maskConfig(r.Second)), e.json(maskConfig(r.BaselineConfig)),
		e.json(maskServer(r.Server)), e.time(r.CreatedAt), e.time(r.StartedAt), e.time(r.EndedAt), e.json(r.Machine),
	}
	return row, e.err
}

// summaries reads the studies that tail picks.
func (db *DB) summaries(ctx context.Context, op, tail string, args ...any) ([]tuner.Summary, error) {
	var out []tuner.Summary
	err := db.read(ctx, op, func(tx *sql.Tx) error {
		columns, err := readable(ctx, tx, studyColumns)
		if err != nil {
			return err
		}
		heard, err := heardColumns(ctx, tx)
		if err != nil {
			return err
		}
		query := "SELECT " + strings.Join(columns, ", ") + ", " + heard + `, revision,
			(SELECT count(*) FROM trials WHERE study_id = studies.id),
			(SELECT count(*) FROM trials WHERE study_id = studies.id AND state NOT IN ('waiting', 'running'))
			FROM studies ` + tail
		rows, err := tx.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }() // rows.Err is asked below
		for rows.Next() {
			s, err := scanSummary(rows)
			if err != nil {
				return err
			}
			out = append(out, s)
		}
		return rows.Err()
	})
	return out, err
}

func scanSummary(rows *sql.Rows) (tuner.Summary, error) {
	var d decoder
	var s tuner.Summary
	r := &s.Record
	err := rows.Scan(
		&r.Name, &r.State, &r.Reason, &r.Simulated, &r.Host, &r.Objective, &r.Confirm, &r.AfterDue, &r.AfterDone, &r.Releases,
		&r.Source, d.json(&r.Identity), d.json(&r.Verdict), d.json(&r.Candidate), d.maybe(&r.Second), d.json(&r.BaselineConfig), d.json(&r.Server),
		d.time(&r.CreatedAt), d.time(&r.StartedAt), d.time(&r.EndedAt), d.maybe(&r.Machine),
		d.time(&s.Heard.At), d.time(&s.Heard.Since), &s.Heard.PID, &s.Revision, &s.Trials, &s.Finished)
	if err == nil {
		err = d.finish()
	}
	return s, err
}

// studyID finds a study's key by its name.
func studyID(ctx context.Context, q querier, name string) (int64, error) {
	var id int64
	err := q.QueryRowContext(ctx, "SELECT id FROM studies WHERE name = ?", name).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("study %s: %w", name, tuner.ErrNoStudy)
	}
	return id, err
}

// touch tells live pages that something of a study changed.
func touch(ctx context.Context, tx *sql.Tx, id int64) error {
	return one(tx.ExecContext(ctx, "UPDATE studies SET revision = revision + 1 WHERE id = ?", id))
}
