-- Chapters that were found, which another search replaces, beside those that people set.
ALTER TABLE media_chapters ADD COLUMN found boolean NOT NULL DEFAULT false;

-- The last search for chapters of each asset.
CREATE TABLE media_chapter_searches (
  asset_id      text PRIMARY KEY CONSTRAINT media_chapter_searches_asset_fkey REFERENCES media_assets (id) ON DELETE CASCADE,
  id            text NOT NULL,
  owner         text NOT NULL,
  status        text NOT NULL CONSTRAINT media_chapter_searches_status_known CHECK (status IN ('processing', 'ready', 'failed')),
  least_ms      bigint NOT NULL,
  error_code    text NOT NULL,
  error_message text NOT NULL,
  created_at    timestamptz NOT NULL,
  updated_at    timestamptz NOT NULL
);
CREATE INDEX media_chapter_searches_waiting_idx ON media_chapter_searches (owner) WHERE status = 'processing';
