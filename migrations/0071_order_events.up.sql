-- In which transaction an event was stored, so that a reader who follows an account's
-- events knows when all that comes before one has committed: numbers are given before
-- that, and in another order. Of events from before it is not known: nobody follows those.
ALTER TABLE account_events ADD COLUMN xact xid8;
ALTER TABLE account_events ALTER COLUMN xact SET DEFAULT pg_current_xact_id();
CREATE INDEX account_events_follow_idx ON account_events (account_id, xact, seq) WHERE xact IS NOT NULL;
