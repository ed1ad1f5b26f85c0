-- What is to happen when, and what has happened.

-- definition is the document that the customer wrote, with defaults filled in;
-- the columns beside it are what queries look for. next_fire_at is the one
-- clock of a schedule: whoever claims a due row moves it on in the transaction
-- that creates the execution, so a run is neither lost nor made twice.
CREATE TABLE schedules (
  id                    text PRIMARY KEY CONSTRAINT schedules_id_form CHECK (id ~ '^schedule_[0-9a-z]+$'),
  account_id            text NOT NULL CONSTRAINT schedules_account_fkey REFERENCES accounts (id) ON DELETE CASCADE,
  name                  text NOT NULL CONSTRAINT schedules_name_length CHECK (length(name) BETWEEN 1 AND 200),
  type                  text NOT NULL CONSTRAINT schedules_type_known CHECK (type IN ('stream_start', 'webhook', 'custom')),
  tags                  text[] NOT NULL,
  status                text NOT NULL CONSTRAINT schedules_status_known CHECK (status IN ('active', 'paused', 'completed')),
  definition            json NOT NULL, -- not jsonb: payloads keep the order of their members
  version               bigint NOT NULL DEFAULT 1, -- counts changes of the definition and status by the customer
  next_fire_at          timestamptz,
  execution_count       bigint NOT NULL DEFAULT 0,
  last_execution        timestamptz,
  last_execution_status text,
  idempotency_key       text,
  created_at            timestamptz NOT NULL,
  updated_at            timestamptz NOT NULL,
  CONSTRAINT schedules_name_key UNIQUE (account_id, name),
  CONSTRAINT schedules_idempotency_key UNIQUE (account_id, idempotency_key),
  -- Only an active schedule has a next run, and it always has one.
  CONSTRAINT schedules_next_when_active CHECK ((status = 'active') = (next_fire_at IS NOT NULL))
) WITH (fillfactor = 80);
CREATE INDEX schedules_due_idx ON schedules (next_fire_at) WHERE status = 'active';
CREATE INDEX schedules_account_idx ON schedules (account_id, created_at DESC, id DESC);

-- One row for each run that was due, and for each manual trigger. It is there
-- before anything is done, and outlives crashes of whoever does it:
--   waiting    behind an earlier run of the same schedule (overlap policy queue)
--   executing  has a job in the queue, or is being worked on (running)
-- and then success, failed or skipped, for good. lease_until is when somebody
-- else may take an executing row over; run_at is when its next attempt is due.
CREATE TABLE schedule_executions (
  id              text PRIMARY KEY CONSTRAINT schedule_executions_id_form CHECK (id ~ '^exec_[0-9a-z]+$'),
  schedule_id     text NOT NULL CONSTRAINT schedule_executions_schedule_fkey REFERENCES schedules (id) ON DELETE CASCADE,
  scheduled_for   timestamptz, -- NULL: triggered by hand
  status          text NOT NULL CONSTRAINT schedule_executions_status_known
                    CHECK (status IN ('waiting', 'executing', 'success', 'failed', 'skipped')),
  running         boolean NOT NULL DEFAULT false,
  run_at          timestamptz NOT NULL,
  lease_until     timestamptz NOT NULL,
  attempts        integer NOT NULL DEFAULT 0, -- begun, those cut short by a crash included
  failures        integer NOT NULL DEFAULT 0, -- ended in a failure: what retryPolicy counts
  executed_at     timestamptz NOT NULL,
  finished_at     timestamptz,
  duration_ms     bigint NOT NULL DEFAULT 0,
  result          jsonb,
  webhook         jsonb,
  logs            text[] NOT NULL DEFAULT '{}',
  idempotency_key text,
  -- The second guard of exactly once: also a faulty claim could not make a run twice.
  CONSTRAINT schedule_executions_once UNIQUE (schedule_id, scheduled_for),
  CONSTRAINT schedule_executions_idempotency_key UNIQUE (schedule_id, idempotency_key)
) WITH (fillfactor = 60); -- each row is updated two or three times, in place
CREATE INDEX schedule_executions_history_idx ON schedule_executions (schedule_id, executed_at DESC, id DESC);
-- The few that are not over: asked for by the overlap policy and by the takeover of lost runs.
CREATE INDEX schedule_executions_open_idx ON schedule_executions (schedule_id) WHERE status IN ('waiting', 'executing');
