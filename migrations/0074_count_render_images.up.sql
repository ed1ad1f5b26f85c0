-- How many bytes the images of a render's overlays take, which are kept with what was asked
-- for and count towards the owner's storage. Renders of before, and of processes of before,
-- count nothing: they are gone 30 days after their end.
ALTER TABLE media_renders ADD COLUMN image_bytes bigint NOT NULL DEFAULT 0;
CREATE INDEX media_renders_images_idx ON media_renders (owner) INCLUDE (image_bytes) WHERE image_bytes > 0;
