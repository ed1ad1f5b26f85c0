-- The public keys with which issuers sign tokens, this platform among them, as
-- they were read last. They are the last good ones while an issuer is away; the
-- same keys stand in edge_records, for the edges.
CREATE TABLE issuer_keys (
  issuer  text NOT NULL,
  kid     text NOT NULL,
  key     bytea NOT NULL, -- filters/jwt.Key
  read_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT issuer_keys_pkey PRIMARY KEY (issuer, kid)
);
