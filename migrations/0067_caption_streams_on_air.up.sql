-- Captions that are made of the speech of a stream while it is on air, by language.
CREATE TABLE media_live_captions (
  stream_id text NOT NULL,
  language  text NOT NULL,
  active    boolean NOT NULL, -- false: held by its owner
  state     text NOT NULL CONSTRAINT media_live_captions_state_known CHECK (state IN ('waiting', 'listening', 'failed')),
  message   text NOT NULL,
  seen_at   timestamptz, -- when the media engine's process said so last
  CONSTRAINT media_live_captions_pkey PRIMARY KEY (stream_id, language),
  CONSTRAINT media_live_captions_track_fkey FOREIGN KEY (stream_id, language) REFERENCES media_captions (stream_id, language) ON DELETE CASCADE
);

-- What was said between two pauses, until the broadcast has ended and its captions are
-- kept. transcript is JSON of package transcript; its times begin at spoken_at. Players
-- show it from shown_at to hidden_at, and late_ms is from the end of the speech to then.
CREATE TABLE media_live_utterances (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  stream_id  text NOT NULL,
  language   text NOT NULL,
  session_id text NOT NULL CONSTRAINT media_live_utterances_session_fkey REFERENCES media_sessions (id) ON DELETE CASCADE,
  spoken_at  timestamptz NOT NULL,
  shown_at   timestamptz NOT NULL,
  hidden_at  timestamptz NOT NULL,
  late_ms    integer NOT NULL,
  transcript text NOT NULL,
  CONSTRAINT media_live_utterances_track_fkey FOREIGN KEY (stream_id, language) REFERENCES media_live_captions (stream_id, language) ON DELETE CASCADE
);
-- Players ask for a second of one track; what is kept at the end is a session's.
CREATE INDEX media_live_utterances_shown_idx ON media_live_utterances (stream_id, language, shown_at);
CREATE INDEX media_live_utterances_session_idx ON media_live_utterances (session_id);

-- When the recording of a session begins; null: there is none, or it is not known.
ALTER TABLE media_sessions ADD recorded_from timestamptz;
