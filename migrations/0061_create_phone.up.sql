-- A line takes calls by SIP for one stream. secret checks the password of a line with
-- auth digest and is sealed; allowlist are the networks that may call one with auth
-- allowlist. A number belongs to one line.
CREATE TABLE phone_lines (
  id text CONSTRAINT phone_lines_pkey PRIMARY KEY,
  owner text NOT NULL,
  account text NOT NULL,
  plan text NOT NULL,
  stream_id text NOT NULL CONSTRAINT phone_lines_stream_id_fkey REFERENCES media_streams (id) ON DELETE CASCADE,
  name text NOT NULL,
  number text NOT NULL,
  auth text NOT NULL CONSTRAINT phone_lines_auth_check CHECK (auth IN ('digest', 'allowlist')),
  secret bytea,
  password_hint text NOT NULL,
  allowlist text[] NOT NULL,
  max_duration integer NOT NULL CONSTRAINT phone_lines_max_duration_check CHECK (max_duration > 0),
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
CREATE INDEX phone_lines_owner_idx ON phone_lines (owner, created_at DESC, id DESC);
CREATE INDEX phone_lines_stream_id_idx ON phone_lines (stream_id);
CREATE UNIQUE INDEX phone_lines_number_key ON phone_lines (number) WHERE number <> '';

-- A call outlives its line and its stream. hangup says that its owner wants it to end.
CREATE TABLE phone_calls (
  id text CONSTRAINT phone_calls_pkey PRIMARY KEY,
  owner text NOT NULL,
  account text NOT NULL,
  line_id text NOT NULL,
  stream_id text NOT NULL,
  direction text NOT NULL CONSTRAINT phone_calls_direction_check CHECK (direction IN ('inbound', 'outbound')),
  state text NOT NULL CONSTRAINT phone_calls_state_check CHECK (state IN ('queued', 'ringing', 'in_progress', 'completed', 'failed')),
  remote text NOT NULL,
  codec text NOT NULL DEFAULT '',
  reason text NOT NULL DEFAULT '',
  hangup boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL,
  answered_at timestamptz,
  ended_at timestamptz
);
CREATE INDEX phone_calls_owner_idx ON phone_calls (owner, created_at DESC, id DESC);
CREATE INDEX phone_calls_created_at_idx ON phone_calls (created_at);
-- A stream has one source of sound at a time: of two calls at once, the second is refused.
CREATE UNIQUE INDEX phone_calls_open_key ON phone_calls (stream_id) WHERE state IN ('queued', 'ringing', 'in_progress');
