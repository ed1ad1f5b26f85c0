ALTER TABLE media_sessions DROP recorded_from;
DROP TABLE media_live_utterances;
DROP TABLE media_live_captions;
