-- Tokens of chat completions: what plans allow, and what accounts have used.

-- NULL is no budget. A plan without a row has none either.
CREATE TABLE token_budgets (
  plan    text PRIMARY KEY CONSTRAINT token_budgets_plan_fkey REFERENCES plans (name) ON DELETE CASCADE,
  daily   bigint CONSTRAINT token_budgets_daily_positive CHECK (daily > 0),
  monthly bigint CONSTRAINT token_budgets_monthly_positive CHECK (monthly > 0)
);
INSERT INTO token_budgets (plan, daily, monthly) VALUES ('free', 200000, 2000000), ('pro', 20000000, 300000000);

-- One row an account, updated by every completion: it is the lock under which
-- an account's budget is judged, and has the sums that this needs. A new day or
-- month starts at 0 when the row is next written.
CREATE TABLE token_totals (
  account_id   text PRIMARY KEY CONSTRAINT token_totals_account_fkey REFERENCES accounts (id) ON DELETE CASCADE,
  day          date NOT NULL,
  day_tokens   bigint NOT NULL DEFAULT 0,
  month        date NOT NULL,
  month_tokens bigint NOT NULL DEFAULT 0
);

-- Tokens set aside for completions under way. A settled row stays for a while
-- with 0 tokens, so that the same settlement, sent again, finds it and does not
-- count twice. A runtime that dies leaves rows behind that end by themselves.
CREATE TABLE token_holds (
  id         text PRIMARY KEY,
  account_id text NOT NULL CONSTRAINT token_holds_account_fkey REFERENCES accounts (id) ON DELETE CASCADE,
  tokens     bigint NOT NULL CONSTRAINT token_holds_tokens_range CHECK (tokens >= 0),
  expires_at timestamptz NOT NULL,
  settled_at timestamptz
);
CREATE INDEX token_holds_account_idx ON token_holds (account_id) WHERE settled_at IS NULL;
CREATE INDEX token_holds_expires_idx ON token_holds (expires_at);

-- What was used, for bills and reports. credential_id has no foreign key: usage
-- outlives a key, and a session is none.
CREATE TABLE token_usage (
  account_id        text NOT NULL CONSTRAINT token_usage_account_fkey REFERENCES accounts (id) ON DELETE CASCADE,
  credential_id     text NOT NULL,
  day               date NOT NULL,
  model             text NOT NULL,
  requests          bigint NOT NULL,
  prompt_tokens     bigint NOT NULL,
  completion_tokens bigint NOT NULL,
  estimated_tokens  bigint NOT NULL, -- of the two: counted by the runtime, as the provider did not say
  PRIMARY KEY (account_id, day, credential_id, model)
);
