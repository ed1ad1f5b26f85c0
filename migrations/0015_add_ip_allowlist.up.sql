-- The addresses from which an account may call; none: from anywhere. Edges hold
-- the list in the key feed, which takes at most 64 blocks.
ALTER TABLE accounts ADD COLUMN ip_allowlist cidr[] NOT NULL DEFAULT '{}'
  CONSTRAINT accounts_ip_allowlist_length CHECK (cardinality(ip_allowlist) <= 64);
