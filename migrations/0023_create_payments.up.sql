-- Payments by x402. A row is made before anything is granted for a payment, and
-- its nonce can be taken once: that is what makes one payment one grant,
-- however many copies of it arrive, on however many edges.
CREATE TABLE x402_payments (
  id            text PRIMARY KEY,
  network       text NOT NULL,
  chain         bigint NOT NULL,
  asset         text NOT NULL, -- addresses and nonce in small letters
  payer         text NOT NULL,
  nonce         text NOT NULL,
  pay_to        text NOT NULL,
  amount        bigint NOT NULL CONSTRAINT x402_payments_amount_positive CHECK (amount > 0),
  resource      text NOT NULL, -- what it is bound to
  route         text NOT NULL, -- empty: another seller's
  account       text NOT NULL, -- of that seller; empty: not known
  request_id    text NOT NULL,
  authorization_json jsonb NOT NULL, -- what is needed to settle after a crash
  state         text NOT NULL CONSTRAINT x402_payments_state_known
    CHECK (state IN ('granted', 'settling', 'settled', 'failed', 'released', 'abandoned', 'unresolved')),
  reason        text NOT NULL DEFAULT '',
  transaction   text NOT NULL DEFAULT '',
  attempts      integer NOT NULL DEFAULT 0, -- to settle it
  created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  ended_at      timestamptz,
  CONSTRAINT x402_payments_nonce_once UNIQUE (chain, asset, payer, nonce),
  CONSTRAINT x402_payments_ends CHECK ((ended_at IS NULL) = (state IN ('granted', 'settling')))
);
CREATE INDEX x402_payments_newest_idx ON x402_payments (created_at DESC, id DESC);
CREATE INDEX x402_payments_revenue_idx ON x402_payments (route, network, asset) INCLUDE (amount) WHERE state = 'settled';
CREATE INDEX x402_payments_received_idx ON x402_payments (pay_to, chain, asset) INCLUDE (amount) WHERE state = 'settled';

-- The test ledger: what payers have. Recipients have the sum of what was
-- settled, so that no row is written by all payments.
CREATE TABLE x402_balances (
  chain   bigint NOT NULL,
  asset   text NOT NULL,
  address text NOT NULL,
  amount  bigint NOT NULL,
  held    bigint NOT NULL DEFAULT 0, -- of payments under way
  CONSTRAINT x402_balances_pkey PRIMARY KEY (chain, asset, address),
  CONSTRAINT x402_balances_bounded CHECK (amount < 4611686018427387904),
  CONSTRAINT x402_balances_funded CHECK (held >= 0 AND amount >= held)
);
