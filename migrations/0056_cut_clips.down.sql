ALTER TABLE media_assets DROP COLUMN cut, DROP COLUMN precise, DROP COLUMN plan;
