-- A stream that was started waits for its publisher: it is live for programs of before,
-- which know no other word, and starting for those that read this column, which holds
-- the status from which it was started. Empty: it does not wait.
ALTER TABLE media_streams ADD COLUMN started_from text NOT NULL DEFAULT '';

-- Until then the bytes of a recording that failed are kept, and it can be tried again.
-- Null: there is nothing to try.
ALTER TABLE media_assets ADD COLUMN retry_until timestamptz;
