-- What the host of a study was when its first figures were taken (tuner.Machine as JSON); NULL for studies from before.

ALTER TABLE studies ADD COLUMN machine_json TEXT;
