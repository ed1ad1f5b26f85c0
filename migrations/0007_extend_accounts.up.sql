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
