DROP TABLE account_external_ids;
ALTER TABLE api_keys DROP COLUMN external_id, DROP COLUMN imported_from;
