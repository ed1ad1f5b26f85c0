-- The reference product: chapters of videos, recordings and clips. A chapter ends
-- where the next one begins, so that no two overlap.
CREATE TABLE media_chapters (
  id         text PRIMARY KEY,
  asset_id   text NOT NULL CONSTRAINT media_chapters_asset_fkey REFERENCES media_assets (id) ON DELETE CASCADE,
  title      text NOT NULL CONSTRAINT media_chapters_title_length CHECK (length(title) BETWEEN 1 AND 200),
  start_ms   bigint NOT NULL CONSTRAINT media_chapters_start_positive CHECK (start_ms >= 0),
  created_at timestamptz NOT NULL,
  CONSTRAINT media_chapters_once UNIQUE (asset_id, start_ms)
);
