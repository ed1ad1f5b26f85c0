ALTER TABLE media_streams DROP account, DROP plan, DROP viewer_threshold;
ALTER TABLE media_sessions DROP threshold_told;
DROP TABLE media_views;
