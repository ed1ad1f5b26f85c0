-- What edges recorded of all requests up to a rate, in blocks of some seconds, for an
-- hour or two: another configuration can be tried on them. Like the request log it is in
-- no backup, and a crash of the server loses it.
CREATE UNLOGGED TABLE request_records (
  sum      bytea CONSTRAINT request_records_pkey PRIMARY KEY, -- of the block and its edge: one that is sent twice is stored once
  edge     text NOT NULL,
  began_at timestamptz NOT NULL, -- of the first request in it
  ended_at timestamptz NOT NULL, -- of the last
  requests integer NOT NULL,
  path_key bytea NOT NULL,       -- tells with which key the segments of paths were summed
  block    bytea NOT NULL        -- filters/recording
);
CREATE INDEX request_records_ended_idx ON request_records (ended_at);
