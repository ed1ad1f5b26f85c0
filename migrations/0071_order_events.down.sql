ALTER TABLE account_events DROP COLUMN xact;
