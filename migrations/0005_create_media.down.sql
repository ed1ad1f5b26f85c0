DROP TABLE media_sessions, media_streams;
