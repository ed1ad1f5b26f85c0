DROP TABLE x402_balances;
DROP TABLE x402_payments;
