DROP TABLE request_records;
