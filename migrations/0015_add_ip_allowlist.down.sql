ALTER TABLE accounts DROP COLUMN ip_allowlist;
