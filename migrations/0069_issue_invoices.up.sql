-- Invoices that are issued of what was metered. See docs/billing.md.

-- Until when an account was on a plan that it has left: which plan a past day was on.
CREATE TABLE account_plans (
  account_id text NOT NULL CONSTRAINT account_plans_account_fkey REFERENCES accounts (id) ON DELETE CASCADE,
  number     bigint GENERATED ALWAYS AS IDENTITY,
  plan       text NOT NULL,
  until      timestamptz NOT NULL,
  CONSTRAINT account_plans_pkey PRIMARY KEY (account_id, number)
);

-- How much the media product stored of an account, at most, as it was looked at on a day of UTC.
CREATE TABLE storage_days (
  account_id text NOT NULL, -- without a foreign key: media counts owners
  day        date NOT NULL,
  bytes      bigint NOT NULL CONSTRAINT storage_days_bytes_positive CHECK (bytes >= 0),
  CONSTRAINT storage_days_pkey PRIMARY KEY (account_id, day)
);
CREATE INDEX storage_days_day_idx ON storage_days (day);

-- The months of accounts that are done: a month is written with its invoice, once, or without
-- one, where it has no price.
CREATE TABLE invoiced_months (
  account_id     text NOT NULL CONSTRAINT invoiced_months_account_fkey REFERENCES accounts (id) ON DELETE CASCADE,
  month          date NOT NULL CONSTRAINT invoiced_months_first CHECK (extract(day FROM month) = 1),
  invoice_id     text CONSTRAINT invoiced_months_invoice_fkey REFERENCES invoices (id) ON DELETE CASCADE,
  config_version bigint NOT NULL, -- whose prices they are
  CONSTRAINT invoiced_months_pkey PRIMARY KEY (account_id, month)
);
CREATE UNIQUE INDEX invoiced_months_invoice_key ON invoiced_months (invoice_id);

CREATE TABLE invoice_lines (
  invoice_id text NOT NULL CONSTRAINT invoice_lines_invoice_fkey REFERENCES invoices (id) ON DELETE CASCADE,
  position   smallint NOT NULL,
  line       jsonb NOT NULL,
  CONSTRAINT invoice_lines_pkey PRIMARY KEY (invoice_id, position)
);

-- How the money of an issued invoice is collected.
CREATE TABLE invoice_collections (
  invoice_id text CONSTRAINT invoice_collections_pkey PRIMARY KEY CONSTRAINT invoice_collections_invoice_fkey REFERENCES invoices (id) ON DELETE CASCADE,
  account_id text NOT NULL CONSTRAINT invoice_collections_account_fkey REFERENCES accounts (id) ON DELETE CASCADE,
  provider   text NOT NULL DEFAULT '', -- of payment
  payment    text NOT NULL DEFAULT '', -- the provider's name of the one payment of this invoice
  method_id  text NOT NULL DEFAULT '', -- that was charged last; it may be gone
  attempts   integer NOT NULL DEFAULT 0, -- that were refused
  failure    text NOT NULL DEFAULT '' CONSTRAINT invoice_collections_failure_length CHECK (octet_length(failure) <= 100),
  next_at    timestamptz -- NULL: not before something changes
);
CREATE INDEX invoice_collections_next_idx ON invoice_collections (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX invoice_collections_account_idx ON invoice_collections (account_id);
