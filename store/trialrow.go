package store

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"sgtune/sglang"
	"sgtune/trial"
)

// trialColumns are the columns after study_id and number; encodeTrial and scanTrial follow their
// order.
var trialColumns = []string{
	"role", "state", "step", "outcome", "phase", "cause", "value", "best_level", "void", "adopted", "release",
	"created_at", "started_at", "ended_at",
	"config_json", "why", "sampler", "plan_json", "verdict_json", "memory_json", "low_water", "own_ram", "min_ram",
	"startup", "steps_json", "cache_json", "max_running", "canary_shrunk", "gpu_baseline_json", "sglang_version",
	"process_json", "port", "marker", "dir", "argv_json", "reason_json", "adoptions_json",
}

// addedColumns are columns that older schemas lack, by the version that brought them. A database that is
// only read is not migrated: what it lacks reads as NULL.
var addedColumns = map[string]int{"reason_json": 2, "second_json": 3, "machine_json": 4, "adoptions_json": 5}

// readable lists what to select for some columns from a database as it is.
func readable(ctx context.Context, tx *sql.Tx, wanted []string) ([]string, error) {
	var version int
	if err := tx.QueryRowContext(ctx, "SELECT user_version FROM pragma_user_version").Scan(&version); err != nil {
		return nil, err
	}
	columns := slices.Clone(wanted)
	for i, name := range columns {
		if version < addedColumns[name] {
			columns[i] = "NULL"
		}
	}
	return columns, nil
}

// encodeTrial lists a trial's column values, secrets masked.
func encodeTrial(t *trial.Trial) ([]any, error) {
	var e encoder
	var value any
	if t.Value != nil {
		value = *t.Value
	}
	verdict, process := maskVerdict(t.Verdict), t.Process
	process.Argv = maskArgv(process.Argv)
	cache := t.Cache
	cache.Note = sglang.Mask(cache.Note)
	row := []any{
		string(t.Role), string(t.State), string(t.Step), string(verdict.Outcome), string(verdict.Phase), verdict.Cause,
		value, t.Best, sglang.Mask(t.Void), t.Adopted, string(t.Release),
		e.time(t.CreatedAt), e.time(t.StartedAt), e.time(t.EndedAt),
		e.json(maskConfig(t.Config)), sglang.Mask(t.Why), t.Sampler, e.json(t.Plan), e.json(verdict), e.json(t.Memory),
		t.LowWater, t.OwnRAM, t.MinRAM,
		int64(t.Startup), e.json(t.Steps), e.json(cache), t.MaxRunning, t.CanaryShrunk, e.json(t.GPUBaseline), t.SGLang,
		e.json(process), t.Port, t.Marker, t.Dir, e.json(maskArgv(t.Argv)), nil, nil,
	}
	if t.Reason != nil {
		row[len(row)-2] = e.json(t.Reason)
	}
	if len(t.Adoptions) > 0 {
		row[len(row)-1] = e.json(t.Adoptions)
	}
	return row, e.err
}

// scanTrial reads one row of study_id, number and trialColumns. Levels come separately.
func scanTrial(rows *sql.Rows, study string) (*trial.Trial, error) {
	var d decoder
	var id int64
	var outcome, phase, cause string // columns for queries; the verdict's JSON has them too
	t := &trial.Trial{Study: study}
	err := rows.Scan(&id, &t.Number,
		&t.Role, &t.State, &t.Step, &outcome, &phase, &cause, &t.Value, &t.Best, &t.Void, &t.Adopted, &t.Release,
		d.time(&t.CreatedAt), d.time(&t.StartedAt), d.time(&t.EndedAt),
		d.json(&t.Config), &t.Why, &t.Sampler, d.json(&t.Plan), d.json(&t.Verdict), d.json(&t.Memory),
		&t.LowWater, &t.OwnRAM, &t.MinRAM,
		&t.Startup, d.json(&t.Steps), d.json(&t.Cache), &t.MaxRunning, &t.CanaryShrunk, d.json(&t.GPUBaseline), &t.SGLang,
		d.json(&t.Process), &t.Port, &t.Marker, &t.Dir, d.json(&t.Argv), d.maybe(&t.Reason), d.maybe(&t.Adoptions))
	if err == nil {
		err = d.finish()
	}
	return t, err
}

// selectTrials reads the trials that where picks, whole and with their levels.
func selectTrials(ctx context.Context, tx *sql.Tx, study, where string, args ...any) ([]*trial.Trial, error) {
	return selectAs(ctx, tx, allOf, study, where, args...)
}

// selectAs is selectTrials for as much of a trial as a form says.
func selectAs(ctx context.Context, tx *sql.Tx, f form, study, where string, args ...any) ([]*trial.Trial, error) {
	columns, err := readable(ctx, tx, trialColumns)
	if err != nil {
		return nil, err
	}
	for i, name := range columns {
		if expression, other := f.columns[name]; other {
			columns[i] = expression
		}
	}
	rows, err := tx.QueryContext(ctx, "SELECT study_id, number, "+strings.Join(columns, ", ")+" FROM trials "+where, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err is asked below
	var out []*trial.Trial
	byNumber := map[int]*trial.Trial{}
	for rows.Next() {
		t, err := scanTrial(rows, study)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
		byNumber[t.Number] = t
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return out, addLevels(ctx, tx, byNumber, f.report, strings.Split(where, " ORDER BY")[0], args...)
}
