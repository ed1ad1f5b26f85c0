DROP TABLE acme_challenges;
DROP TABLE acme_accounts;
DROP TABLE certificates;
