-- Times are Unix nanoseconds in host time, NULL where there is none. Columns that hold JSON end in
-- _json or are named like the object they hold; everything a query filters or sorts by is a column.

CREATE TABLE studies (
  id            INTEGER PRIMARY KEY,
  name          TEXT    NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 128),
  state         TEXT    NOT NULL CHECK (state IN ('running', 'complete', 'stopped')),
  reason        TEXT    NOT NULL DEFAULT '',
  simulated     INTEGER NOT NULL CHECK (simulated IN (0, 1)),
  host          TEXT    NOT NULL,
  objective     TEXT    NOT NULL,
  confirm       INTEGER NOT NULL,
  after_due     INTEGER NOT NULL CHECK (after_due IN (0, 1)),
  after_done    TEXT    NOT NULL,
  releases      TEXT    NOT NULL,
  source        TEXT    NOT NULL,
  identity_json TEXT    NOT NULL,
  verdict_json  TEXT    NOT NULL,
  candidate_json TEXT   NOT NULL,
  baseline_json TEXT    NOT NULL,
  server_json   TEXT    NOT NULL,
  created_at    INTEGER,
  started_at    INTEGER,
  ended_at      INTEGER,
  revision      INTEGER NOT NULL DEFAULT 0 -- grows with every change of the study or its rows
) STRICT;

CREATE TABLE trials (
  study_id     INTEGER NOT NULL REFERENCES studies (id),
  number       INTEGER NOT NULL CHECK (number >= 0),
  role         TEXT    NOT NULL CHECK (role IN ('baseline', 'search', 'confirm')),
  state        TEXT    NOT NULL CHECK (state IN ('waiting', 'running', 'complete', 'pruned', 'failed', 'cancelled')),
  step         TEXT    NOT NULL,
  outcome      TEXT    NOT NULL,
  phase        TEXT    NOT NULL,
  cause        TEXT    NOT NULL,
  value        REAL,
  best_level   INTEGER NOT NULL,
  void         TEXT    NOT NULL,
  adopted      INTEGER NOT NULL CHECK (adopted IN (0, 1)),
  release      TEXT    NOT NULL,
  created_at   INTEGER,
  started_at   INTEGER,
  ended_at     INTEGER,
  config_json  TEXT    NOT NULL,
  why          TEXT    NOT NULL,
  sampler      TEXT    NOT NULL,
  plan_json    TEXT    NOT NULL,
  verdict_json TEXT    NOT NULL,
  memory_json  TEXT    NOT NULL,
  low_water    INTEGER NOT NULL,
  own_ram      INTEGER NOT NULL,
  min_ram      INTEGER NOT NULL,
  startup      INTEGER NOT NULL,
  steps_json   TEXT    NOT NULL,
  cache_json   TEXT    NOT NULL,
  max_running  REAL    NOT NULL,
  canary_shrunk INTEGER NOT NULL CHECK (canary_shrunk IN (0, 1)),
  gpu_baseline_json TEXT NOT NULL,
  sglang_version TEXT NOT NULL,
  process_json TEXT    NOT NULL,
  port         INTEGER NOT NULL,
  marker       TEXT    NOT NULL,
  dir          TEXT    NOT NULL,
  argv_json    TEXT    NOT NULL,
  PRIMARY KEY (study_id, number)
) STRICT, WITHOUT ROWID;

-- Levels are written before their trial's row inside one transaction, so the reference is checked
-- at the commit.
CREATE TABLE levels (
  study_id     INTEGER NOT NULL,
  number       INTEGER NOT NULL,
  position     INTEGER NOT NULL,
  concurrency  INTEGER NOT NULL,
  output_tok_s REAL,
  valid        INTEGER,
  started_at   INTEGER,
  ended_at     INTEGER,
  report_json  TEXT    NOT NULL,
  PRIMARY KEY (study_id, number, position),
  FOREIGN KEY (study_id, number) REFERENCES trials (study_id, number) DEFERRABLE INITIALLY DEFERRED
) STRICT, WITHOUT ROWID;

-- Raw samples are files below the evidence folder; a row names one.
CREATE TABLE samples (
  study_id    INTEGER NOT NULL,
  number      INTEGER NOT NULL,
  file        TEXT    NOT NULL, -- relative to the study's evidence folder
  concurrency INTEGER NOT NULL,
  count       INTEGER NOT NULL CHECK (count >= 0),
  bytes       INTEGER NOT NULL CHECK (bytes >= 0),
  PRIMARY KEY (study_id, number, file),
  FOREIGN KEY (study_id, number) REFERENCES trials (study_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  study_id    INTEGER NOT NULL REFERENCES studies (id),
  at          INTEGER,
  kind        TEXT    NOT NULL,
  text        TEXT    NOT NULL,
  trial       INTEGER,
  config_json TEXT    NOT NULL
) STRICT;
CREATE INDEX events_by_study ON events (study_id, id);

CREATE TABLE commands (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  study_id    INTEGER NOT NULL REFERENCES studies (id),
  kind        TEXT    NOT NULL CHECK (kind IN ('stop_after_trial', 'stop_now', 'void', 'enqueue')),
  trial       INTEGER NOT NULL,
  text        TEXT    NOT NULL,
  config_json TEXT    NOT NULL,
  at          INTEGER,
  taken       INTEGER NOT NULL DEFAULT 0 CHECK (taken IN (0, 1))
) STRICT;
CREATE INDEX commands_untaken ON commands (study_id, id) WHERE taken = 0;

-- A finished trial does not change, except for its void mark (the only column not named here).
CREATE TRIGGER trials_finished BEFORE UPDATE OF
  study_id, number, role, state, step, outcome, phase, cause, value, best_level, adopted, release,
  created_at, started_at, ended_at, config_json, why, sampler, plan_json, verdict_json, memory_json,
  low_water, own_ram, min_ram, startup, steps_json, cache_json, max_running, canary_shrunk,
  gpu_baseline_json, sglang_version, process_json, port,
  marker, dir, argv_json
ON trials WHEN OLD.state NOT IN ('waiting', 'running')
BEGIN SELECT RAISE(ABORT, 'a finished trial does not change'); END;

CREATE TRIGGER trials_kept BEFORE DELETE ON trials
BEGIN SELECT RAISE(ABORT, 'a trial is never deleted'); END;

CREATE TRIGGER levels_added BEFORE INSERT ON levels
WHEN EXISTS (SELECT 1 FROM trials WHERE study_id = NEW.study_id AND number = NEW.number AND state NOT IN ('waiting', 'running'))
BEGIN SELECT RAISE(ABORT, 'a finished trial does not change'); END;

CREATE TRIGGER levels_changed BEFORE UPDATE ON levels
WHEN EXISTS (SELECT 1 FROM trials WHERE study_id = OLD.study_id AND number = OLD.number AND state NOT IN ('waiting', 'running'))
BEGIN SELECT RAISE(ABORT, 'a finished trial does not change'); END;

CREATE TRIGGER levels_removed BEFORE DELETE ON levels
WHEN EXISTS (SELECT 1 FROM trials WHERE study_id = OLD.study_id AND number = OLD.number AND state NOT IN ('waiting', 'running'))
BEGIN SELECT RAISE(ABORT, 'a finished trial does not change'); END;
