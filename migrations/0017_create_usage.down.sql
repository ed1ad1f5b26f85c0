ALTER TABLE api_keys DROP COLUMN last_used_ip, DROP COLUMN last_used_at;
ALTER TABLE accounts DROP COLUMN quota_used;
DROP TABLE request_quotas;
DROP TABLE usage_totals;
DROP TABLE usage_progress;
DROP TABLE usage_sources;
DROP TABLE usage_counts;
