DROP TABLE schedule_executions;
DROP TABLE schedules;
