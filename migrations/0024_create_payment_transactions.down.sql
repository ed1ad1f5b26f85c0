DROP TABLE x402_transactions;
