-- The reference product: live streams. It is replaceable, so its tables refer
-- to no table of the platform: an owner is whatever the identity header names,
-- an account or, for a paying agent without one, its payment credential.

CREATE TABLE media_streams (
  id              text PRIMARY KEY CONSTRAINT media_streams_id_form CHECK (id ~ '^strm_[0-9a-z]{20}$'),
  owner           text NOT NULL CONSTRAINT media_streams_owner_named CHECK (owner <> ''),
  playback_id     text NOT NULL CONSTRAINT media_streams_playback_key UNIQUE,
  -- Only the SHA-256 of a stream key is stored: a copy of this table publishes nothing.
  key_hash        bytea NOT NULL CONSTRAINT media_streams_key_length CHECK (octet_length(key_hash) = 32),
  key_hint        text NOT NULL,
  title           text NOT NULL CONSTRAINT media_streams_title_length CHECK (length(title) BETWEEN 1 AND 200),
  protocol        text NOT NULL CONSTRAINT media_streams_protocol_known CHECK (protocol IN ('rtmp', 'webrtc', 'srt')),
  status          text NOT NULL CONSTRAINT media_streams_status_known CHECK (status IN ('idle', 'live', 'paused', 'ended')),
  playback_policy text NOT NULL CONSTRAINT media_streams_policy_known CHECK (playback_policy IN ('public', 'signed')),
  recording       boolean NOT NULL,
  quality         text NOT NULL,
  bitrate_kbps    integer NOT NULL CONSTRAINT media_streams_bitrate_positive CHECK (bitrate_kbps >= 0), -- 0: not set
  metadata        jsonb NOT NULL,
  version         bigint NOT NULL, -- counts changes; the ETag
  created_at      timestamptz NOT NULL,
  updated_at      timestamptz NOT NULL
);
CREATE INDEX media_streams_owner_idx ON media_streams (owner, created_at DESC, id DESC);
-- The count of concurrent streams is taken at every start.
CREATE INDEX media_streams_on_air_idx ON media_streams (owner) WHERE status IN ('live', 'paused');

-- One broadcast of a stream, from start to stop. Sessions outlive their stream:
-- analytics read them. So stream_id is no foreign key.
CREATE TABLE media_sessions (
  id             text PRIMARY KEY,
  owner          text NOT NULL,
  stream_id      text NOT NULL,
  started_at     timestamptz NOT NULL,
  ended_at       timestamptz,
  total_viewers  integer NOT NULL DEFAULT 0,
  peak_viewers   integer NOT NULL DEFAULT 0,
  CONSTRAINT media_sessions_order CHECK (ended_at >= started_at)
);
CREATE INDEX media_sessions_owner_idx ON media_sessions (owner, started_at DESC);
CREATE UNIQUE INDEX media_sessions_open_key ON media_sessions (stream_id) WHERE ended_at IS NULL;
