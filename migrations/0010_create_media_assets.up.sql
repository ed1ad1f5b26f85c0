-- The reference product: what is stored. Videos on demand, recordings of
-- streams and clips of both are assets; the bytes of an asset are a file.

-- Keys that the product makes for itself, so that all its replicas have the
-- same ones without being configured.
CREATE TABLE media_secrets (
  name  text PRIMARY KEY,
  value bytea NOT NULL
);

-- Files live in the database: a reference product then needs no shared disk, and
-- any replica can serve them. Bytes are cut into chunks of one size, so that a
-- range of a file is found without reading what is before it.
CREATE TABLE media_files (
  id         text PRIMARY KEY,
  owner      text NOT NULL,
  size       bigint NOT NULL CONSTRAINT media_files_size_positive CHECK (size >= 0),
  complete   boolean NOT NULL, -- false while it is being written; cleaned up if it stays so
  created_at timestamptz NOT NULL
);
CREATE INDEX media_files_owner_idx ON media_files (owner) INCLUDE (size) WHERE complete;

CREATE TABLE media_chunks (
  file_id text NOT NULL CONSTRAINT media_chunks_file_fkey REFERENCES media_files (id) ON DELETE CASCADE,
  n       integer NOT NULL,
  data    bytea NOT NULL,
  PRIMARY KEY (file_id, n)
);
-- Video does not compress: do not try.
ALTER TABLE media_chunks ALTER COLUMN data SET STORAGE EXTERNAL;

-- Text columns that do not apply to a kind are empty, numbers zero.
CREATE TABLE media_assets (
  id            text PRIMARY KEY,
  owner         text NOT NULL CONSTRAINT media_assets_owner_named CHECK (owner <> ''),
  account       text NOT NULL, -- who hears of it; empty for a paying agent
  kind          text NOT NULL CONSTRAINT media_assets_kind_known CHECK (kind IN ('vod', 'recording', 'clip')),
  title         text NOT NULL,
  status        text NOT NULL CONSTRAINT media_assets_status_known CHECK (status IN ('recording', 'processing', 'ready', 'failed')),
  source_url    text NOT NULL,
  source_id     text NOT NULL, -- of a clip: the asset that it is cut from
  stream_id     text NOT NULL, -- of a recording, and of a clip of one
  session_id    text NOT NULL, -- of a recording
  start_ms      bigint NOT NULL CONSTRAINT media_assets_start_positive CHECK (start_ms >= 0),
  end_ms        bigint NOT NULL,
  file_id       text NOT NULL, -- shared between an asset and its clips; deleted with the last of them
  format        text NOT NULL,
  duration_ms   bigint NOT NULL,
  width         integer NOT NULL,
  height        integer NOT NULL,
  video_codec   text NOT NULL,
  audio_codec   text NOT NULL,
  file_size     bigint NOT NULL,
  error_code    text NOT NULL,
  error_message text NOT NULL,
  metadata      jsonb NOT NULL,
  created_at    timestamptz NOT NULL,
  updated_at    timestamptz NOT NULL,
  CONSTRAINT media_assets_ready_has_file CHECK (status <> 'ready' OR file_id <> '')
);
CREATE INDEX media_assets_owner_idx ON media_assets (owner, kind, created_at DESC, id DESC);
CREATE INDEX media_assets_source_idx ON media_assets (source_id) WHERE source_id <> '';
CREATE INDEX media_assets_file_idx ON media_assets (file_id) WHERE file_id <> '';
CREATE INDEX media_assets_stream_idx ON media_assets (stream_id) WHERE stream_id <> '';
-- The length of the processing queue is taken at every creation.
CREATE INDEX media_assets_processing_idx ON media_assets (status) WHERE status = 'processing';

CREATE TABLE media_captions (
  stream_id  text NOT NULL CONSTRAINT media_captions_stream_fkey REFERENCES media_streams (id) ON DELETE CASCADE,
  language   text NOT NULL,
  label      text NOT NULL,
  kind       text NOT NULL CONSTRAINT media_captions_kind_known CHECK (kind IN ('captions', 'subtitles')),
  content    text NOT NULL, -- WebVTT
  cues       integer NOT NULL,
  created_at timestamptz NOT NULL,
  CONSTRAINT media_captions_pkey PRIMARY KEY (stream_id, language)
);
