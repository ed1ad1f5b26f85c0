DROP TABLE media_chapters;
