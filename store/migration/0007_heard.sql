-- Who asked for a command, which form it came from, and when it was taken (both Unix nanoseconds and the clock of the
-- machine sgtune runs on, as commands.at).

ALTER TABLE commands ADD COLUMN asked_by TEXT NOT NULL DEFAULT '';
ALTER TABLE commands ADD COLUMN once TEXT NOT NULL DEFAULT '';
ALTER TABLE commands ADD COLUMN taken_at INTEGER;

-- When the process that runs a study was last heard from. A row of its own: it is written every few seconds, and no page
-- loads itself again for it.
CREATE TABLE heard (
  study_id INTEGER PRIMARY KEY REFERENCES studies (id),
  at       INTEGER NOT NULL,
  since    INTEGER NOT NULL, -- when that process took the study up
  pid      INTEGER NOT NULL
) STRICT;
