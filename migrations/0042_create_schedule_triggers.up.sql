-- Runs that were triggered by hand and may not have ended yet, by account: what
-- an account may have pending is counted here. Rows of runs that have ended are
-- dropped by the account's next trigger.
CREATE TABLE schedule_triggers (
  execution_id text PRIMARY KEY CONSTRAINT schedule_triggers_execution_fkey REFERENCES schedule_executions (id) ON DELETE CASCADE,
  schedule_id  text NOT NULL,
  account_id   text NOT NULL
);
CREATE INDEX schedule_triggers_account_idx ON schedule_triggers (account_id);
