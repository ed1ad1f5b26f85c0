-- The reference product: room for files that are being written. What an owner's
-- whole files take and what stands here is never more than its plan's storage. A
-- writer says every few seconds that it lives; what nobody vouches for any more
-- counts no longer, so that a crash gives the room back by itself.
CREATE TABLE media_reservations (
  file_id  text PRIMARY KEY CONSTRAINT media_reservations_file_fkey REFERENCES media_files (id) ON DELETE CASCADE,
  owner    text NOT NULL,
  bytes    bigint NOT NULL CONSTRAINT media_reservations_bytes_positive CHECK (bytes >= 0),
  alive_at timestamptz NOT NULL
);
CREATE INDEX media_reservations_owner_idx ON media_reservations (owner);
