-- Applications with a secret that were registered without PKCE go on without it, and
-- so do those that a process of before registers while it still runs.
ALTER TABLE oauth_apps ADD COLUMN without_pkce boolean NOT NULL DEFAULT true;
