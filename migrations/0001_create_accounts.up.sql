-- Who may call, and what every edge must know about it.

CREATE TABLE accounts (
  id         text PRIMARY KEY CONSTRAINT accounts_id_form CHECK (id ~ '^acct_[0-9a-z]{13}$'),
  name       text NOT NULL CONSTRAINT accounts_name_length CHECK (length(name) BETWEEN 1 AND 200),
  plan       text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE users (
  id            text PRIMARY KEY,
  account_id    text NOT NULL CONSTRAINT users_account_fkey REFERENCES accounts (id) ON DELETE CASCADE,
  email         text NOT NULL CONSTRAINT users_email_lower CHECK (email = lower(email)),
  password_hash text NOT NULL, -- argon2id, PHC string
  role          text NOT NULL CONSTRAINT users_role_known CHECK (role IN ('owner', 'admin', 'member')),
  created_at    timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT users_email_key UNIQUE (email)
);

-- A session is a row so that it can be ended before its token expires.
CREATE TABLE sessions (
  id         text PRIMARY KEY,
  user_id    text NOT NULL CONSTRAINT sessions_user_fkey REFERENCES users (id) ON DELETE CASCADE,
  scopes     text[] NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  revoked_at timestamptz
);

-- ES256 keys that sign session tokens. A retired key still verifies until its
-- last token has expired.
CREATE TABLE signing_keys (
  kid         text PRIMARY KEY,
  private_der bytea NOT NULL,
  created_at  timestamptz NOT NULL DEFAULT now(),
  retired_at  timestamptz
);

-- Only the SHA-256 of a key's text is stored: a copy of this table opens nothing.
CREATE TABLE api_keys (
  id         text PRIMARY KEY CONSTRAINT api_keys_id_form CHECK (id ~ '^key_[0-9a-z]{13}$'),
  account_id text NOT NULL CONSTRAINT api_keys_account_fkey REFERENCES accounts (id) ON DELETE CASCADE,
  name       text NOT NULL CONSTRAINT api_keys_name_length CHECK (length(name) BETWEEN 1 AND 200),
  hash       bytea NOT NULL CONSTRAINT api_keys_hash_length CHECK (octet_length(hash) = 32),
  scopes     text[] NOT NULL,
  expires_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  revoked_at timestamptz,
  CONSTRAINT api_keys_hash_key UNIQUE (hash)
);
CREATE INDEX api_keys_account_idx ON api_keys (account_id, created_at DESC, id);

-- Limits that differ from the account's plan.
CREATE TABLE account_limits (
  account_id text NOT NULL CONSTRAINT account_limits_account_fkey REFERENCES accounts (id) ON DELETE CASCADE,
  class      text NOT NULL,
  per_minute integer NOT NULL CONSTRAINT account_limits_positive CHECK (per_minute > 0),
  PRIMARY KEY (account_id, class)
);

-- Each scope, wildcards included, has a bit in the edges' records. A bit is
-- never given to another scope: records already sent would change meaning.
CREATE TABLE scopes (
  name text PRIMARY KEY,
  bit  smallint NOT NULL CONSTRAINT scopes_bit_range CHECK (bit BETWEEN 0 AND 127),
  CONSTRAINT scopes_bit_key UNIQUE (bit)
);

-- The feed. edge_records holds, for every tag, its present record or a
-- tombstone (record IS NULL), with the sequence number of its last change.
-- A writer takes its number by updating the one row of edge_feed, whose lock it
-- holds until it commits. So numbers become visible in order, without gaps, and
-- a reader that has seen number n will never have to go back before it.
CREATE TABLE edge_feed (
  one    boolean PRIMARY KEY DEFAULT true CONSTRAINT edge_feed_one_row CHECK (one),
  epoch  bigint NOT NULL, -- changes when the history is not the one edges know
  head   bigint NOT NULL, -- number of the last change
  pruned bigint NOT NULL  -- tombstones up to here are gone
);
INSERT INTO edge_feed (epoch, head, pruned)
VALUES ((extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 0, 0);

CREATE TABLE edge_records (
  tag        bytea PRIMARY KEY CONSTRAINT edge_records_tag_length CHECK (octet_length(tag) = 16),
  record     bytea CONSTRAINT edge_records_record_length CHECK (octet_length(record) = 64),
  seq        bigint NOT NULL,
  changed_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT edge_records_seq_key UNIQUE (seq)
);

-- Every published configuration, whole: history, difference and rollback are
-- reads of this table.
CREATE TABLE config_versions (
  version    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  author     text NOT NULL,
  note       text NOT NULL DEFAULT '',
  document   jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
