DROP TABLE media_chapter_searches;
ALTER TABLE media_chapters DROP COLUMN found;
