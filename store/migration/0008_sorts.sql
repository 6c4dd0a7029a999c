-- What lists of trials are sorted and failures are grouped by inside of memory_json and config_json: without these each page
-- of 10,000 trials reads and parses every row. The expressions are those of query.go, to the letter.

CREATE INDEX trials_tokens ON trials (study_id, nullif(json_extract(memory_json, '$.Tokens'), 0), number);
CREATE INDEX trials_free ON trials (study_id, nullif(json_extract(memory_json, '$.AfterGraphGiB'), 0), number);
CREATE INDEX trials_failed ON trials (study_id, outcome, cause,
  CASE json_type(config_json, '$."mem-fraction-static"') WHEN 'real' THEN json_extract(config_json, '$."mem-fraction-static"') END, state, void)
  WHERE state = 'failed' AND void = '';
