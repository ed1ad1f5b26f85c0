ALTER TABLE usage_counts DROP COLUMN open_millis;
