DROP TABLE media_renditions;
