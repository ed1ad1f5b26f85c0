-- Since when an operator has kept an account out, and why. Processes of before do not look
-- at it, so that none is suspended while one of them runs.
ALTER TABLE accounts ADD COLUMN suspended_at timestamptz;
ALTER TABLE accounts ADD COLUMN suspended_reason text NOT NULL DEFAULT ''
  CONSTRAINT accounts_suspended_reason_length CHECK (length(suspended_reason) <= 500);
-- When a schedule was due that waits for its account to be resumed: it stands in the place of
-- next_fire_at, so that looking for what is due does not come upon it again and again.
ALTER TABLE schedules ADD COLUMN held_fire_at timestamptz;
ALTER TABLE schedules DROP CONSTRAINT schedules_next_when_active;
ALTER TABLE schedules ADD CONSTRAINT schedules_next_when_active CHECK (
  CASE WHEN status = 'active' THEN next_fire_at IS NOT NULL OR held_fire_at IS NOT NULL ELSE next_fire_at IS NULL END) NOT VALID;
