package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sgtune/trial"
	"sgtune/tuner"
)

// sortColumns are the expressions behind tuner.TrialSorts. Indexes hold those of memory_json (migration/0008_sorts.sql).
var sortColumns = map[string]string{
	"": "number", "number": "number", "value": "value", "clients": "best_level", "outcome": "outcome", "ended": "ended_at",
	"took":   "ended_at - started_at",
	"tokens": "nullif(json_extract(memory_json, '$.Tokens'), 0)", "free": "nullif(json_extract(memory_json, '$.AfterGraphGiB'), 0)",
}

// listed is a trial without the seconds of its levels, which are nine tenths of it: no list shows them.
var listed = form{report: "json_remove(report_json, '$.series')"}

// TrialPage reads the trials that a query picks, in its order, and how many it picks in all. Only those of
// the page are read, whole but for the series of their reports.
func (db *DB) TrialPage(ctx context.Context, study string, q tuner.TrialQuery) (page []*trial.Trial, total int, err error) {
	err = db.read(ctx, "read trials of "+study, func(tx *sql.Tx) error {
		id, err := studyID(ctx, tx, study)
		if err != nil {
			return err
		}
		where, args := conditions(id, q)
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM trials "+where, args...).Scan(&total); err != nil {
			return err
		}
		numbers, err := pick(ctx, tx, where, args, q)
		if err != nil || len(numbers) == 0 {
			return err
		}
		keys := []any{id}
		for _, n := range numbers {
			keys = append(keys, n)
		}
		page, err = selectAs(ctx, tx, listed, study, "WHERE study_id = ? AND number IN (?"+strings.Repeat(", ?", len(numbers)-1)+")", keys...)
		slices.SortFunc(page, func(a, b *trial.Trial) int { return slices.Index(numbers, a.Number) - slices.Index(numbers, b.Number) })
		return err
	})
	return page, total, err
}

// conditions are the WHERE clause of a query and its arguments.
func conditions(id int64, q tuner.TrialQuery) (where string, args []any) {
	where, args = "WHERE study_id = ?", []any{id}
	and := func(clause string, values ...any) { where, args = where+" AND "+clause, append(args, values...) }
	if q.State != "" {
		and("state = ?", string(q.State))
	}
	if q.Role != "" {
		and("role = ?", string(q.Role))
	}
	if q.Outcome != "" {
		and("outcome = ?", string(q.Outcome))
	}
	if q.Void {
		and("void <> ''")
	}
	for _, k := range q.Knobs {
		value, path := "json_extract(config_json, ?)", knobPath(k.Knob)
		if k.Min != nil || k.Max != nil {
			and("json_type(config_json, ?) IN ('integer', 'real')", path)
		}
		if k.Min != nil {
			and(value+" >= ?", path, *k.Min)
		}
		if k.Max != nil {
			and(value+" <= ?", path, *k.Max)
		}
		if k.Min == nil && k.Max == nil && len(k.Words) > 0 {
			words := []any{path, path}
			for _, w := range k.Words {
				words = append(words, w)
			}
			and("CASE json_type(config_json, ?) WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' ELSE CAST("+value+" AS TEXT) END IN (?"+
				strings.Repeat(", ?", len(k.Words)-1)+")", words...)
		}
	}
	return where, args
}

// knobPath is the JSON path of a knob. A quote cannot be written inside a quoted key of such a path, and no
// flag has one: what is left matches nothing.
func knobPath(knob string) string { return `$."` + strings.ReplaceAll(knob, `"`, "") + `"` }

// pick reads the numbers of a page's trials in the query's order.
func pick(ctx context.Context, tx *sql.Tx, where string, args []any, q tuner.TrialQuery) ([]int, error) {
	order, more, err := orderBy(q)
	if err != nil {
		return nil, err
	}
	limit := -1 // SQLite's word for none
	if q.Limit > 0 {
		limit = q.Limit
	}
	rows, err := tx.QueryContext(ctx, "SELECT number FROM trials "+where+order+" LIMIT ? OFFSET ?", append(append(args, more...), limit, max(0, q.Offset))...)
	if err != nil {
		return nil, err
	}
	return numbersOf(rows)
}

// orderBy is the ORDER BY clause of a query and its arguments.
func orderBy(q tuner.TrialQuery) (clause string, args []any, err error) {
	order, known := sortColumns[q.Sort]
	if knob, is := strings.CutPrefix(q.Sort, tuner.KnobSort); is {
		order, known, args = "json_extract(config_json, ?)", true, []any{knobPath(knob)}
	}
	if !known {
		return "", nil, fmt.Errorf("trials cannot be sorted by %q", q.Sort)
	}
	if order == "number" && (q.State != "" || q.Role != "" || q.Outcome != "" || q.Void) && len(q.Knobs) == 0 {
		order = "+number" // +: by the index of lists, not along the long rows
	}
	way := " ASC"
	if q.Desc {
		way = " DESC"
	}
	return " ORDER BY " + order + way + " NULLS LAST, number" + way, args, nil
}

