-- What happened to accounts, and who must be told.

-- Every event of an account. The body is the exact JSON that receivers get: it
-- is written once, so that each attempt sends and signs the same bytes.
-- Publishers may repeat an id: the key is per account, so that one account's
-- ids never hide another's.
CREATE TABLE account_events (
  seq          bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT account_events_pkey PRIMARY KEY,
  account_id   text NOT NULL CONSTRAINT account_events_account_fkey REFERENCES accounts (id) ON DELETE CASCADE,
  id           text NOT NULL CONSTRAINT account_events_id_length CHECK (length(id) BETWEEN 1 AND 100),
  type         text NOT NULL CONSTRAINT account_events_type_form CHECK (type ~ '^[A-Za-z0-9_.-]{1,128}$'),
  stream_id    text,
  recording_id text,
  error_code   text,
  occurred_at  timestamptz NOT NULL,
  created_at   timestamptz NOT NULL,
  body         bytea NOT NULL,
  CONSTRAINT account_events_id_key UNIQUE (account_id, id)
);
CREATE INDEX account_events_account_idx ON account_events (account_id, seq DESC);
CREATE INDEX account_events_error_idx ON account_events (account_id, seq DESC) WHERE error_code IS NOT NULL;
CREATE INDEX account_events_age_idx ON account_events (created_at);

CREATE TABLE webhook_subscriptions (
  id              text PRIMARY KEY CONSTRAINT webhook_subscriptions_id_form CHECK (id ~ '^wh_[0-9a-z]+$'),
  account_id      text NOT NULL CONSTRAINT webhook_subscriptions_account_fkey REFERENCES accounts (id) ON DELETE CASCADE,
  url             text NOT NULL CONSTRAINT webhook_subscriptions_url_length CHECK (length(url) BETWEEN 1 AND 2048),
  events          text[] NOT NULL CONSTRAINT webhook_subscriptions_events_some CHECK (cardinality(events) BETWEEN 1 AND 100),
  description     text NOT NULL DEFAULT '',
  status          text NOT NULL DEFAULT 'active' CONSTRAINT webhook_subscriptions_status_known CHECK (status IN ('active', 'paused', 'disabled')),
  disabled_reason text CONSTRAINT webhook_subscriptions_reason_known CHECK (disabled_reason IN ('gone', 'failing')),
  secret          bytea NOT NULL, -- sealed: see controlplane/webhooks/seal
  old_secret      bytea,          -- sealed; signs too until old_secret_until
  old_secret_until timestamptz,
  retry_schedule  integer[],      -- seconds before each retry; NULL: the platform's
  max_concurrency integer NOT NULL CONSTRAINT webhook_subscriptions_concurrency_range CHECK (max_concurrency BETWEEN 1 AND 256),
  rate_per_second integer CONSTRAINT webhook_subscriptions_rate_range CHECK (rate_per_second BETWEEN 1 AND 1000),
  rate_next_at    timestamptz,    -- when the next request may go, for all workers together
  ordered         boolean NOT NULL DEFAULT false,
  failing_since   timestamptz,    -- first failure after the last success
  created_at      timestamptz NOT NULL,
  updated_at      timestamptz NOT NULL
);
CREATE INDEX webhook_subscriptions_account_idx ON webhook_subscriptions (account_id, created_at DESC, id);

-- One event for one subscription. generation grows with every change of what
-- comes next, and each job names the generation it was made for: a job that
-- outlived its time (rescued after a crash, overtaken by a resend) finds
-- another number and does nothing.
--
-- subscription_id is no foreign key: its check would lock the subscription's
-- row in every transaction that emits an event, so that a stream could not
-- start while a webhook is being deleted, or would fail because one was. What
-- is left of a deleted subscription is never read, and goes with its events.
CREATE TABLE webhook_deliveries (
  id              bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT webhook_deliveries_pkey PRIMARY KEY,
  subscription_id text NOT NULL,
  event_seq       bigint NOT NULL CONSTRAINT webhook_deliveries_event_fkey REFERENCES account_events (seq) ON DELETE CASCADE,
  order_key       text, -- the stream, where the subscription wants order
  status          text NOT NULL DEFAULT 'pending' CONSTRAINT webhook_deliveries_status_known CHECK (status IN ('pending', 'held', 'succeeded', 'failed')),
  generation      integer NOT NULL DEFAULT 0,
  failures        integer NOT NULL DEFAULT 0, -- since the last (re)send; chooses the next delay
  error_code      text,
  next_attempt_at timestamptz,
  created_at      timestamptz NOT NULL,
  finished_at     timestamptz,
  CONSTRAINT webhook_deliveries_once UNIQUE (subscription_id, event_seq)
) WITH (fillfactor = 80);
CREATE INDEX webhook_deliveries_event_idx ON webhook_deliveries (event_seq);
-- The few that are looked for by state: what can be resent, released, or must wait its turn.
CREATE INDEX webhook_deliveries_failed_idx ON webhook_deliveries (subscription_id, id) WHERE status = 'failed';
CREATE INDEX webhook_deliveries_held_idx ON webhook_deliveries (subscription_id, id) WHERE status = 'held';
CREATE INDEX webhook_deliveries_order_idx ON webhook_deliveries (subscription_id, order_key, id) WHERE order_key IS NOT NULL AND status IN ('pending', 'held');

-- One request to a receiver. The row is committed before the first byte is
-- sent: what a receiver has seen is in this table, whatever crashes afterwards.
CREATE TABLE webhook_attempts (
  delivery_id      bigint NOT NULL CONSTRAINT webhook_attempts_delivery_fkey REFERENCES webhook_deliveries (id) ON DELETE CASCADE,
  number           integer NOT NULL,
  url              text NOT NULL,
  started_at       timestamptz NOT NULL,
  duration_ms      integer,
  outcome          text CONSTRAINT webhook_attempts_outcome_known CHECK (outcome IN ('succeeded', 'failed', 'interrupted')), -- NULL: under way
  status_code      integer,
  error            text,
  response_headers jsonb,
  response_body    bytea, -- the first bytes only
  next_attempt_at  timestamptz,
  CONSTRAINT webhook_attempts_pkey PRIMARY KEY (delivery_id, number)
) WITH (fillfactor = 60); -- each row is updated once, in place

-- Work over many deliveries, done in the background in small steps: resending
-- what failed since a time, or releasing what a pause held back.
CREATE TABLE webhook_recoveries (
  id              text PRIMARY KEY CONSTRAINT webhook_recoveries_id_form CHECK (id ~ '^rec_[0-9a-z]+$'),
  subscription_id text NOT NULL CONSTRAINT webhook_recoveries_subscription_fkey REFERENCES webhook_subscriptions (id) ON DELETE CASCADE,
  kind            text NOT NULL CONSTRAINT webhook_recoveries_kind_known CHECK (kind IN ('recover', 'release')),
  since           timestamptz NOT NULL,
  until           timestamptz NOT NULL,
  include_missed  boolean NOT NULL DEFAULT false,
  status          text NOT NULL DEFAULT 'running' CONSTRAINT webhook_recoveries_status_known CHECK (status IN ('running', 'completed')),
  total           bigint NOT NULL DEFAULT 0,
  resent          bigint NOT NULL DEFAULT 0,
  created_at      timestamptz NOT NULL,
  finished_at     timestamptz
);
CREATE INDEX webhook_recoveries_subscription_idx ON webhook_recoveries (subscription_id, created_at DESC);
