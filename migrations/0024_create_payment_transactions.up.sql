-- Transactions that were signed to settle payments on a chain, each stored
-- before it is sent, until its payment has ended.
CREATE TABLE x402_transactions (
  payment_id    text PRIMARY KEY CONSTRAINT x402_transactions_payment_fkey REFERENCES x402_payments (id) ON DELETE CASCADE,
  chain         bigint NOT NULL,
  signer        text NOT NULL, -- the account that pays for gas
  account_nonce bigint NOT NULL,
  hash          text NOT NULL,
  raw           bytea NOT NULL,
  created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT x402_transactions_nonce_once UNIQUE (chain, signer, account_nonce)
);