func numbersOf(rows *sql.Rows) ([]int, error) {
	defer func() { _ = rows.Close() }() // rows.Err is asked below
	var out []int
	for rows.Next() {
		var n int
		if err := rows.Scan(&n); err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, rows.Err()
}

// Summary reads one study with its counts; tuner.ErrNoStudy when there is none.
func (db *DB) Summary(ctx context.Context, name string) (*tuner.Summary, error) {
	all, err := db.summaries(ctx, "read study "+name, "WHERE name = ?", name)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("study %s in %s: %w", name, db.path, tuner.ErrNoStudy)
	}
	return &all[0], nil
}

// Overview counts what is true of all trials of a study.
func (db *DB) Overview(ctx context.Context, study string) (*tuner.Overview, error) {
	var o tuner.Overview
	err := db.read(ctx, "count the trials of "+study, func(tx *sql.Tx) error {
		id, err := studyID(ctx, tx, study)
		if err != nil {
			return err
		}
		if err := countTrials(ctx, tx, id, &o); err != nil {
			return err
		}
		if o.Failures, err = failures(ctx, tx, id); err != nil {
			return err
		}
		rows, err := tx.QueryContext(ctx, "SELECT number FROM trials WHERE study_id = ? AND state = 'running' ORDER BY +number", id) // +: by the index of lists, not along the long rows
		if err != nil {
			return err
		}
		if o.Running, err = numbersOf(rows); err != nil {
			return err
		}
		if o.Baseline, err = number(ctx, tx, "role = 'baseline' ORDER BY +number DESC", id); err != nil {
			return err
		}
		o.Best, err = number(ctx, tx, "role <> 'confirm' ORDER BY value DESC, +number", id)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &o, nil
}

func countTrials(ctx context.Context, tx *sql.Tx, id int64, o *tuner.Overview) error {
	err := tx.QueryRowContext(ctx, `SELECT count(*), total(state NOT IN ('waiting', 'running')), total(state = 'failed' AND void = ''),
		total(state = 'pruned'), total(void <> ''), total(state = 'cancelled'), total(role <> 'confirm' AND started_at IS NOT NULL)
		FROM trials WHERE study_id = ?`, id).
		Scan(&o.Total, whole(&o.Finished), whole(&o.Failed), whole(&o.Pruned), whole(&o.Void), whole(&o.Cancelled), whole(&o.Launches))
	if err != nil {
		return err
	}
	const rejects = "FROM events WHERE study_id = ?1 AND kind = 'reject'"
	return tx.QueryRowContext(ctx, "SELECT (SELECT count(*) "+rejects+"), coalesce((SELECT text "+rejects+" ORDER BY id DESC LIMIT 1), '')", id).
		Scan(&o.Refused, &o.RefusedBy)
}

// whole scans a sum, which SQLite's total() gives as a real number.
func whole(n *int) sql.Scanner { return (*wholeNumber)(n) }

type wholeNumber int

// Scan implements sql.Scanner.
func (n *wholeNumber) Scan(v any) error {
	f, ok := v.(float64)
	if !ok {
		return fmt.Errorf("a sum came as %T", v)
	}
	*n = wholeNumber(f)
	return nil
}

// number is the first trial that has a value and counts, nil without one.
func number(ctx context.Context, tx *sql.Tx, rest string, id int64) (*int, error) {
	var n int
	err := tx.QueryRowContext(ctx, "SELECT number FROM trials WHERE study_id = ? AND state = 'complete' AND void = '' AND value IS NOT NULL AND "+rest+" LIMIT 1", id).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return &n, err
}

// fractionOf is a trial's mem-fraction-static where it is set; an index holds it (migration/0008_sorts.sql).
const fractionOf = `CASE json_type(config_json, '$."mem-fraction-static"') WHEN 'real' THEN json_extract(config_json, '$."mem-fraction-static"') END`

// failures groups the failed trials of a study by how they ended.
func failures(ctx context.Context, tx *sql.Tx, id int64) ([]tuner.FailureGroup, error) {
	rows, err := tx.QueryContext(ctx, `WITH f AS (SELECT outcome, cause, count(*) AS n, max(number) AS newest, min(number) AS oldest
			FROM trials WHERE study_id = ?1 AND state = 'failed' AND void = '' GROUP BY outcome, cause)
		SELECT outcome, cause, n, newest, (SELECT `+fractionOf+` FROM trials AS t WHERE t.study_id = ?1 AND t.state = 'failed' AND t.void = ''
			AND t.outcome = f.outcome AND t.cause = f.cause AND `+fractionOf+` IS NOT NULL ORDER BY `+fractionOf+` LIMIT 1)
		FROM f ORDER BY n DESC, oldest`, id)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err is asked below
	var out []tuner.FailureGroup
	for rows.Next() {
		var g tuner.FailureGroup
		if err := rows.Scan(&g.Outcome, &g.Cause, &g.Count, &g.Newest, &g.Lowest); err != nil {
			return nil, err
		}
		out = append(out, g)
	}
	return out, rows.Err()
}
