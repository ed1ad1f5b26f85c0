DROP TABLE idempotent_claims;
