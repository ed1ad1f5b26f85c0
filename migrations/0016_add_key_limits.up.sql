-- A limit of one key, under its account's.
ALTER TABLE api_keys ADD COLUMN rate_limit_per_minute integer
  CONSTRAINT api_keys_rate_limit_positive CHECK (rate_limit_per_minute > 0);

-- What each edge has counted lately, as it told one replica of the control
-- plane, for the other replicas. A row is written several times a second and
-- worth nothing after a minute, so it need not survive a crash.
CREATE UNLOGGED TABLE edge_counts (
  edge   text PRIMARY KEY CONSTRAINT edge_counts_edge_length CHECK (length(edge) BETWEEN 1 AND 200),
  told   bigint NOT NULL, -- when the edge said so, in unix milliseconds by its clock
  report bytea NOT NULL CONSTRAINT edge_counts_report_length CHECK (octet_length(report) <= 1048576),
  at     timestamptz NOT NULL
) WITH (fillfactor = 50);
