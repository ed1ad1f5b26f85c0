-- What streams take from the broadcast transports of the operator's network, and what
-- they send by them. The media engine's process works on these rows, and says in state,
-- message, stats and seen_at how it goes.
CREATE TABLE media_links (
  id         text PRIMARY KEY CONSTRAINT media_links_id_form CHECK (id ~ '^(inp|out)_[0-9a-z]{20}$'),
  owner      text NOT NULL CONSTRAINT media_links_owner_named CHECK (owner <> ''),
  stream_id  text NOT NULL CONSTRAINT media_links_stream_fkey REFERENCES media_streams (id) ON DELETE CASCADE,
  transport  text NOT NULL CONSTRAINT media_links_transport_known CHECK (transport IN ('dante', 'ndi', 'omt')),
  direction  text NOT NULL CONSTRAINT media_links_direction_known CHECK (direction IN ('in', 'out')),
  name       text NOT NULL CONSTRAINT media_links_name_length CHECK (length(name) BETWEEN 1 AND 200),
  address    text NOT NULL, -- host:port of what is received, or sent; of an output of OMT :port; empty: a program knows
  spec       jsonb NOT NULL,
  state      text NOT NULL DEFAULT 'waiting' CONSTRAINT media_links_state_known CHECK (state IN ('waiting', 'running', 'stopped', 'failed')),
  message    text NOT NULL DEFAULT '',
  stats      jsonb,
  described  text NOT NULL DEFAULT '', -- what receivers of an output need: SDP, or an address
  seen_at    timestamptz, -- when the engine's process last said so
  created_at timestamptz NOT NULL
);
CREATE INDEX media_links_owner_idx ON media_links (owner, created_at DESC, id DESC);
-- A stream has one source, and an address one sender.
CREATE UNIQUE INDEX media_links_input_key ON media_links (stream_id) WHERE direction = 'in';
CREATE UNIQUE INDEX media_links_output_key ON media_links (transport, address) WHERE direction = 'out' AND address <> '';
CREATE UNIQUE INDEX media_links_output_name_key ON media_links (transport, name) WHERE direction = 'out' AND transport <> 'dante';

-- What was heard on the operator's network of sources that streams can take.
CREATE TABLE media_transport_sources (
  transport text NOT NULL,
  id        text NOT NULL,
  name      text NOT NULL,
  address   text NOT NULL,
  spec      jsonb NOT NULL,
  seen_at   timestamptz NOT NULL,
  PRIMARY KEY (transport, id)
);
