-- Of several invitations of an address the oldest stays, or nothing beside whoever signs in.
DELETE FROM users u USING users o WHERE u.email = o.email AND u.id <> o.id AND u.removed_at IS NULL AND o.removed_at IS NULL
  AND u.password_hash IS NULL AND (o.password_hash IS NOT NULL OR (o.created_at, o.id) < (u.created_at, u.id));
CREATE UNIQUE INDEX users_email_key ON users (email) WHERE removed_at IS NULL;
DROP INDEX users_account_email_key, users_active_email_key;
