-- An address belongs to whoever signs in with it. Invitations are each account's own:
-- that one has invited somebody keeps no other from it, and tells no other.
CREATE UNIQUE INDEX users_active_email_key ON users (email) WHERE removed_at IS NULL AND password_hash IS NOT NULL;
CREATE UNIQUE INDEX users_account_email_key ON users (account_id, email) WHERE removed_at IS NULL;
DROP INDEX users_email_key;
