-- Renders of timelines: what was asked for, how far it is, and the video that came of it.
-- A row is the whole state of a render; its job can run twice, and finds here what is left
-- to do. holder is the attempt that works on it: one that was given up changes nothing.
CREATE TABLE media_renders (
  id            text PRIMARY KEY,
  owner         text NOT NULL,
  account       text NOT NULL,
  plan          text NOT NULL,
  title         text NOT NULL,
  metadata      jsonb NOT NULL,
  status        text NOT NULL CONSTRAINT media_renders_status_known CHECK (status IN ('queued', 'rendering', 'ready', 'failed', 'cancelled')),
  progress      integer NOT NULL CONSTRAINT media_renders_progress_range CHECK (progress BETWEEN 0 AND 100),
  request       jsonb NOT NULL,
  duration_ms   bigint NOT NULL,
  width         integer NOT NULL,
  height        integer NOT NULL,
  asset_id      text NOT NULL,
  holder        text NOT NULL,
  error_code    text NOT NULL,
  error_message text NOT NULL,
  created_at    timestamptz NOT NULL,
  updated_at    timestamptz NOT NULL
);
CREATE INDEX media_renders_owner_idx ON media_renders (owner, created_at DESC, id DESC);
-- What is under way is counted and looked after; the rest is most of the table.
CREATE INDEX media_renders_waiting_idx ON media_renders (owner) WHERE status IN ('queued', 'rendering');
