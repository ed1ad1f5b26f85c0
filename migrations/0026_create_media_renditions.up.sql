-- The reference product: videos in other sizes. A rendition is a file of its own
-- beside that of its asset, made by a job; it goes with its asset.
CREATE TABLE media_renditions (
  id            text PRIMARY KEY,
  asset_id      text NOT NULL CONSTRAINT media_renditions_asset_fkey REFERENCES media_assets (id) ON DELETE CASCADE,
  owner         text NOT NULL,
  plan          text NOT NULL, -- whose limits hold for the file
  profile       text NOT NULL,
  status        text NOT NULL CONSTRAINT media_renditions_status_known CHECK (status IN ('processing', 'ready', 'failed')),
  file_id       text NOT NULL, -- empty until it is ready
  width         integer NOT NULL,
  height        integer NOT NULL,
  file_size     bigint NOT NULL,
  error_code    text NOT NULL,
  error_message text NOT NULL,
  created_at    timestamptz NOT NULL,
  updated_at    timestamptz NOT NULL,
  CONSTRAINT media_renditions_once UNIQUE (asset_id, profile),
  CONSTRAINT media_renditions_ready_has_file CHECK (status <> 'ready' OR file_id <> '')
);
-- The length of the queue is taken at every creation; files are swept by file_id.
CREATE INDEX media_renditions_processing_idx ON media_renditions (status) WHERE status = 'processing';
CREATE INDEX media_renditions_file_idx ON media_renditions (file_id) WHERE file_id <> '';
