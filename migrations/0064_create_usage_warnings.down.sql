DROP TABLE usage_warnings;
