DROP TABLE token_usage;
DROP TABLE token_holds;
DROP TABLE token_totals;
DROP TABLE token_budgets;
