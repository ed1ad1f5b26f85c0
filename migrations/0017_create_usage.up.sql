-- What edges have metered: requests of accounts, by key, product, route and
-- class of status. A row counts a minute (grain 0), an hour (1) or a day (2) of
-- UTC that begins at "at". account_id '' is nobody known, key_id '' no API key;
-- neither has a foreign key, since usage outlives both.
CREATE TABLE usage_counts (
  account_id text NOT NULL,
  grain      smallint NOT NULL CONSTRAINT usage_counts_grain_known CHECK (grain BETWEEN 0 AND 2),
  at         timestamptz NOT NULL,
  key_id     text NOT NULL,
  product    text NOT NULL,
  route      text NOT NULL,
  class      smallint NOT NULL CONSTRAINT usage_counts_class_range CHECK (class BETWEEN 0 AND 5),
  requests   bigint NOT NULL,
  refused    bigint NOT NULL, -- of the requests: answered by the edge itself
  bytes_in   bigint NOT NULL,
  bytes_out  bigint NOT NULL,
  latency    bigint[] NOT NULL CONSTRAINT usage_counts_latency_buckets CHECK (cardinality(latency) = 20),
  CONSTRAINT usage_counts_pkey PRIMARY KEY (account_id, grain, at, key_id, product, route, class)
) WITH (fillfactor = 70); -- a minute's rows are updated each second
CREATE INDEX usage_counts_age_idx ON usage_counts (grain, at);

-- The last parcel taken of each start of each edge. Edges send one after the
-- other, so a parcel counts if its number is higher, and only then.
CREATE TABLE usage_sources (
  edge     text NOT NULL,
  boot     text NOT NULL,
  sequence bigint NOT NULL CONSTRAINT usage_sources_sequence_positive CHECK (sequence > 0),
  seen_at  timestamptz NOT NULL,
  CONSTRAINT usage_sources_pkey PRIMARY KEY (edge, boot)
);
CREATE INDEX usage_sources_seen_idx ON usage_sources (seen_at);

-- How far minutes have been summed up into hours, and hours into days. What
-- comes for a time before is added to the sums as well. Whoever counts locks the
-- table IN ROW SHARE MODE, whoever moves these times IN EXCLUSIVE MODE.
CREATE TABLE usage_progress (
  one   boolean PRIMARY KEY DEFAULT true CONSTRAINT usage_progress_one_row CHECK (one),
  hours timestamptz NOT NULL,
  days  timestamptz NOT NULL
);
INSERT INTO usage_progress (hours, days) VALUES (date_trunc('day', now(), 'UTC') - interval '1 day', date_trunc('day', now(), 'UTC') - interval '1 day');

-- Requests of an account in a month of UTC that its plan's quota counts: those
-- that an edge let through.
CREATE TABLE usage_totals (
  account_id text NOT NULL CONSTRAINT usage_totals_account_fkey REFERENCES accounts (id) ON DELETE CASCADE,
  month      date NOT NULL,
  product    text NOT NULL,
  requests   bigint NOT NULL,
  CONSTRAINT usage_totals_pkey PRIMARY KEY (account_id, month, product)
) WITH (fillfactor = 70);
CREATE INDEX usage_totals_month_idx ON usage_totals (month);

-- How many requests a month a plan allows. A plan without a row has no quota.
CREATE TABLE request_quotas (
  plan    text CONSTRAINT request_quotas_plan_fkey REFERENCES plans (name) ON DELETE CASCADE,
  monthly bigint NOT NULL CONSTRAINT request_quotas_positive CHECK (monthly > 0),
  CONSTRAINT request_quotas_pkey PRIMARY KEY (plan)
);

-- The plan's quota of this month is used up; edges are told.
ALTER TABLE accounts ADD COLUMN quota_used boolean NOT NULL DEFAULT false;
CREATE INDEX accounts_quota_used_idx ON accounts (id) WHERE quota_used;

-- The last use that an edge has told of, at most one a minute.
ALTER TABLE api_keys ADD COLUMN last_used_at timestamptz, ADD COLUMN last_used_ip inet;
