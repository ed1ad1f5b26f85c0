DROP INDEX sessions_ended_idx, api_keys_ended_idx;
ALTER TABLE plans DROP COLUMN self_serve;
ALTER TABLE accounts DROP COLUMN unpaid;
DROP TABLE invoices;
DROP INDEX sessions_user_idx, users_account_idx, users_invitation_key, users_email_key;
DELETE FROM users WHERE removed_at IS NOT NULL OR password_hash IS NULL;
ALTER TABLE users
  DROP CONSTRAINT users_invited_or_joined,
  DROP COLUMN invitation,
  DROP COLUMN invited_until,
  DROP COLUMN removed_at,
  ALTER COLUMN password_hash SET NOT NULL,
  ADD CONSTRAINT users_email_key UNIQUE (email);
DROP TABLE idempotent_answers, audit_log;
