-- How much a version differs from the one before it, for the history, which
-- would otherwise read whole documents.
ALTER TABLE config_versions ADD COLUMN changes integer NOT NULL DEFAULT 0
  CONSTRAINT config_versions_changes_positive CHECK (changes >= 0);
