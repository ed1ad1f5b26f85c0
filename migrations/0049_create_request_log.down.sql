DROP TABLE request_log_shares;
DROP TABLE request_log_slots;
DROP TABLE request_log;
