DROP TABLE edge_counts;
ALTER TABLE api_keys DROP COLUMN rate_limit_per_minute;
