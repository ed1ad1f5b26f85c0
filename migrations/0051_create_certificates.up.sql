-- Certificates that edges show beside their own: those that are asked for by ACME for
-- entries of the configuration, and those that operators have uploaded. A certificate
-- and its key are of one row and written by one statement: neither is ever in force
-- without the other.
CREATE TABLE certificates (
  name            text PRIMARY KEY CONSTRAINT certificates_name_length CHECK (octet_length(name) BETWEEN 1 AND 100),
  source          text NOT NULL CONSTRAINT certificates_source_known CHECK (source IN ('acme', 'uploaded')),
  hosts           text[] NOT NULL, -- that are asked for; of an uploaded one, that are in it
  chain           text,  -- PEM
  private_key     bytea, -- sealed
  fingerprint     text,  -- SHA-256 of the certificate
  issuer          text,
  not_before      timestamptz,
  not_after       timestamptz,
  renew_at        timestamptz,
  asked_when_at   timestamptz, -- when the authority was asked when to renew
  attempts        integer NOT NULL DEFAULT 0, -- since the last that succeeded
  next_attempt_at timestamptz NOT NULL DEFAULT now(),
  last_error      text CONSTRAINT certificates_last_error_length CHECK (octet_length(last_error) <= 2000),
  created_at      timestamptz NOT NULL DEFAULT now(),
  updated_at      timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT certificates_whole CHECK (num_nulls(chain, private_key, fingerprint, issuer, not_before, not_after) IN (0, 6))
);

-- With whom we are known, by authority and address of mail.
CREATE TABLE acme_accounts (
  id          text CONSTRAINT acme_accounts_pkey PRIMARY KEY,
  private_key bytea NOT NULL, -- sealed
  created_at  timestamptz NOT NULL DEFAULT now()
);

-- What edges answer an authority that checks who has a name. It is no secret.
CREATE TABLE acme_challenges (
  id                text CONSTRAINT acme_challenges_pkey PRIMARY KEY, -- http-01 TOKEN, or tls-alpn-01 HOST
  key_authorization text NOT NULL CONSTRAINT acme_challenges_key_authorization_length CHECK (octet_length(key_authorization) <= 1000),
  expires_at        timestamptz NOT NULL
);
