DROP INDEX edge_records_gone_idx;
ALTER TABLE accounts DROP COLUMN operator;
ALTER TABLE accounts DROP CONSTRAINT accounts_plan_fkey;
DROP TABLE sign_in_attempts, plans;
DELETE FROM scopes;
