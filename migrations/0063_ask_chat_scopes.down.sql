DROP TABLE chat_scopes;
ALTER TABLE scopes DROP COLUMN offered;
ALTER TABLE processes DROP COLUMN knows;
ALTER TABLE api_keys DROP COLUMN chat_before;
