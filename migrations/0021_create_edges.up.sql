-- What is known of each edge. The replica that serves an edge's stream writes
-- the first part when it changes, and all its edges' last_seen in one statement
-- every few seconds; an edge's own reports fill the second. All of it comes
-- back within seconds of a crash, so the table writes no log of its changes.
CREATE UNLOGGED TABLE edges (
  id             text PRIMARY KEY CONSTRAINT edges_id_length CHECK (octet_length(id) BETWEEN 1 AND 256),
  replica        text NOT NULL DEFAULT '',      -- that served it last
  connected      boolean NOT NULL DEFAULT false,
  since          timestamptz NOT NULL DEFAULT now(), -- of the stream, or of its loss
  last_seen      timestamptz NOT NULL DEFAULT now(),
  version_wanted bigint NOT NULL DEFAULT 0,
  version_held   bigint NOT NULL DEFAULT 0,
  status         jsonb NOT NULL DEFAULT '{}',   -- addresses, build and types, as the replica saw them
  reported_at    timestamptz,                   -- null: it has not reported
  feed_epoch     bigint NOT NULL DEFAULT 0,
  feed_position  bigint NOT NULL DEFAULT 0,
  report         jsonb NOT NULL DEFAULT '{}'
) WITH (fillfactor = 50);
