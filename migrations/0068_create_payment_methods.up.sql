-- Who accounts are at the provider that charges them, and what they may be charged by: names
-- that the provider has given, never a number of a card. See docs/billing.md.
CREATE TABLE billing_customers (
  account_id text NOT NULL CONSTRAINT billing_customers_account_fkey REFERENCES accounts (id) ON DELETE CASCADE,
  provider   text NOT NULL CONSTRAINT billing_customers_provider_form CHECK (provider ~ '^[a-z]{1,20}$'),
  customer   text NOT NULL CONSTRAINT billing_customers_customer_length CHECK (octet_length(customer) BETWEEN 1 AND 200),
  CONSTRAINT billing_customers_pkey PRIMARY KEY (account_id, provider),
  CONSTRAINT billing_customers_customer_key UNIQUE (provider, customer)
);

CREATE TABLE payment_methods (
  id         text CONSTRAINT payment_methods_pkey PRIMARY KEY,
  account_id text NOT NULL CONSTRAINT payment_methods_account_fkey REFERENCES accounts (id) ON DELETE CASCADE,
  provider   text NOT NULL CONSTRAINT payment_methods_provider_form CHECK (provider ~ '^[a-z]{1,20}$'),
  reference  text NOT NULL CONSTRAINT payment_methods_reference_length CHECK (octet_length(reference) BETWEEN 1 AND 200), -- the provider's name of it
  kind       text NOT NULL,
  brand      text NOT NULL,
  last4      text NOT NULL CONSTRAINT payment_methods_last4_length CHECK (octet_length(last4) <= 4),
  exp_month  smallint NOT NULL, -- 0: it does not expire
  exp_year   smallint NOT NULL,
  is_default boolean NOT NULL,
  created_at timestamptz NOT NULL,
  CONSTRAINT payment_methods_reference_key UNIQUE (provider, reference)
);
CREATE INDEX payment_methods_account_idx ON payment_methods (account_id, created_at);
CREATE UNIQUE INDEX payment_methods_default_idx ON payment_methods (account_id, provider) WHERE is_default;
