-- Moving in from another provider: one connection for each owner.
CREATE TABLE media_migrations (
  owner        text PRIMARY KEY,
  account      text NOT NULL,
  plan         text NOT NULL,
  base_url     text NOT NULL,
  token        bytea NOT NULL, -- sealed: a copy of this table opens nothing at the provider
  import_state text NOT NULL CONSTRAINT media_migrations_state_known CHECK (import_state IN ('none', 'running', 'done', 'failed')),
  import_error text NOT NULL,
  connected_at timestamptz NOT NULL,
  updated_at   timestamptz NOT NULL
);

-- What has been taken over. The key keeps an import that is repeated, or that
-- dies and starts again, from taking a video twice.
CREATE TABLE media_migration_videos (
  owner     text NOT NULL CONSTRAINT media_migration_videos_owner_fkey REFERENCES media_migrations (owner) ON DELETE CASCADE,
  legacy_id text NOT NULL,
  vod_id    text NOT NULL, -- empty: refused, see error
  duration_ms bigint NOT NULL, -- as the provider said; 0: not told
  file_size bigint NOT NULL,
  error     text NOT NULL,
  CONSTRAINT media_migration_videos_pkey PRIMARY KEY (owner, legacy_id)
);
