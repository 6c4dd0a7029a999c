-- The second candidate of a confirmation, fixed with the first (a configuration as JSON); NULL for none.

ALTER TABLE studies ADD COLUMN second_json TEXT;
