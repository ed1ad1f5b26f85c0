-- For how long the connections and streams of a row were open, in milliseconds: those of
-- routes that are watched, counted while they are open.
ALTER TABLE usage_counts ADD COLUMN open_millis bigint NOT NULL DEFAULT 0;
