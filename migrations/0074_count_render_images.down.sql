DROP INDEX media_renders_images_idx;
ALTER TABLE media_renders DROP COLUMN image_bytes;
