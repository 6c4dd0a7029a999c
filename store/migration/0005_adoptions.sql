-- When a trial's living server was taken over from a sgtune that had died, and by which (trial.Adoption as JSON); NULL for
-- never.

ALTER TABLE trials ADD COLUMN adoptions_json TEXT;

-- The new column does not change either, once its trial is finished.
DROP TRIGGER trials_finished;
CREATE TRIGGER trials_finished BEFORE UPDATE OF
  study_id, number, role, state, step, outcome, phase, cause, value, best_level, adopted, release,
  created_at, started_at, ended_at, config_json, why, sampler, plan_json, verdict_json, memory_json,
  low_water, own_ram, min_ram, startup, steps_json, cache_json, max_running, canary_shrunk,
  gpu_baseline_json, sglang_version, process_json, port,
  marker, dir, argv_json, reason_json, adoptions_json
ON trials WHEN OLD.state NOT IN ('waiting', 'running')
BEGIN SELECT RAISE(ABORT, 'a finished trial does not change'); END;
