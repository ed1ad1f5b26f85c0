-- Applications that act for people (OAuth 2.0), and what people have let them
-- do. Secrets, codes and tokens are stored as SHA-256 only: a copy of these
-- tables opens nothing.

CREATE TABLE oauth_apps (
  id            text PRIMARY KEY CONSTRAINT oauth_apps_id_form CHECK (id ~ '^app_[0-9a-z]{13}$'), -- the client_id
  account_id    text NOT NULL CONSTRAINT oauth_apps_account_fkey REFERENCES accounts (id) ON DELETE CASCADE,
  name          text NOT NULL CONSTRAINT oauth_apps_name_length CHECK (length(name) BETWEEN 1 AND 100),
  secret_hash   bytea CONSTRAINT oauth_apps_secret_length CHECK (octet_length(secret_hash) = 32), -- NULL: a public client
  redirect_uris text[] NOT NULL CONSTRAINT oauth_apps_has_redirect CHECK (cardinality(redirect_uris) > 0),
  scopes        text[] NOT NULL CONSTRAINT oauth_apps_has_scope CHECK (cardinality(scopes) > 0),
  created_at    timestamptz NOT NULL,
  revoked_at    timestamptz
);
CREATE INDEX oauth_apps_account_idx ON oauth_apps (account_id, created_at DESC, id);

-- One consent. Every code and token comes from a grant and ends with it, so
-- ending a whole family is one update.
CREATE TABLE oauth_grants (
  id         text PRIMARY KEY,
  app_id     text NOT NULL CONSTRAINT oauth_grants_app_fkey REFERENCES oauth_apps (id) ON DELETE CASCADE,
  user_id    text NOT NULL CONSTRAINT oauth_grants_user_fkey REFERENCES users (id) ON DELETE CASCADE,
  scopes     text[] NOT NULL,
  created_at timestamptz NOT NULL,
  revoked_at timestamptz
);
CREATE INDEX oauth_grants_app_idx ON oauth_grants (app_id);
CREATE INDEX oauth_grants_user_idx ON oauth_grants (user_id);

-- A used code stays until its grant goes, so that a second use is recognised.
CREATE TABLE oauth_codes (
  hash         bytea PRIMARY KEY CONSTRAINT oauth_codes_hash_length CHECK (octet_length(hash) = 32),
  grant_id     text NOT NULL CONSTRAINT oauth_codes_grant_fkey REFERENCES oauth_grants (id) ON DELETE CASCADE,
  redirect_uri text NOT NULL, -- empty: the request named none, so the exchange need not
  challenge    text NOT NULL, -- PKCE S256; empty: none
  expires_at   timestamptz NOT NULL,
  used_at      timestamptz
);
CREATE INDEX oauth_codes_grant_idx ON oauth_codes (grant_id);

-- Refresh tokens rotate; a used one stays until it expires, so that reuse is
-- recognised.
CREATE TABLE oauth_refresh_tokens (
  hash       bytea PRIMARY KEY CONSTRAINT oauth_refresh_tokens_hash_length CHECK (octet_length(hash) = 32),
  grant_id   text NOT NULL CONSTRAINT oauth_refresh_tokens_grant_fkey REFERENCES oauth_grants (id) ON DELETE CASCADE,
  issued_at  timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  used_at    timestamptz
);
CREATE INDEX oauth_refresh_tokens_grant_idx ON oauth_refresh_tokens (grant_id);
CREATE INDEX oauth_refresh_tokens_expires_idx ON oauth_refresh_tokens (expires_at);

-- Access tokens are JWTs that edges verify by themselves; a row is kept so that
-- each can be named to the edges when it ends early.
CREATE TABLE oauth_access_tokens (
  id         text PRIMARY KEY, -- the claim jti
  hash       bytea NOT NULL CONSTRAINT oauth_access_tokens_hash_length CHECK (octet_length(hash) = 32),
  grant_id   text NOT NULL CONSTRAINT oauth_access_tokens_grant_fkey REFERENCES oauth_grants (id) ON DELETE CASCADE,
  scopes     text[] NOT NULL,
  issued_at  timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  revoked_at timestamptz,
  CONSTRAINT oauth_access_tokens_hash_key UNIQUE (hash)
);
CREATE INDEX oauth_access_tokens_grant_idx ON oauth_access_tokens (grant_id);
CREATE INDEX oauth_access_tokens_expires_idx ON oauth_access_tokens (expires_at);
