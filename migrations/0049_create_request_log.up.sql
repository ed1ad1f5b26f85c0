-- What happened to requests, for a day: all failures up to a rate, and a sample of the
-- others. A row is in the slot of the four hours in which it arrived; seven slots go
-- round, so that what is too old goes by emptying one, at once and whatever it holds.
-- Neither a backup nor a standby has it, and a crash of the server loses it: that is
-- what makes it cheap.
CREATE TABLE request_log (
  slot       smallint NOT NULL,
  id         text NOT NULL,
  ended_at   timestamptz NOT NULL,
  account_id text, -- NULL: nobody known called
  key_id     text,
  status     smallint NOT NULL, -- 0: the client was gone
  method     text NOT NULL,
  route      text NOT NULL,
  product    text NOT NULL,
  edge       text NOT NULL,
  record     jsonb NOT NULL, -- the rest: edgeapi.Request
  CONSTRAINT request_log_pkey PRIMARY KEY (id, slot)
) PARTITION BY LIST (slot);
CREATE UNLOGGED TABLE request_log_0 PARTITION OF request_log FOR VALUES IN (0);
CREATE UNLOGGED TABLE request_log_1 PARTITION OF request_log FOR VALUES IN (1);
CREATE UNLOGGED TABLE request_log_2 PARTITION OF request_log FOR VALUES IN (2);
CREATE UNLOGGED TABLE request_log_3 PARTITION OF request_log FOR VALUES IN (3);
CREATE UNLOGGED TABLE request_log_4 PARTITION OF request_log FOR VALUES IN (4);
CREATE UNLOGGED TABLE request_log_5 PARTITION OF request_log FOR VALUES IN (5);
CREATE UNLOGGED TABLE request_log_6 PARTITION OF request_log FOR VALUES IN (6);
CREATE INDEX request_log_ended_idx ON request_log (ended_at, id);
CREATE INDEX request_log_failed_idx ON request_log (ended_at, id) WHERE status >= 400;
CREATE INDEX request_log_account_idx ON request_log (account_id, ended_at, id) WHERE account_id IS NOT NULL;

-- Which four hours a slot is of, counted from 1970, and how many rows it has taken.
CREATE UNLOGGED TABLE request_log_slots (
  slot   smallint CONSTRAINT request_log_slots_pkey PRIMARY KEY,
  period bigint NOT NULL,
  taken  integer NOT NULL DEFAULT 0
);

-- What of a slot is an account's ('': of callers whom nobody knows), and what of
-- theirs was not recorded, for lack of room.
CREATE UNLOGGED TABLE request_log_shares (
  slot       smallint NOT NULL,
  account_id text NOT NULL,
  taken      integer NOT NULL DEFAULT 0,
  dropped    bigint NOT NULL DEFAULT 0,
  CONSTRAINT request_log_shares_pkey PRIMARY KEY (slot, account_id)
);
