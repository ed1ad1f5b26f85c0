-- What was changed, by whom and from where. Rows are only ever added; what
-- before and after hold is chosen by the writer and never a secret.
CREATE TABLE audit_log (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at         timestamptz NOT NULL DEFAULT clock_timestamp(),
  actor      text NOT NULL, -- key_…, sess_…, or system
  address    text NOT NULL, -- empty: not over HTTP
  request_id text NOT NULL,
  account_id text,          -- whose thing was changed; it may be gone since, so no foreign key
  action     text NOT NULL CONSTRAINT audit_log_action_form CHECK (action ~ '^[a-z_]+\.[a-z_]+$'),
  target     text NOT NULL,
  before     jsonb,
  after      jsonb
);
CREATE INDEX audit_log_account_idx ON audit_log (account_id, id DESC);
CREATE INDEX audit_log_target_idx ON audit_log (target, id DESC);

-- First answers to requests with an Idempotency-Key, for 24 hours. An answer may
-- hold a secret that is stored nowhere else, so it is encrypted by a key that
-- takes the client's Idempotency-Key to derive, of which only a hash is here.
CREATE TABLE idempotent_answers (
  scope      bytea PRIMARY KEY CONSTRAINT idempotent_answers_scope_length CHECK (octet_length(scope) = 32),
  request    bytea NOT NULL CONSTRAINT idempotent_answers_request_length CHECK (octet_length(request) = 32),
  answer     bytea NOT NULL,
  created_at timestamptz NOT NULL
);
CREATE INDEX idempotent_answers_created_idx ON idempotent_answers (created_at);

-- People are invited, join by setting a password, and may be removed. A removed
-- one stays as a row, because sessions and the audit log name it; the address is
-- free again.
ALTER TABLE users
  ADD COLUMN invitation    bytea CONSTRAINT users_invitation_length CHECK (octet_length(invitation) = 32), -- SHA-256 of the token
  ADD COLUMN invited_until timestamptz,
  ADD COLUMN removed_at    timestamptz,
  ALTER COLUMN password_hash DROP NOT NULL, -- NULL until the invitation is accepted
  ADD CONSTRAINT users_invited_or_joined CHECK ((password_hash IS NULL) = (invitation IS NOT NULL) OR removed_at IS NOT NULL),
  DROP CONSTRAINT users_email_key;
CREATE UNIQUE INDEX users_email_key ON users (email) WHERE removed_at IS NULL;
CREATE UNIQUE INDEX users_invitation_key ON users (invitation);
CREATE INDEX users_account_idx ON users (account_id, created_at, id);
CREATE INDEX sessions_user_idx ON sessions (user_id);

-- Invoices come from whatever makes them, by import; an open one past its due
-- time makes the account unpaid, which its keys' records at the edges show.
CREATE TABLE invoices (
  id           text PRIMARY KEY,
  account_id   text NOT NULL CONSTRAINT invoices_account_fkey REFERENCES accounts (id) ON DELETE CASCADE,
  number       text NOT NULL CONSTRAINT invoices_number_length CHECK (length(number) BETWEEN 1 AND 100),
  status       text NOT NULL CONSTRAINT invoices_status_known CHECK (status IN ('open', 'paid', 'void')),
  currency     text NOT NULL CONSTRAINT invoices_currency_form CHECK (currency ~ '^[A-Z]{3}$'),
  amount       bigint NOT NULL CONSTRAINT invoices_amount_positive CHECK (amount >= 0), -- in the currency's smallest unit
  period_start date NOT NULL,
  period_end   date NOT NULL,
  issued_at    timestamptz NOT NULL,
  due_at       timestamptz NOT NULL,
  CONSTRAINT invoices_number_key UNIQUE (account_id, number),
  CONSTRAINT invoices_period_order CHECK (period_start <= period_end)
);
CREATE INDEX invoices_overdue_idx ON invoices (due_at) WHERE status = 'open';
ALTER TABLE accounts ADD COLUMN unpaid boolean NOT NULL DEFAULT false;
CREATE INDEX accounts_unpaid_idx ON accounts (id) WHERE unpaid;

-- A customer may move to these plans without asking; others are the operator's
-- to give.
ALTER TABLE plans ADD COLUMN self_serve boolean NOT NULL DEFAULT false;
UPDATE plans SET self_serve = true WHERE name IN ('free', 'pro');

-- Housekeeping looks for what has ended, every minute, among millions.
CREATE INDEX api_keys_ended_idx ON api_keys (expires_at) WHERE revoked_at IS NULL;
CREATE INDEX sessions_ended_idx ON sessions (expires_at);
