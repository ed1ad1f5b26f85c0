DROP TABLE schedule_sealing;
ALTER TABLE schedules DROP COLUMN sealed_headers;
