DROP TABLE idempotent_answers, audit_log;
