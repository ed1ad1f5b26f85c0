-- Keys that another system issued go on working. Of such a key the column hash has
-- SHA-256("imported" NUL SHA-256(text)), so that nobody who supplies hashes can name
-- a key of ours, or another of the edges' records.
ALTER TABLE api_keys
  ADD COLUMN imported_from text CONSTRAINT api_keys_imported_from_length CHECK (length(imported_from) BETWEEN 1 AND 40),
  ADD COLUMN external_id text CONSTRAINT api_keys_external_id_length CHECK (length(external_id) BETWEEN 1 AND 200);

-- What another system calls an account that an import made.
CREATE TABLE account_external_ids (
  external_id text PRIMARY KEY CONSTRAINT account_external_ids_length CHECK (length(external_id) BETWEEN 1 AND 200),
  account_id  text NOT NULL CONSTRAINT account_external_ids_account_fkey REFERENCES accounts (id) ON DELETE CASCADE
);
CREATE INDEX account_external_ids_account_idx ON account_external_ids (account_id);
