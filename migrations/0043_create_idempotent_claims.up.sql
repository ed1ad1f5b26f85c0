-- Requests with an Idempotency-Key that wait for somebody else's answer, and so
-- hold no transaction that would keep their repetitions away. A claim ends with
-- its request; one that a crash has left counts until it lapses.
CREATE TABLE idempotent_claims (
  scope   bytea PRIMARY KEY CONSTRAINT idempotent_claims_scope_length CHECK (octet_length(scope) = 32),
  request bytea NOT NULL CONSTRAINT idempotent_claims_request_length CHECK (octet_length(request) = 32),
  token   bytea NOT NULL, -- tells the request that made it from one that has taken over
  until   timestamptz NOT NULL
);
CREATE INDEX idempotent_claims_until_idx ON idempotent_claims (until);
