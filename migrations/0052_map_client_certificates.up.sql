-- A client certificate is a credential of an account, as a key is: a row of api_keys, whose
-- hash is of the name by which certificates are known (filters/credentials/clientcert).
ALTER TABLE api_keys
  ADD COLUMN certificate text CONSTRAINT api_keys_certificate_form CHECK (certificate ~ '^(sha256|uri|dns|email|cn):.{1,255}$');

-- Certificates that are refused whatever their names are mapped to.
CREATE TABLE revoked_certificates (
  id         text PRIMARY KEY CONSTRAINT revoked_certificates_id_form CHECK (id ~ '^rcrt_[0-9a-z]{26}$'),
  serial     text NOT NULL CONSTRAINT revoked_certificates_serial_form CHECK (serial ~ '^(0|[1-9a-f][0-9a-f]{0,79})$'),
  issuer     text CONSTRAINT revoked_certificates_issuer_length CHECK (length(issuer) BETWEEN 1 AND 2000), -- NULL: whoever has issued it
  reason     text NOT NULL CONSTRAINT revoked_certificates_reason_length CHECK (length(reason) <= 200),
  created_at timestamptz NOT NULL
);
CREATE UNIQUE INDEX revoked_certificates_serial_key ON revoked_certificates (serial, coalesce(issuer, ''));
CREATE INDEX revoked_certificates_created_idx ON revoked_certificates (created_at DESC, id);
