-- A session with a publisher in the media engine ends when the publisher goes;
-- one that was started by an action alone lasts until it is stopped.
ALTER TABLE media_sessions ADD engine boolean NOT NULL DEFAULT false;
CREATE INDEX media_sessions_engine_idx ON media_sessions (stream_id) WHERE engine AND ended_at IS NULL;
