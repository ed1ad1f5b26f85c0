-- What accounts have been told of what they have used (billing.usage_warning): a
-- row for each share of each quota in each window, written with the event.
CREATE TABLE usage_warnings (
  account_id   text NOT NULL, -- without a foreign key: products write here, and rows are dropped by their age
  resource     text NOT NULL CONSTRAINT usage_warnings_resource_length CHECK (octet_length(resource) BETWEEN 1 AND 64),
  window_start date NOT NULL, -- of UTC
  percent      smallint NOT NULL CONSTRAINT usage_warnings_percent_range CHECK (percent BETWEEN 1 AND 100),
  warned_at    timestamptz NOT NULL,
  PRIMARY KEY (account_id, resource, window_start, percent)
);
CREATE INDEX usage_warnings_window_idx ON usage_warnings (window_start);
