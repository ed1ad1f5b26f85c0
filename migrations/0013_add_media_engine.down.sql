ALTER TABLE media_sessions DROP engine;
