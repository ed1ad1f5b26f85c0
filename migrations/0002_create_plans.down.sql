ALTER TABLE edge_records
  DROP CONSTRAINT edge_records_pkey,
  ADD CONSTRAINT edge_records_pkey PRIMARY KEY (tag),
  RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_insert_scale_factor);
DROP INDEX edge_records_gone_idx;
ALTER TABLE accounts DROP COLUMN operator;
ALTER TABLE accounts DROP CONSTRAINT accounts_plan_fkey;
DROP TABLE sign_in_attempts, plans;
DELETE FROM scopes;
