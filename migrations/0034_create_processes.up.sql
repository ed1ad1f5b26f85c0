-- Which processes run: each says every few seconds that it does, and that it
-- goes when it is stopped. All of it comes back within seconds of a crash, so the
-- table writes no log of its changes.
CREATE UNLOGGED TABLE processes (
  name       text PRIMARY KEY CONSTRAINT processes_name_length CHECK (octet_length(name) BETWEEN 1 AND 256),
  kind       text NOT NULL CONSTRAINT processes_kind_length CHECK (octet_length(kind) BETWEEN 1 AND 64),
  build      text NOT NULL CONSTRAINT processes_build_length CHECK (octet_length(build) BETWEEN 1 AND 256),
  started_at timestamptz NOT NULL DEFAULT now(),
  last_seen  timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);
