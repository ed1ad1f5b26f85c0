DROP TABLE schedule_triggers;
