ALTER TABLE config_versions DROP COLUMN changes;
