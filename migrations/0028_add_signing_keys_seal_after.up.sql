-- Replicas of before keys were sealed cannot read a sealed one. Where there are
-- keys that lie open, such replicas may still run beside the new ones: for a day
-- nothing is sealed, and keys that are made meanwhile are as they were.
ALTER TABLE signing_keys ADD COLUMN seal_after timestamptz;
UPDATE signing_keys SET seal_after = now() + interval '1 day' WHERE get_byte(private_der, 0) = 48;
