-- What lists and counts of trials ask for, beside the long rows: a page of 10,000 trials takes milliseconds.

CREATE INDEX trials_lists ON trials (study_id, state, role, outcome, cause, value, best_level, void, started_at, ended_at);
