ALTER TABLE media_assets DROP COLUMN retry_until;
ALTER TABLE media_streams DROP COLUMN started_from;
