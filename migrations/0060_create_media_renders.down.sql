DROP TABLE media_renders;
