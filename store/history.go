package store

import (
	"context"

	"sgtune/trial"
)

// form is how much of a trial is read: the expressions to select for some of its columns instead of the columns
// themselves, and the one for its levels' reports.
type form struct {
	columns map[string]string
	report  string
}

// allOf is a trial with all that is stored of it.
var allOf = form{report: "report_json"}

// endedShort is a trial that ended without what only people read, which is two thirds of it in memory: how it was launched,
// what was printed, and figures that nothing is decided by. One that waits or runs is whole: it goes on, and is saved.
var endedShort = form{
	columns: map[string]string{
		"argv_json":         unended("argv_json", "'null'"),
		"process_json":      unended("process_json", "'null'"),
		"gpu_baseline_json": unended("gpu_baseline_json", "'null'"),
		"cache_json":        unended("cache_json", "'null'"),
		"reason_json":       unended("reason_json", "NULL"),
		"adoptions_json":    unended("adoptions_json", "NULL"),
		"steps_json":        "CASE WHEN role = 'baseline' OR state IN ('waiting', 'running') THEN steps_json ELSE 'null' END", // of a baseline they are what others are expected to take
		"verdict_json": unended("verdict_json", `json_remove(verdict_json, '$.numbers', '$.findings', '$.evidence', '$.evidence_also',
			'$.advice', '$.failing_ranks', '$.rejected_flags')`),
	},
	report: `CASE WHEN (SELECT state FROM trials AS t WHERE t.study_id = levels.study_id AND t.number = levels.number) IN ('waiting', 'running')
		THEN report_json ELSE json_remove(report_json, '$.buckets', '$.series', '$.itl_ms', '$.arrivals', '$.client', '$.slo', '$.setup',
		'$.workload', '$.energy', '$.flags', '$.errors', '$.advice') END`,
}

// unended is a column as it is for a trial that waits or runs, and otherwise for one that ended.
func unended(column, otherwise string) string {
	return "CASE WHEN state IN ('waiting', 'running') THEN " + column + " ELSE " + otherwise + " END"
}

// History implements tuner.HistoryReader.
func (db *DB) History(ctx context.Context, study string) ([]*trial.Trial, error) {
	return db.trials(ctx, study, endedShort)
}
