ALTER TABLE schedules DROP CONSTRAINT schedules_next_when_active;
UPDATE schedules SET next_fire_at = held_fire_at WHERE status = 'active' AND next_fire_at IS NULL;
ALTER TABLE schedules ADD CONSTRAINT schedules_next_when_active CHECK ((status = 'active') = (next_fire_at IS NOT NULL));
ALTER TABLE schedules DROP COLUMN held_fire_at;
ALTER TABLE accounts DROP COLUMN suspended_reason;
ALTER TABLE accounts DROP COLUMN suspended_at;
