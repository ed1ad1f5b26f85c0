-- What was said in assets, one row for each language. transcript is JSON of package
-- transcript, empty until the row is ready.
CREATE TABLE media_transcripts (
  id            text PRIMARY KEY,
  asset_id      text NOT NULL CONSTRAINT media_transcripts_asset_fkey REFERENCES media_assets (id) ON DELETE CASCADE,
  owner         text NOT NULL,
  account       text NOT NULL, -- empty: nobody hears of it
  language      text NOT NULL,
  status        text NOT NULL CONSTRAINT media_transcripts_status_known CHECK (status IN ('processing', 'ready', 'failed')),
  progress      integer NOT NULL CONSTRAINT media_transcripts_progress_percent CHECK (progress BETWEEN 0 AND 100),
  transcript    text NOT NULL,
  cues          integer NOT NULL,
  engine        text NOT NULL,
  error_code    text NOT NULL,
  error_message text NOT NULL,
  created_at    timestamptz NOT NULL,
  updated_at    timestamptz NOT NULL,
  CONSTRAINT media_transcripts_once UNIQUE (asset_id, language),
  CONSTRAINT media_transcripts_ready_has_text CHECK (status <> 'ready' OR transcript <> '')
);
-- The length of the queue is taken at every creation.
CREATE INDEX media_transcripts_processing_idx ON media_transcripts (status) WHERE status = 'processing';
