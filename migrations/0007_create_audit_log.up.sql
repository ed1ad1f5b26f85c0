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
