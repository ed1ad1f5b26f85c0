DROP TABLE revoked_certificates;
ALTER TABLE api_keys DROP COLUMN certificate;
